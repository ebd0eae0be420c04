//! Every form that is known, as it looks on the wire.

use dashpot::Timestamp;
use dashpot_client::Told;
use http::HeaderValue;

use super::{NOW, headers, read, words};

#[track_caller]
fn check(vectors: &[(&str, &[&str])]) {
    for (lines, expected) in vectors {
        assert_eq!(read(lines), *expected, "\n{lines}");
    }
}

#[test]
fn the_current_draft() {
    check(&[
        (
            r#"RateLimit-Policy: "burst";q=100;w=60,"daily";q=1000;w=86400
               RateLimit: "burst";r=50;t=30"#,
            &["burst: 50/100 requests, all in 30s"],
        ),
        (r#"RateLimit: "burst";r=50;t=30"#, &["burst: 50/? requests, all in 30s"]),
        // After a whole window all is there.
        (
            r#"RateLimit-Policy: "burst";q=100;w=60
               RateLimit: "burst";r=50"#,
            &["burst: 50/100 requests, all in 60s"],
        ),
        (
            r#"RateLimit-Policy: "peruser";q=65535;qu="content-bytes";w=10;pk=:cHsdsRa894==:
               RateLimit: "peruser";r=100;t=3;pk=:cHsdsRa894==:"#,
            &["peruser: 100/65535 units, all in 3s"],
        ),
        (
            r#"RateLimit-Policy: "a";q=5;qu="requests";w=1
               RateLimit: "a";r=4;t=1"#,
            &["a: 4/5 requests, all in 1s"],
        ),
        // Nobody knows when somebody else's call is over.
        (
            r#"RateLimit-Policy: "jobs";q=6;qu="concurrent-requests"
               RateLimit: "jobs";r=0"#,
            &[],
        ),
        // With spaces, as express-rate-limit writes it, and what nobody knows yet.
        (
            r#"RateLimit-Policy: "5-in-1sec"; q=5; w=1; pk=:YWJj:; new=?1
               RateLimit: "5-in-1sec"; r=4; t=1; new=token"#,
            &["5-in-1sec: 4/5 requests, all in 1s"],
        ),
        (
            r#"RateLimit: "with \"quotes\" and \\, commas";r=1;t=2"#,
            &[r#"with "quotes" and \, commas: 1/? requests, all in 2s"#],
        ),
        // The most a number can be.
        (
            r#"RateLimit-Policy: "a";q=999999999999999;w=1
               RateLimit: "a";r=999999999999999;t=1"#,
            &["a: 999999999999999/999999999999999 requests, all in 1s"],
        ),
    ]);
}

#[test]
fn several_lines_are_one_list() {
    let both = ["a: 1/5 requests, all in 1s", "b: 2/10 requests, all in 20s"];
    check(&[
        (
            r#"RateLimit-Policy: "a";q=5;w=1, "b";q=10;w=60
               RateLimit: "a";r=1;t=1, "b";r=2;t=20"#,
            &both,
        ),
        (
            r#"RateLimit-Policy: "a";q=5;w=1
               RateLimit-Policy: "b";q=10;w=60
               RateLimit: "a";r=1;t=1
               RateLimit: "b";r=2;t=20"#,
            &both,
        ),
        (
            r#"RateLimit: limit=10
               RateLimit: remaining=9, reset=4"#,
            &["ratelimit: 9/10 requests, all in 4s"],
        ),
        ("Retry-After: 3\nRetry-After: 5\nRetry-After: 4", &["retry after 5s"]),
    ]);
}

#[test]
fn older_drafts() {
    let same = ["ratelimit: 50/100 requests, all in 50s"];
    check(&[
        // 03.
        ("RateLimit-Limit: 100, 100;w=60\nRateLimit-Remaining: 50\nRateLimit-Reset: 50", &same),
        // 06.
        (
            "RateLimit-Limit: 100\nRateLimit-Remaining: 50\nRateLimit-Reset: 50
             RateLimit-Policy: 100;w=60",
            &same,
        ),
        // 07.
        ("RateLimit: limit=100, remaining=50, reset=50\nRateLimit-Policy: 100;w=60", &same),
        ("RateLimit: remaining=50,reset=50,limit=100", &same),
        // Two forms of one thing are one thing.
        (
            "RateLimit: limit=100, remaining=50, reset=50\nRateLimit-Remaining: 50
             X-RateLimit-Limit: 100\nX-RateLimit-Remaining: 50\nX-RateLimit-Reset: 1700000050",
            &same,
        ),
        ("RateLimit-Remaining: 50", &["ratelimit: 50/? requests, all"]),
    ]);
}

#[test]
fn what_came_before_any_draft() {
    check(&[
        // GitHub.
        (
            "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 4987\nX-RateLimit-Used: 13
             X-RateLimit-Resource: core\nX-RateLimit-Reset: 1700003600",
            &["x-ratelimit: 4987/5000 requests, all in 3600s"],
        ),
        // X.
        (
            "x-rate-limit-limit: 900\nx-rate-limit-remaining: 0\nx-rate-limit-reset: 1700000900",
            &["x-rate-limit: 0/900 requests, all in 900s"],
        ),
        // Envoy.
        (
            "X-RateLimit-Limit: 10, 10;w=1;name=\"per-ip\", 100;w=60
             X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 1",
            &["x-ratelimit: 3/10 requests, all in 1s"],
        ),
        // In milliseconds, in the past, and as a date.
        (
            "X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 1700000030000",
            &["x-ratelimit: 3/? requests, all in 30s"],
        ),
        (
            "X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 1699999999",
            &["x-ratelimit: 3/? requests, all in 0ns"],
        ),
        (
            "X-RateLimit-Remaining: 3\nX-RateLimit-Reset: Tue, 14 Nov 2023 22:13:50 GMT",
            &["x-ratelimit: 3/? requests, all in 30s"],
        ),
    ]);
}

#[test]
fn vendors_of_language_models() {
    check(&[
        (
            "x-ratelimit-limit-requests: 60\nx-ratelimit-remaining-requests: 59
             x-ratelimit-reset-requests: 1s\nx-ratelimit-limit-tokens: 150000
             x-ratelimit-remaining-tokens: 149984\nx-ratelimit-reset-tokens: 6m0s",
            &[
                "requests: 59/60 requests, bit by bit in 1s",
                "tokens: 149984/150000 tokens, bit by bit in 360s",
            ],
        ),
        (
            "anthropic-ratelimit-requests-limit: 50\nanthropic-ratelimit-requests-remaining: 49
             anthropic-ratelimit-requests-reset: 2023-11-14T22:13:21Z
             anthropic-ratelimit-tokens-limit: 90000\nanthropic-ratelimit-tokens-remaining: 0
             anthropic-ratelimit-tokens-reset: 2023-11-14T22:14:20Z
             anthropic-ratelimit-input-tokens-limit: 50000
             anthropic-ratelimit-input-tokens-remaining: 40000
             anthropic-ratelimit-input-tokens-reset: 2023-11-14T22:13:32.500Z
             anthropic-ratelimit-output-tokens-limit: 10000
             anthropic-ratelimit-output-tokens-remaining: 9000
             anthropic-ratelimit-output-tokens-reset: 2023-11-14T23:13:26+01:00",
            &[
                "anthropic-requests: 49/50 requests, bit by bit in 1s",
                "anthropic-tokens: 0/90000 tokens, bit by bit in 60s",
                "anthropic-input-tokens: 40000/50000 tokens, bit by bit in 12.5s",
                // What a call will take of these nobody knows before.
                "anthropic-output-tokens: 9000/10000 units, bit by bit in 6s",
            ],
        ),
    ]);
}

/// What is read of a reset that is written like this.
fn wait(written: &str) -> Vec<String> {
    let mut headers = headers("x-ratelimit-remaining-requests: 1");
    let value = HeaderValue::from_bytes(written.as_bytes()).unwrap();
    headers.insert("x-ratelimit-reset-requests", value);
    words(&Told::read(&headers, Timestamp::from_secs(NOW)))
}

#[test]
fn durations_as_go_writes_them() {
    let waits = [
        ("6m0s", "360s"),
        ("12ms", "12ms"),
        ("1h2m3.5s", "3723.5s"),
        ("0s", "0ns"),
        ("250us", "250µs"),
        ("0.25", "250ms"),
    ];
    for (written, expected) in waits {
        let expected = format!("requests: 1/? requests, bit by bit in {expected}");
        assert_eq!(wait(written), [expected], "{written}");
    }
}

#[test]
fn microseconds_as_go_writes_them() {
    // Its own way to write them is not ASCII: `time.Duration(250_000).String()`.
    assert_eq!(wait("250µs"), ["requests: 1/? requests, bit by bit in 250µs"]);
}

#[test]
fn when_to_come_back() {
    check(&[
        ("Retry-After: 120", &["retry after 120s"]),
        ("Retry-After: 0", &["retry after 0ns"]),
        // The three forms of a date.
        ("Retry-After: Tue, 14 Nov 2023 22:13:50 GMT", &["retry after 30s"]),
        ("Retry-After: Tuesday, 14-Nov-23 22:13:50 GMT", &["retry after 30s"]),
        ("Retry-After: Tue Nov 14 22:13:50 2023", &["retry after 30s"]),
        ("Retry-After: Tue, 14 Nov 2023 21:00:00 GMT", &["retry after 0ns"]),
        ("retry-after-ms: 1500", &["retry after 1.5s"]),
        ("x-ms-retry-after-ms: 20", &["retry after 20ms"]),
        // Of several the longest.
        ("Retry-After: 1\nretry-after-ms: 1500", &["retry after 1.5s"]),
        ("Retry-After: 2\nretry-after-ms: 1500\nx-ms-retry-after-ms: 1", &["retry after 2s"]),
        ("x-should-retry: true", &["should retry: true"]),
        ("stripe-should-retry: false\nRetry-After: 1", &["retry after 1s", "should retry: false"]),
    ]);
}

#[test]
fn moments_are_compared_with_the_servers_own_clock() {
    // It is an hour behind.
    let date = "Date: Tue, 14 Nov 2023 21:13:20 GMT\n";
    let told = |line: &str| read(&format!("{date}{line}"));
    assert_eq!(told("Retry-After: Tue, 14 Nov 2023 21:13:50 GMT"), ["retry after 30s"]);
    assert_eq!(told("Retry-After: 30"), ["retry after 30s"]);
    let epoch = told("X-RateLimit-Remaining: 1\nX-RateLimit-Reset: 1699996430");
    assert_eq!(epoch, ["x-ratelimit: 1/? requests, all in 30s"]);
    let delta = told("RateLimit-Remaining: 1\nRateLimit-Reset: 30");
    assert_eq!(delta, ["ratelimit: 1/? requests, all in 30s"]);
    let rfc_3339 = "anthropic-ratelimit-requests-remaining: 1\n\
                    anthropic-ratelimit-requests-reset: 2023-11-14T21:13:50Z";
    assert_eq!(told(rfc_3339), ["anthropic-requests: 1/? requests, bit by bit in 30s"]);
}
