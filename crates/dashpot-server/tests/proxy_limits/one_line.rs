//! One line is enough: `dashpot proxy --upstream U --limit 5/min --by ip`.

use std::io::Write;
use std::net::SocketAddr;

use dashpot_testkit::on_all_threads;

use crate::backend::{Backend, answer};
use crate::caller::Caller;
use crate::home::Home;
use crate::proxy::Proxy;

#[test]
fn the_sixth_of_a_minute_is_denied_and_never_reaches_the_backend() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "5/min", "--by", "ip"]);
    let mut caller = proxy.caller();
    for nth in 1..=5 {
        let answer = caller.get("/books");
        assert_eq!((answer.status, answer.text().as_str()), (200, "hello"), "{nth}");
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""limit";q=5;w=60"#));
        assert_eq!(answer.left(), 5 - nth, "{answer:?}");
        assert_eq!(answer.header("retry-after"), None);
    }
    for _ in 0..20 {
        let denied = caller.get("/books");
        assert_eq!(denied.status, 429, "{denied:?}");
        assert!(denied.header("ratelimit").unwrap().starts_with(r#""limit";r=0;t="#), "{denied:?}");
        assert!((10..=12).contains(&denied.retry_after()), "{denied:?}");
        assert_eq!(denied.header("cache-control"), Some("no-store"));
        assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    }
    assert_eq!(backend.count(), 5);
    // Somebody else has five of their own.
    assert_eq!(proxy.caller_from(2).get("/").status, 200);
    assert_eq!(backend.count(), 6);
}

#[test]
fn the_body_of_a_denial_is_that_of_everywhere() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "1/h"]);
    let mut caller = proxy.caller();
    caller.get("/");
    let denied = caller.get("/");
    let body = denied.json();
    let wait = denied.retry_after();
    let kind = "https://iana.org/assignments/http-problem-types#quota-exceeded";
    assert_eq!(body["type"], kind, "{body}");
    let title = "Request cannot be satisfied as assigned quota has been exceeded";
    assert_eq!(body["title"], title);
    assert_eq!(body["status"], 429);
    assert_eq!(body["violated-policies"], serde_json::json!(["limit"]));
    assert_eq!(body["error"], "rate_limited");
    assert_eq!(body["retry_after"], wait);
    let detail = format!("Too many requests. Retry after {wait} seconds.");
    assert_eq!(body["detail"], detail.as_str());
    assert_eq!(body["message"], detail.as_str());
}

#[test]
fn several_limits_are_several_policies_of_which_all_hold() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "3/min", "--limit", "4/day", "--by", "ip"]);
    let answer = proxy.get("/");
    let policies = r#""limit-min";q=3;w=60, "limit-day";q=4;w=86400"#;
    assert_eq!(answer.header("ratelimit-policy"), Some(policies));
    assert_eq!(proxy.statuses("/", &[], 5), [200, 200, 429, 429, 429]);
    let denied = proxy.get("/").json();
    assert_eq!(denied["violated-policies"], serde_json::json!(["limit-min"]));
    assert_eq!(backend.count(), 3);
}

#[test]
fn several_facts_are_one_counter_for_each_combination() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "1/day", "--by", "ip,header:x-tenant"]);
    let ask = |last: u8, tenant: &str| {
        let line = format!("x-tenant: {tenant}");
        proxy.caller_from(last).ask("GET", "/", &[&line], "").status
    };
    assert_eq!([ask(1, "a"), ask(1, "b"), ask(2, "a"), ask(2, "b")], [200; 4]);
    assert_eq!([ask(1, "a"), ask(1, "b"), ask(2, "a"), ask(2, "b")], [429; 4]);
    assert_eq!(backend.count(), 4);
}

#[test]
fn the_first_fact_that_is_there_counts() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "1/day", "--by", "header:x-tenant | ip"]);
    let ask = |last: u8, lines: &[&str]| proxy.caller_from(last).ask("GET", "/", lines, "").status;
    assert_eq!(ask(1, &["x-tenant: a"]), 200);
    assert_eq!(ask(2, &["x-tenant: a"]), 429, "wherever it comes from");
    assert_eq!([ask(1, &[]), ask(2, &[]), ask(1, &[]), ask(2, &[])], [200, 200, 429, 429]);
}

#[test]
fn it_holds_to_the_unit_however_many_ask_at_once() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "123/day", "--threads", "4"]);
    let passed = on_all_threads(8, |_| {
        let statuses = proxy.statuses("/", &[], 30);
        statuses.iter().filter(|status| **status == 200).count()
    });
    assert_eq!(passed.iter().sum::<usize>(), 123);
    assert_eq!(backend.count(), 123);
}

/// Where it listens for both, who comes by IPv4 is no network of IPv6.
#[test]
fn callers_by_ipv4_are_told_apart_on_a_socket_for_both() {
    let backend = Backend::start();
    let url = backend.url();
    let flags = ["proxy", "--upstream", &url, "--limit", "1/day", "--listen", "[::]:0"];
    let flags = [&flags[..], &["--admin-listen", "127.0.0.1:0"]].concat();
    let proxy = Proxy::run(Home::new(), &flags, |_| {});
    let address = SocketAddr::from(([127, 0, 0, 1], proxy.address.port()));
    let ask = |last: u8| Caller::from(last, address).get("/").status;
    assert_eq!([ask(1), ask(1), ask(2), ask(2)], [200, 429, 200, 429]);
    assert_eq!(backend.seen()[1].header("x-real-ip"), Some("127.0.0.2"));
}

#[test]
fn by_whom_is_by_address_unless_it_is_said() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &["--limit", "1/day"]);
    let ask = |last: u8| proxy.caller_from(last).get("/").status;
    assert_eq!([ask(1), ask(1), ask(2), ask(2)], [200, 429, 200, 429]);
}

#[test]
fn without_limits_everything_passes_and_nothing_is_added() {
    let backend = Backend::start();
    let proxy = Proxy::start(&backend, &[]);
    assert!(proxy.stdout().contains(", in memory, no rules\n"), "{}", proxy.stdout());
    assert_eq!(proxy.statuses("/", &[], 200), [200; 200]);
    assert_eq!(backend.count(), 200);
    let answer = proxy.get("/");
    for name in ["ratelimit", "ratelimit-policy", "retry-after"] {
        assert_eq!(answer.header(name), None, "{answer:?}");
    }
}

#[test]
fn what_the_backend_answers_is_passed_on_whatever_it_is() {
    let backend = Backend::answering(|seen, stream| {
        let status = seen.path().trim_start_matches('/');
        stream.write_all(&answer(&format!("{status} So"), "its own"))
    });
    let proxy = Proxy::start(&backend, &["--limit", "100/min"]);
    for status in [200, 201, 301, 400, 404, 418, 429, 500, 503] {
        let answer = proxy.get(&format!("/{status}"));
        assert_eq!((answer.status, answer.text().as_str()), (status, "its own"));
        // A denial of the backend's is its own, and no denial of ours.
        assert_eq!(answer.header("retry-after"), None);
        assert!(answer.left() < 100);
    }
}
