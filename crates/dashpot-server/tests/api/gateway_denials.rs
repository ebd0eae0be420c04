//! What a gateway is answered: statuses, rules that depend on responses, and odd paths.

use crate::support::{Answer, Server};

const NEVER: &str = "[[rule]]\nname = 'r'\nlimits = ['1/h']\n";

/// The second answer, which is a denial.
#[track_caller]
fn denied(server: &Server, query: &str) -> Answer {
    let ask = || {
        let headers = [("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/")];
        server.ask("GET", &format!("/v1/forward-auth{query}"), &headers)
    };
    ask();
    ask()
}

#[test]
fn deny_chooses_the_status() {
    let server = Server::by(NEVER);
    let answer = denied(&server, "?deny=403").is(403);
    assert!(answer.header("retry-after").is_some(), "nginx hands it on: {answer:?}");
    assert!(answer.header("ratelimit").is_some(), "{answer:?}");
    denied(&server, "?deny=400").is(400);
    denied(&server, "?deny=499").is(499);
    denied(&server, "?deny=429").is(429);
    denied(&server, "").is(429);
}

#[test]
fn a_status_that_would_not_deny_is_refused() {
    let server = Server::by(NEVER);
    let mut taken = Vec::new();
    for deny in ["200", "399", "500", "503", "0", "-403", "4030", "abc", "", "403.0", "%20403"] {
        let answer = denied(&server, &format!("?deny={deny}"));
        let detail = String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status != 400 || !detail.contains("deny") {
            taken.push(format!("{deny}: {answer:?}"));
        }
    }
    assert!(taken.is_empty(), "{}", taken.join("\n\n"));
    server.ask("GET", "/v1/forward-auth/", &[]).is(200);
}

#[test]
fn on_deny_of_the_rule_is_what_is_answered() {
    let server = Server::by(&format!(
        "{NEVER}on_deny = {{ status = 418, body = 'no tea', content_type = 'text/x-tea' }}"
    ));
    let answer = denied(&server, "").is(418);
    assert_eq!(answer.text(), "no tea");
    assert_eq!(answer.header("content-type"), Some("text/x-tea"), "{answer:?}");
    assert!(answer.header("retry-after").is_some(), "{answer:?}");

    let server = Server::by(&format!("{NEVER}on_deny = {{ redirect = '/captcha' }}"));
    let answer = denied(&server, "").is(303);
    assert_eq!(answer.header("location"), Some("/captcha"), "{answer:?}");
    // nginx passes nothing but 401 and 403 on.
    denied(&server, "?deny=403").is(403);
}

#[test]
fn never_a_5xx() {
    let server = Server::by(&format!("{NEVER}on_deny = {{ status = 503 }}"));
    let answer = denied(&server, "");
    assert!((400..500).contains(&answer.status), "a gateway takes it for an error: {answer:?}");

    let store = "[store]\nurl = 'redis://127.0.0.1:1'\non_error = 'deny'\n";
    let server = Server::by(&format!("{store}{NEVER}"));
    denied(&server, "").is(429);
    denied(&server, "?deny=403").is(403);
}

#[test]
fn a_blocked_caller_is_refused() {
    let server = Server::by(&format!("[block]\nip = ['203.0.113.0/24']\n{NEVER}"));
    let blocked = [("X-Forwarded-For", "203.0.113.7")];
    let answer = server.ask("GET", "/v1/forward-auth/", &blocked);
    assert!((400..500).contains(&answer.status), "{answer:?}");
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    server.ask("GET", "/v1/forward-auth/", &[("X-Forwarded-For", "198.51.100.1")]).is(200);
}

#[test]
fn what_depends_on_the_response_is_charged_always() {
    let server = Server::by(
        "[[rule]]\nname = 'failures'\nmatch = { path = '/f' }\nlimits = ['2/h']\ncharge_on = [401]\n\
         [[rule]]\nname = 'tokens'\nmatch = { path = '/t' }\nlimits = ['10/h']\ncost = 5\n\
         settle = 'header:x-used'\n\
         [[rule]]\nname = 'flight'\nmatch = { path = '/c' }\nlimits = ['1 concurrent']",
    );
    let ask = |path: &str| server.ask("GET", &format!("/v1/forward-auth{path}"), &[]).status;
    assert_eq!([ask("/f"), ask("/f"), ask("/f")], [200, 200, 429]);
    assert_eq!([ask("/t"), ask("/t"), ask("/t")], [200, 200, 429]);
    assert_eq!([ask("/c"), ask("/c"), ask("/c")], [200, 200, 200], "given back at once");
    for rule in ["failures", "tokens", "flight"] {
        let says = |line: &str| line.contains(rule) && line.contains("forward-auth");
        assert!(server.log().lines().any(says), "the log does not say so of `{rule}`");
    }
}

#[test]
fn no_way_of_writing_a_path_leads_around_a_rule() {
    let server = Server::by("[[rule]]\nname = 'r'\nmatch = { path = '/login' }\nlimits = ['1/h']");
    server.ask("GET", "/v1/forward-auth/login", &[]).is(200);
    let mut around = Vec::new();
    for path in [
        "/login",
        "/login/",
        "//login",
        "/%6cogin",
        "/%6Cogin",
        "/./login",
        "/x/../login",
        "/login?a=/../b",
        "/login?",
        "/login#x",
        "/%2e/login",
        "/x/%2E%2e/login",
        "/../login",
    ] {
        let headers = [("X-Original-Method", "GET"), ("X-Original-URI", path)];
        let answer = server.ask("GET", "/v1/forward-auth", &headers);
        if answer.status != 429 {
            around.push(format!("{path}: {answer:?}"));
        }
        let url = format!("http://example.com{path}");
        let headers = [("X-Original-Method", "GET"), ("X-Original-URL", url.as_str())];
        let answer = server.ask("GET", "/v1/forward-auth", &headers);
        if answer.status != 429 {
            around.push(format!("{url}: {answer:?}"));
        }
        if !path.contains('#') {
            let answer = server.ask("GET", &format!("/v1/forward-auth{path}"), &[]);
            if answer.status != 429 {
                around.push(format!("prefix {path}: {answer:?}"));
            }
        }
    }
    assert!(around.is_empty(), "{}", around.join("\n\n"));
}

#[test]
fn the_host_is_the_one_of_the_request() {
    let rules = "[[rule]]\nname = 'r'\nmatch = { host = 'a.example' }\nlimits = ['1/h']";
    let server = Server::by(rules);
    let ask = |headers: &[(&str, &str)]| server.ask("GET", "/v1/forward-auth", headers).status;
    let a = [
        ("X-Forwarded-Method", "GET"),
        ("X-Forwarded-Uri", "/"),
        ("X-Forwarded-Host", "a.example"),
    ];
    let b = [
        ("X-Forwarded-Method", "GET"),
        ("X-Forwarded-Uri", "/"),
        ("X-Forwarded-Host", "b.example"),
    ];
    assert_eq!(ask(&a), 200);
    assert_eq!(ask(&a), 429);
    assert_eq!(ask(&b), 200);
    let nginx = |host| [("X-Original-Method", "GET"), ("X-Original-URI", "/"), ("Host", host)];
    assert_eq!(ask(&nginx("a.example")), 429);
    assert_eq!(ask(&nginx("A.Example:8443")), 429);
    assert_eq!(ask(&nginx("b.example")), 200);
    let url = [("X-Original-Method", "GET"), ("X-Original-URL", "https://a.example/x?y")];
    assert_eq!(ask(&url), 429, "the URL names the host");
    let envoy = server.ask("GET", "/v1/forward-auth/", &[("Host", "a.example")]);
    assert_eq!(envoy.status, 429);
}

/// Where the path is the caller's, so is the query.
#[test]
fn a_caller_behind_envoy_does_not_choose_the_status() {
    let server = Server::by("[[rule]]\nname = 'r'\nby = ['query:deny']\nlimits = ['1/h']");
    server.ask("GET", "/v1/forward-auth/login?deny=200", &[]).is(200);
    server.ask("GET", "/v1/forward-auth/login?deny=200", &[]).is(429);
    server.ask("GET", "/v1/forward-auth/login?deny=404", &[]).is(200);
    server.ask("GET", "/v1/forward-auth/login?deny=404", &[]).is(429);
}

#[test]
fn a_question_of_a_browser_before_it_sends_is_exempt() {
    let server = Server::by(NEVER);
    let preflight = [
        ("X-Forwarded-Method", "OPTIONS"),
        ("X-Forwarded-Uri", "/"),
        ("Origin", "https://a.example"),
        ("Access-Control-Request-Method", "POST"),
    ];
    for _ in 0..3 {
        server.ask("GET", "/v1/forward-auth", &preflight).is(200);
    }
}

#[test]
fn without_rules_everything_is_allowed() {
    let server = Server::start(&[]);
    let answer = server.ask("GET", "/v1/forward-auth/", &[]);
    assert!(answer.status == 200 || answer.status == 400, "{answer:?}");
}
