//! What a denied caller is told, and how.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::backend::Backend;
use crate::caller::Answer;
use crate::proxy::Proxy;

/// The first answer and the first denial, by a rule of one an hour with this in it.
fn both(before: &str, rule: &str) -> (Answer, Answer) {
    let backend = Backend::start();
    let text = format!("{before}\n[[rule]]\nname = 'r'\nlimits = ['1/h']\n{rule}\n");
    let proxy = Proxy::by(&backend, &text);
    let mut caller = proxy.caller();
    // A script of another origin asks, so that it is told what it may read.
    let mut ask = || caller.ask("GET", "/", &["origin: https://a.example"], "");
    let told = (ask(), ask());
    assert_eq!((told.0.status, backend.count()), (200, 1), "{told:?}");
    told
}

#[test]
fn another_status() {
    let (_, denied) = both("", "on_deny = { status = 503 }");
    assert_eq!(denied.status, 503);
    assert!(denied.retry_after() > 3500);
    assert_eq!(denied.json()["error"], "rate_limited");
}

#[test]
fn another_body() {
    let (_, denied) = both("", "on_deny = { body = 'Later, please.' }");
    assert_eq!((denied.status, denied.text().as_str()), (429, "Later, please."));
    assert!(denied.header("content-type").unwrap().starts_with("text/plain"), "{denied:?}");
    let html = "on_deny = { status = 420, body = '<p>', content_type = 'text/html' }";
    let (_, denied) = both("", html);
    assert_eq!((denied.status, denied.text().as_str()), (420, "<p>"));
    assert_eq!(denied.header("content-type"), Some("text/html"));
    assert!(denied.retry_after() > 3500);
}

#[test]
fn another_place() {
    let (_, denied) = both("", "on_deny = { redirect = '/captcha' }");
    assert_eq!((denied.status, denied.header("location")), (303, Some("/captcha")));
    let (_, denied) = both("", "on_deny = { redirect = '/captcha', status = 307 }");
    assert_eq!((denied.status, denied.header("location")), (307, Some("/captcha")));
}

#[test]
fn the_styles_of_headers() {
    let style = |styles: &str| both(&format!("[headers]\nstyles = [{styles}]"), "");
    let (allowed, denied) = style("'draft-07'");
    assert_eq!(allowed.header("ratelimit-policy"), Some("1;w=3600"));
    assert!(allowed.header("ratelimit").unwrap().starts_with("limit=1, remaining=0, reset="));
    assert_eq!(denied.header("ratelimit-policy"), Some("1;w=3600"));

    let (allowed, _) = style("'draft-06'");
    assert_eq!(allowed.header("ratelimit-limit"), Some("1"));
    assert_eq!(allowed.header("ratelimit-remaining"), Some("0"));
    let reset: u64 = allowed.header("ratelimit-reset").unwrap().parse().unwrap();
    assert!((3590..=3600).contains(&reset), "{allowed:?}");

    let (allowed, _) = style("'x-ratelimit'");
    assert_eq!(allowed.header("x-ratelimit-limit"), Some("1"));
    assert_eq!(allowed.header("x-ratelimit-remaining"), Some("0"));
    let reset: u64 = allowed.header("x-ratelimit-reset").unwrap().parse().unwrap();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    assert!((now + 3500..=now + 3602).contains(&reset), "{allowed:?}");

    let (allowed, denied) = style("'none'");
    assert!(!allowed.head.to_lowercase().contains("ratelimit"), "{allowed:?}");
    assert!(!denied.head.to_lowercase().contains("ratelimit"), "{denied:?}");
    assert!(denied.retry_after() > 3500);

    let (allowed, _) = style("'ietf', 'x-ratelimit'");
    assert_eq!(allowed.header("ratelimit-policy"), Some(r#""r";q=1;w=3600"#));
    assert_eq!(allowed.header("x-ratelimit-limit"), Some("1"));
}

#[test]
fn scripts_of_other_origins_may_read_them_unless_it_is_said() {
    let (allowed, denied) = both("", "");
    for answer in [allowed, denied] {
        let head = answer.head.to_lowercase();
        let exposed: Vec<_> = head
            .lines()
            .filter(|line| line.starts_with("access-control-expose-headers:"))
            .collect();
        for name in ["ratelimit-policy", "retry-after"] {
            assert!(exposed.iter().any(|line| line.contains(name)), "{name}: {answer:?}");
        }
    }
    let (allowed, denied) = both("[headers]\nexpose = false", "");
    for answer in [allowed, denied] {
        assert_eq!(answer.header("access-control-expose-headers"), None);
    }
}

#[test]
fn what_the_backend_says_of_limits_stays() {
    let backend = Backend::answering(|_, stream| {
        let lines = "RateLimit: \"own\";r=7;t=1\r\nRateLimit-Policy: \"own\";q=9;w=1\r\n";
        write!(stream, "HTTP/1.1 200 OK\r\n{lines}content-length: 2\r\n\r\nok")
    });
    let proxy = Proxy::by(&backend, "[[rule]]\nname = 'r'\nlimits = ['1/h']\n");
    let answer = proxy.get("/");
    assert_eq!(answer.header("ratelimit"), Some(r#""own";r=7;t=1"#));
    assert_eq!(answer.header("ratelimit-policy"), Some(r#""own";q=9;w=1"#));
    let denied = proxy.get("/");
    assert!(denied.header("ratelimit").unwrap().starts_with(r#""r";r=0;"#), "{denied:?}");
}

/// A body that nobody reads is no reason not to be told, and the connection is of use or closed.
#[test]
fn who_sends_a_body_is_told_too() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, "[[rule]]\nname = 'r'\nlimits = ['1/h']\n");
    assert_eq!(proxy.get("/").status, 200);
    for length in [1, 1000, 200_000] {
        let mut caller = proxy.caller();
        let denied = caller.ask("POST", "/", &[], &"x".repeat(length));
        assert_eq!(denied.status, 429, "{length}");
        assert_eq!(denied.json()["error"], "rate_limited");
    }
    // Who asks first whether it may send is denied before it does.
    let mut caller = proxy.caller();
    caller.send(
        "POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 9\r\n\r\n",
    );
    assert_eq!(caller.answer().status, 429);
    assert_eq!(backend.count(), 1);
}

/// Several requests sent in one go are answered in their order.
#[test]
fn denials_come_in_their_turn() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'r'\nmatch = { path = '/few' }\nlimits = ['1/h']\n";
    let proxy = Proxy::by(&backend, rules);
    let mut caller = proxy.caller();
    let paths = ["/few", "/few", "/other", "/few", "/other"];
    caller.send(paths.map(crate::caller::get).concat());
    let statuses: Vec<_> = paths.iter().map(|_| caller.answer().status).collect();
    assert_eq!(statuses, [200, 429, 200, 429, 200]);
    assert_eq!(backend.paths(), ["/few", "/other", "/other"]);
}

#[test]
fn a_head_is_denied_without_a_body() {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, "[[rule]]\nname = 'r'\nlimits = ['1/h']\n");
    let mut caller = proxy.caller();
    assert_eq!(caller.ask("HEAD", "/", &[], "").status, 200);
    assert_eq!(caller.ask("HEAD", "/", &[], "").status, 429);
    // The next answer begins where it should.
    assert_eq!(caller.get("/").status, 429);
}
