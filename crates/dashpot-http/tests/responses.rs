//! What callers are told: how they stand, and when to come back.

use std::time::Duration;

use axum::Router;
use serde_json::json;

use crate::common::{Server, ask, get, limit, post, rules, store};

/// A server whose time is told by the clock.
async fn timed(text: &str) -> (Server, dashpot::ManualClock) {
    let (store, clock) = store();
    let app = Router::new().fallback(async || "served");
    let app = app.layer(limit(rules(text), store));
    (Server::start(app).await, clock)
}

/// Waiting as long as told is enough, and a second less is not.
#[tokio::test]
async fn retry_after_is_exact_for_every_algorithm() {
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        for limit in ["3/10s", "1/s", "2/min", "7/3s", "5/5min"] {
            let text = format!(
                "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['{limit}']\nalgorithm = '{algorithm}'"
            );
            let (server, clock) = timed(&text).await;
            let what = format!("{algorithm} {limit}");
            // Not at the full second, where rounding would not show.
            clock.advance(Duration::from_millis(1_234));
            let mut denied = get("/").send(&server).await;
            while denied.status == 200 {
                clock.advance(Duration::from_millis(3));
                denied = get("/").send(&server).await;
            }
            assert_eq!(denied.status, 429, "{what}");
            let wait = denied.retry_after();
            assert!(wait >= 1, "{what}");
            clock.advance(Duration::from_secs(wait - 1));
            assert_eq!(get("/").status(&server).await, 429, "{what}: {wait} s, one less");
            clock.advance(Duration::from_secs(1));
            assert_eq!(get("/").status(&server).await, 200, "{what}: {wait} s");
        }
    }
}

/// A rejection costs nothing: who hammers waits no longer than who waits.
#[tokio::test]
async fn hammering_does_not_lengthen_the_wait() {
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let text = format!(
            "[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['5/10s']\nalgorithm = '{algorithm}'"
        );
        let (server, clock) = timed(&text).await;
        assert_eq!(get("/").statuses(&server, 5).await, [200; 5], "{algorithm}");
        let mut wait = get("/").send(&server).await.retry_after();
        while wait > 0 {
            for _ in 0..10 {
                let denied = get("/").send(&server).await;
                assert_eq!((denied.status, denied.retry_after()), (429, wait), "{algorithm}");
            }
            clock.advance(Duration::from_secs(1));
            wait -= 1;
        }
        assert_eq!(get("/").status(&server).await, 200, "{algorithm}");
    }
}

#[tokio::test]
async fn a_wait_of_a_moment_is_told_as_a_second() {
    let (server, _) = timed("[[rule]]\nname = 'r'\nlimits = ['1000/s burst 1']").await;
    assert_eq!(get("/").status(&server).await, 200);
    assert_eq!(get("/").send(&server).await.retry_after(), 1);
}

#[tokio::test]
async fn a_denial_says_everything() {
    let (server, _) = timed("[[rule]]\nname = 'login'\nby = ['ip']\nlimits = ['1/15s']").await;
    assert_eq!(get("/").status(&server).await, 200);
    let answer = get("/").send(&server).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.get("retry-after"), Some("15"));
    assert_eq!(answer.get("cache-control"), Some("no-store"));
    assert_eq!(answer.get("content-type"), Some("application/problem+json"));
    assert_eq!(answer.get("ratelimit"), Some(r#""login";r=0;t=15"#));
    assert_eq!(answer.get("ratelimit-policy"), Some(r#""login";q=1;w=15"#));
    assert_eq!(
        answer.json(),
        json!({
            "type": "https://iana.org/assignments/http-problem-types#quota-exceeded",
            "title": "Request cannot be satisfied as assigned quota has been exceeded",
            "status": 429,
            "detail": "Too many requests. Retry after 15 seconds.",
            "violated-policies": ["login"],
            "error": "rate_limited",
            "message": "Too many requests. Retry after 15 seconds.",
            "retry_after": 15,
        })
    );
}

#[tokio::test]
async fn those_who_pass_are_told_how_they_stand() {
    let (server, _) = timed("[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['3/min']").await;
    for left in ["2", "1", "0"] {
        let answer = get("/").send(&server).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.get("ratelimit-policy"), Some(r#""r";q=3;w=60"#));
        let ratelimit = answer.get("ratelimit").unwrap();
        assert!(ratelimit.starts_with(&format!("\"r\";r={left};t=")), "{ratelimit}");
        // Those are for the denied.
        assert_eq!(answer.get("retry-after"), None);
        assert_eq!(answer.get("cache-control"), None);
        assert_eq!(answer.text(), "served");
    }
}

#[tokio::test]
async fn what_no_rule_is_about_is_told_nothing() {
    let (server, _) = timed("[[rule]]\nname = 'r'\nmatch.path = '/x'\nlimits = ['3/min']").await;
    let answer = get("/health").send(&server).await;
    assert_eq!(
        (answer.status, answer.get("ratelimit"), answer.get("ratelimit-policy")),
        (200, None, None)
    );
}

#[tokio::test]
async fn the_answer_to_head_has_headers_and_no_body() {
    let (server, _) = timed("[[rule]]\nname = 'r'\nlimits = ['1/min']").await;
    assert_eq!(ask("HEAD", "/").status(&server).await, 200);
    let answer = ask("HEAD", "/").send(&server).await;
    assert_eq!((answer.status, answer.get("retry-after")), (429, Some("60")));
    assert!(answer.body.is_empty());
}

/// One connection, several requests: a denial is an answer like others.
#[tokio::test]
async fn a_denial_does_not_end_the_connection() {
    use tokio::io::AsyncWriteExt;
    let (server, clock) = timed("[[rule]]\nname = 'r'\nlimits = ['1/min']").await;
    let asked = get("/").line("connection", "keep-alive");
    let mut stream = asked.begin(&server).await;
    assert_eq!(crate::common::Answer::read(&mut stream, false).await.status, 200);
    for expected in [429, 429, 200] {
        if expected == 200 {
            clock.advance(Duration::from_secs(60));
        }
        stream.write_all(asked.head().as_bytes()).await.unwrap();
        assert_eq!(crate::common::Answer::read(&mut stream, false).await.status, expected);
    }
}

/// Those who are denied are denied before their body is read.
#[tokio::test]
async fn a_denied_upload_is_answered() {
    let (server, _) = timed("[[rule]]\nname = 'r'\nlimits = ['0/min']").await;
    let answer = post("/", "application/octet-stream", vec![7; 200_000]).send(&server).await;
    assert_eq!(answer.status, 429);
    // What is never granted has no time to come back at.
    assert_eq!(answer.get("retry-after"), None);
    assert_eq!(answer.json()["detail"], "This request can never be granted.");
}

const TWO_WINDOWS: &str = "[[rule]]\nname = 'api'\nby = ['ip']\nlimits = ['2/min', '3/day']";

#[tokio::test]
async fn several_limits_are_all_told_and_the_nearest_governs() {
    let (server, clock) = timed(TWO_WINDOWS).await;
    let answer = get("/").send(&server).await;
    assert_eq!(
        answer.get("ratelimit-policy"),
        Some(r#""api-min";q=2;w=60, "api-day";q=3;w=86400"#)
    );
    assert!(answer.get("ratelimit").unwrap().starts_with(r#""api-min";r=1;"#));
    get("/").send(&server).await;
    let denied = get("/").send(&server).await;
    assert_eq!(denied.json()["violated-policies"], json!(["api-min"]));
    assert_eq!(denied.retry_after(), 30);

    clock.advance(Duration::from_secs(60));
    let last = get("/").send(&server).await;
    assert!(last.get("ratelimit").unwrap().starts_with(r#""api-day";r=0;"#), "{:?}", last.lines);
    let denied = get("/").send(&server).await;
    assert_eq!(denied.status, 429);
    assert_eq!(denied.json()["violated-policies"], json!(["api-day"]));
    // A bucket of 3 a day fills by one in 8 hours, a minute of which is over.
    assert_eq!(denied.retry_after(), 8 * 3600 - 60);
}

/// Hammering against the short limit leaves the long one alone, and other rules as well.
#[tokio::test]
async fn a_denial_burns_no_other_quota() {
    let text = format!(
        "{TWO_WINDOWS}\n[[rule]]\nname = 'all'\nlimits = ['4/h']\nalgorithm = 'fixed-window'"
    );
    let (server, clock) = timed(&text).await;
    assert_eq!(get("/").statuses(&server, 2).await, [200, 200]);
    assert_eq!(get("/").statuses(&server, 20).await, [429; 20]);
    clock.advance(Duration::from_secs(60));
    // Twenty denials later, one of three a day is left, and two of four an hour.
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
    let other = get("/").from("127.0.0.2");
    assert_eq!(other.statuses(&server, 2).await, [200, 429]);
    assert_eq!(other.send(&server).await.json()["violated-policies"], json!(["all"]));
}

/// The caller waits for the limit that takes longest.
#[tokio::test]
async fn the_longest_wait_is_told() {
    let text = "[[rule]]\nname = 'api'\nlimits = ['1/min', '1/h']";
    let (server, _) = timed(text).await;
    get("/").send(&server).await;
    let denied = get("/").send(&server).await;
    assert_eq!(denied.retry_after(), 3600);
    assert_eq!(denied.json()["violated-policies"], json!(["api-min", "api-h"]));
}

#[tokio::test]
async fn styles_are_those_that_are_asked_for() {
    let now = crate::common::START;
    let names = ["ratelimit", "ratelimit-policy", "ratelimit-limit", "x-ratelimit-limit"];
    for (styles, expected) in [
        ("'ietf'", [Some(r#""r";r=1;t=30"#), Some(r#""r";q=2;w=60"#), None, None]),
        ("'draft-07'", [Some("limit=2, remaining=1, reset=30"), Some("2;w=60"), None, None]),
        ("'draft-06'", [None, Some("2;w=60"), Some("2"), None]),
        ("'x-ratelimit'", [None, None, None, Some("2")]),
        (
            "'ietf', 'x-ratelimit'",
            [Some(r#""r";r=1;t=30"#), Some(r#""r";q=2;w=60"#), None, Some("2")],
        ),
        ("'none'", [None; 4]),
    ] {
        let text =
            format!("[headers]\nstyles = [{styles}]\n[[rule]]\nname = 'r'\nlimits = ['2/min']");
        let (server, _) = timed(&text).await;
        let answer = get("/").send(&server).await;
        assert_eq!(names.map(|name| answer.get(name)), expected, "{styles}");
        if styles.contains("x-") {
            assert_eq!(answer.get("x-ratelimit-remaining"), Some("1"));
            // In seconds since 1970, when the limit is whole again.
            assert_eq!(answer.get("x-ratelimit-reset"), Some(&*(now + 30).to_string()));
        }
        get("/").send(&server).await;
        let denied = get("/").send(&server).await;
        assert_eq!((denied.status, denied.retry_after()), (429, 30), "{styles}");
    }
}

/// Everybody waits at least as long as needed, and not all equally long.
#[tokio::test]
async fn jitter_only_adds() {
    let text = "[headers]\njitter = '30s'\n[[rule]]\nname = 'r'\nlimits = ['1/min']";
    let (server, _) = timed(text).await;
    get("/").send(&server).await;
    let mut waits = Vec::new();
    for _ in 0..40 {
        let denied = get("/").send(&server).await;
        let wait = denied.retry_after();
        assert!((60..=90).contains(&wait), "{wait}");
        // All parts of an answer say the same.
        assert_eq!(denied.json()["retry_after"], wait);
        assert_eq!(denied.get("ratelimit"), Some(&*format!("\"r\";r=0;t={wait}")));
        waits.push(wait);
    }
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > 5, "{waits:?}");
}

#[tokio::test]
async fn scripts_may_read_the_headers_if_there_are_scripts() {
    let text =
        "[headers]\nstyles = ['ietf', 'x-ratelimit']\n[[rule]]\nname = 'r'\nlimits = ['1/min']";
    let (server, _) = timed(text).await;
    for expected in [200, 429] {
        let answer = get("/").line("origin", "https://a.example").send(&server).await;
        assert_eq!(answer.status, expected);
        let exposed = answer.all("access-control-expose-headers").join(", ").to_lowercase();
        for name in ["retry-after", "ratelimit", "ratelimit-policy", "x-ratelimit-reset"] {
            assert!(exposed.split(", ").any(|one| one == name), "{name} in {exposed}");
        }
        // Who may ask at all is for the application to say.
        assert_eq!(answer.get("access-control-allow-origin"), None);
    }
    let answer = get("/").send(&server).await;
    assert!(answer.all("access-control-expose-headers").is_empty());

    let (server, _) = timed(&text.replace("[headers]", "[headers]\nexpose = false")).await;
    let answer = get("/").line("origin", "https://a.example").send(&server).await;
    assert!(answer.all("access-control-expose-headers").is_empty());
}

#[tokio::test]
async fn a_preflight_is_free_unless_it_is_named() {
    let lines = [("origin", "https://a.example"), ("access-control-request-method", "PUT")];
    let preflight = ask("OPTIONS", "/").lines(&lines);
    let (server, _) = timed("[[rule]]\nname = 'r'\nlimits = ['1/min']").await;
    assert_eq!(preflight.statuses(&server, 3).await, [200; 3]);
    assert_eq!(get("/").statuses(&server, 2).await, [200, 429]);
    assert_eq!(preflight.status(&server).await, 200);

    let (server, _) =
        timed("[[rule]]\nname = 'r'\nmatch.method = 'OPTIONS'\nlimits = ['1/min']").await;
    assert_eq!(preflight.statuses(&server, 2).await, [200, 429]);
}

#[tokio::test]
async fn a_request_may_cost_more_than_one() {
    let (server, clock) =
        timed("[[rule]]\nname = 'r'\nlimits = ['10/min']\ncost = 3\nalgorithm = 'sliding-log'")
            .await;
    assert_eq!(get("/").statuses(&server, 4).await, [200, 200, 200, 429]);
    let denied = get("/").send(&server).await;
    assert_eq!(denied.retry_after(), 60);
    clock.advance(Duration::from_secs(60));
    assert_eq!(get("/").status(&server).await, 200);
}

/// One rule for each route, as documents 1 to 3 ask.
#[tokio::test]
async fn routes_have_limits_of_their_own() {
    let text = r#"
        [[rule]]
        name = "login"
        match = { method = "POST", path = "/login" }
        by = ["ip"]
        limits = ["2/5min"]

        [[rule]]
        name = "upload"
        match = { path = "/upload/{kind}" }
        by = ["ip", "param:kind"]
        limits = ["1/h"]
    "#;
    let (server, _) = timed(text).await;
    assert_eq!(ask("POST", "/login").statuses(&server, 3).await, [200, 200, 429]);
    assert_eq!(get("/login").statuses(&server, 3).await, [200; 3]);
    for kind in ["/upload/video", "/upload/image"] {
        assert_eq!(get(kind).statuses(&server, 2).await, [200, 429], "{kind}");
    }
    assert_eq!(get("/health").statuses(&server, 5).await, [200; 5]);
}
