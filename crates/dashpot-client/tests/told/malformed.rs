//! What is malformed is ignored, and the rest still read.

use dashpot::Timestamp;
use dashpot_client::Told;
use http::{HeaderMap, HeaderValue};

use super::{NOW, headers, read, words};

/// Values that are nothing, whatever the field.
const NOTHING: [&[u8]; 13] = [
    b"",
    b" ",
    b"soon",
    b"-1",
    b"+1",
    b"1e3",
    b"0x10",
    b"NaN",
    b"1 2",
    b"\"1",
    b"\xff\xfe",
    b"Tue, 31 Feb 2023 22:13:50 GMT",
    b"2023-13-45T99:99:99Z",
];

/// What is read if this field is set, too.
fn with(lines: &str, name: &'static str, value: &[u8]) -> Vec<String> {
    let mut headers: HeaderMap = headers(lines);
    headers.insert(name, HeaderValue::from_bytes(value).unwrap());
    words(&Told::read(&headers, Timestamp::from_secs(NOW)))
}

#[test]
fn when_to_come_back_is_a_number_or_a_date() {
    let rest = "X-RateLimit-Remaining: 3\nX-RateLimit-Reset: 5\nx-should-retry: true";
    for name in ["retry-after", "retry-after-ms", "x-ms-retry-after-ms", "date"] {
        for value in NOTHING {
            let told = with(rest, name, value);
            let value = value.escape_ascii();
            assert_eq!(told, read(rest), "{name}: {value}");
        }
    }
    // One that is good among others that are not.
    assert_eq!(read("Retry-After: soon\nRetry-After: 5\nRetry-After: -1"), ["retry after 5s"]);
    assert_eq!(read("Retry-After: soon\nretry-after-ms: 5"), ["retry after 5ms"]);
}

#[test]
fn of_the_current_draft_all_else_is_still_read() {
    let rest =
        "X-RateLimit-Limit: 10\nX-RateLimit-Remaining: 3\nX-RateLimit-Reset: 5\nRetry-After: 7";
    let nothing: [&[u8]; 8] = [
        b"\"a\"",
        b"\"a\";r",
        b"\"a\";r=x",
        b"\"a\";r=-1",
        b"\"a\";r=1.5",
        b"\"a\";r=1234567890123456",
        b"(\"a\" \"b\");r=1",
        b"limit=10, remaining=-1, reset=x",
    ];
    for value in nothing.into_iter().chain(NOTHING) {
        // An older form says the same.
        assert_eq!(with(rest, "ratelimit", value), read(rest), "{}", value.escape_ascii());
    }
    // A policy that is malformed says nothing; what is left is told all the same.
    let state = r#"RateLimit: "a";r=1;t=2"#;
    let policies: [&[u8]; 5] =
        [b"\"a\"", b"\"a\";q=-1", b"\"a\";q=x;w=0", b"\"b\";q=1;w=1", b"a;q=1"];
    for value in policies.into_iter().chain(NOTHING) {
        let told = with(state, "ratelimit-policy", value);
        assert_eq!(told, ["a: 1/? requests, all in 2s"], "{}", value.escape_ascii());
    }
    // One of two.
    let told = read(r#"RateLimit: "a";t=1, "b";r=2;t=3"#);
    assert_eq!(told, ["b: 2/? requests, all in 3s"]);
    let told = read("RateLimit: limit=x, remaining=1, reset=2");
    assert_eq!(told, ["ratelimit: 1/? requests, all in 2s"]);
}

#[test]
fn of_three_headers_two_are_still_read() {
    let families = [
        ("ratelimit", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "all"),
        ("x-ratelimit", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "all"),
        (
            "x-rate-limit",
            "x-rate-limit-limit",
            "x-rate-limit-remaining",
            "x-rate-limit-reset",
            "all",
        ),
        (
            "requests",
            "x-ratelimit-limit-requests",
            "x-ratelimit-remaining-requests",
            "x-ratelimit-reset-requests",
            "bit by bit",
        ),
        (
            "anthropic-requests",
            "anthropic-ratelimit-requests-limit",
            "anthropic-ratelimit-requests-remaining",
            "anthropic-ratelimit-requests-reset",
            "bit by bit",
        ),
    ];
    for (name, limit, remaining, reset, how) in families {
        let all = format!("Retry-After: 7\n{limit}: 10\n{remaining}: 3\n{reset}: 5");
        let rest = "retry after 7s".to_owned();
        for value in NOTHING {
            let shown = value.escape_ascii();
            let told = with(&all, limit, value);
            let expected = format!("{name}: 3/? requests, {how} in 5s");
            assert_eq!(told, [expected, rest.clone()], "{limit}: {shown}");
            let told = with(&all, remaining, value);
            let expected = format!("{name}: ?/10 requests, {how} in 5s");
            assert_eq!(told, [expected, rest.clone()], "{remaining}: {shown}");
            let told = with(&all, reset, value);
            let expected = format!("{name}: 3/10 requests, {how}");
            assert_eq!(told, [expected, rest.clone()], "{reset}: {shown}");
        }
    }
}

#[test]
fn whether_to_come_again_is_true_or_false() {
    for value in NOTHING.into_iter().chain([&b"1"[..], b"?1", b"yes"]) {
        for name in ["x-should-retry", "stripe-should-retry"] {
            let told = with("Retry-After: 7", name, value);
            assert_eq!(told, ["retry after 7s"], "{name}: {}", value.escape_ascii());
        }
    }
}
