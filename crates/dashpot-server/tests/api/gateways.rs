//! A gateway asks about a request.

use std::time::{Duration, Instant};

use crate::support::{Answer, Server};

const LOGIN: &str = "[[rule]]\nname = 'login'\nmatch = { method = 'POST', path = '/login' }\n\
    by = ['ip']\nlimits = ['2/h']";

const FORWARDED: (&str, &str) = ("X-Forwarded-Method", "GET");
const ORIGINAL: (&str, &str) = ("X-Original-Method", "GET");

/// Asks as Traefik and Caddy do.
#[track_caller]
fn forwarded(server: &Server, method: &str, uri: &str, ip: &str) -> Answer {
    server.ask(
        "GET",
        "/v1/forward-auth",
        &[
            ("X-Forwarded-Method", method),
            ("X-Forwarded-Uri", uri),
            ("X-Forwarded-Host", "example.com"),
            ("X-Forwarded-For", ip),
        ],
    )
}

#[test]
fn the_request_is_told_in_three_ways() {
    let server = Server::by(LOGIN);
    let ip = ("X-Forwarded-For", "203.0.113.7");
    let answer = forwarded(&server, "POST", "/login?next=%2F", "203.0.113.7").is(200);
    assert!(answer.header("ratelimit").unwrap().contains("r=1"), "{answer:?}");
    let original = [("X-Original-Method", "POST"), ("X-Original-URI", "/login?a=b"), ip];
    let answer = server.ask("GET", "/v1/forward-auth", &original).is(200);
    assert!(answer.header("ratelimit").unwrap().contains("r=0"), "{answer:?}");
    // All three are counted together.
    server.ask("POST", "/v1/forward-auth/login?a=b", &[ip]).is(429);
    let url = [("X-Original-Method", "POST"), ("X-Original-URL", "https://example.com/login"), ip];
    server.ask("GET", "/v1/forward-auth", &url).is(429);
    let path = [("X-Original-Method", "POST"), ("X-Original-URL", "/login"), ip];
    server.ask("GET", "/v1/forward-auth", &path).is(429);
    // Another caller, another path, another method.
    forwarded(&server, "POST", "/login", "203.0.113.8").is(200);
    forwarded(&server, "POST", "/logout", "203.0.113.7").is(200);
    forwarded(&server, "GET", "/login", "203.0.113.7").is(200);
}

#[test]
fn a_denied_caller_is_told_everything() {
    let server = Server::by(LOGIN);
    for _ in 0..2 {
        forwarded(&server, "POST", "/login", "203.0.113.7").is(200);
    }
    let answer = forwarded(&server, "POST", "/login", "203.0.113.7").is(429);
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1_700..=1_800).contains(&wait), "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"), "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{answer:?}");
    assert!(answer.header("ratelimit-policy").unwrap().starts_with("\"login\""), "{answer:?}");
    let json = answer.json();
    assert_eq!(json["status"], 429);
    assert_eq!(json["violated-policies"], serde_json::json!(["login"]));
    assert_eq!(json["retry_after"], wait);
}

#[test]
fn any_method_may_ask() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['100/h']");
    for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
        let headers = [("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/")];
        server.ask(method, "/v1/forward-auth", &headers).is(200);
        server.ask(method, "/v1/forward-auth/", &[]).is(200);
    }
    let answer = server.ask("GET", "/v1/forward-auth/x", &[]).is(200);
    assert!(answer.header("ratelimit").unwrap().contains("r=83"), "{answer:?}");
}

#[test]
fn nothing_or_contradictions_are_refused_and_count_nothing() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['5/h']");
    let mut taken = Vec::new();
    for (path, headers) in [
        ("", vec![]),
        ("", vec![("X-Forwarded-For", "203.0.113.7")]),
        ("", vec![("X-Forwarded-Method", "GET")]),
        ("", vec![FORWARDED, ORIGINAL, ("X-Forwarded-Uri", "/a"), ("X-Original-URI", "/b")]),
        ("", vec![FORWARDED, ("X-Forwarded-Uri", "/a"), ("X-Forwarded-Uri", "/b")]),
        ("", vec![ORIGINAL, ("X-Original-URI", "/a"), ("X-Original-URI", "/b")]),
        ("", vec![ORIGINAL, ("X-Original-URI", "/a"), ("X-Original-URL", "/b")]),
        ("", vec![ORIGINAL, ("X-Original-URI", "/a"), ("X-Original-URL", "http://h/b")]),
        ("/a", vec![("X-Forwarded-Uri", "/b"), ("X-Forwarded-Method", "GET")]),
        ("/a", vec![("X-Original-URI", "/b"), ("X-Original-Method", "GET")]),
        (
            "",
            vec![
                ("X-Forwarded-Method", "GET"),
                ("X-Original-Method", "POST"),
                ("X-Forwarded-Uri", "/a"),
            ],
        ),
        (
            "",
            vec![
                ("X-Forwarded-Method", "GET"),
                ("X-Forwarded-Method", "POST"),
                ("X-Forwarded-Uri", "/a"),
            ],
        ),
        ("", vec![("X-Forwarded-Method", "G T"), ("X-Forwarded-Uri", "/a")]),
        ("", vec![("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "a")]),
        ("", vec![("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "")]),
        ("", vec![("X-Original-Method", "GET"), ("X-Original-URI", "a")]),
        (
            "",
            vec![
                ("X-Forwarded-Method", "GET"),
                ("X-Forwarded-Uri", "/a"),
                ("X-Forwarded-Host", "a.example"),
                ("X-Forwarded-Host", "b.example"),
            ],
        ),
    ] {
        let answer = server.ask("GET", &format!("/v1/forward-auth{path}"), &headers);
        if answer.status != 400 {
            taken.push(format!("{path} {headers:?}: {answer:?}"));
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n\n"));
    let answer = server.ask("GET", "/v1/forward-auth/", &[]).is(200);
    assert!(answer.header("ratelimit").unwrap().contains("r=4"), "{answer:?}");
}

#[test]
fn two_ways_that_agree_are_no_contradiction() {
    let server = Server::by(LOGIN);
    let headers = [
        ("X-Forwarded-Method", "POST"),
        ("X-Original-Method", "POST"),
        ("X-Forwarded-Uri", "/login"),
        ("X-Original-URI", "/login"),
    ];
    server.ask("GET", "/v1/forward-auth", &headers).is(200);
}

#[test]
fn who_is_no_trusted_proxy_is_told_the_line_to_add() {
    let rules = format!("[identity]\ntrusted_proxies = ['10.0.0.0/8']\n{LOGIN}");
    let server = Server::by(&rules);
    let answer = forwarded(&server, "POST", "/login", "203.0.113.7").problem(400);
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    server.ask("POST", "/v1/forward-auth/login", &[]).problem(400);
    // The line it tells is one that works.
    let line = &detail[detail.find("trusted_proxies = [").expect(&detail)..];
    let line = &line[..=line.find(']').expect(&detail)];
    let rules = format!("[identity]\n{line}\n{LOGIN}");
    forwarded(&Server::by(&rules), "POST", "/login", "203.0.113.7").is(200);
}

#[test]
fn client_ip_header_says_for_whom() {
    let rules = format!(
        "[identity]\ntrusted_proxies = ['127.0.0.0/8']\nclient_ip_header = 'x-real-ip'\n{LOGIN}"
    );
    let server = Server::by(&rules);
    let ask = |real: &str, forwarded: &str| {
        let headers = [("X-Real-IP", real), ("X-Forwarded-For", forwarded)];
        server.ask("POST", "/v1/forward-auth/login", &headers).status
    };
    assert_eq!(ask("203.0.113.7", "1.1.1.1"), 200);
    assert_eq!(ask("203.0.113.7", "2.2.2.2"), 200);
    assert_eq!(ask("203.0.113.7", "3.3.3.3"), 429);
    assert_eq!(ask("203.0.113.8", "3.3.3.3"), 200);
}

#[test]
fn a_delay_of_a_queue_is_waited_for() {
    let rules = "[[rule]]\nname = 'q'\nlimits = ['1/300ms']\nalgorithm = 'leaky-bucket'\nqueue = 1";
    let server = Server::by(rules);
    let begun = Instant::now();
    server.ask("GET", "/v1/forward-auth/", &[]).is(200);
    server.ask("GET", "/v1/forward-auth/", &[]).is(200);
    assert!(begun.elapsed() >= Duration::from_millis(299), "{:?}", begun.elapsed());
}

#[test]
fn a_body_that_a_gateway_sends_along_does_no_harm() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['100/h']");
    let mut client = server.client();
    for length in [0, 10, 60_000] {
        let body = vec![b'x'; length];
        client.ask("POST", "/v1/forward-auth/upload", &[], &body).is(200);
    }
    let gzip = [("Content-Encoding", "gzip")];
    client.ask("POST", "/v1/forward-auth/upload", &gzip, b"\x1f\x8b").is(200);
    client.get("/healthz").is(200);
    let long = server.client().ask("POST", "/v1/forward-auth/upload", &[], &vec![b'x'; 300_000]);
    assert_eq!(long.status, 200, "uploads are longer than questions: {long:?}");
}
