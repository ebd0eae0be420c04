//! What callers send through a gateway, and what a gateway may get wrong, leads around no rule.

use crate::support::Server;

const LOGIN: &str = "[[rule]]\nname = 'login'\nmatch = { method = 'POST', path = '/login' }\n\
    by = ['ip']\nlimits = ['2/h']";
const NEVER: &str = "[[rule]]\nname = 'r'\nmatch = { path = '/login' }\nlimits = ['0/h']";

const FORWARDED: (&str, &str) = ("X-Forwarded-Method", "GET");
const ORIGINAL: (&str, &str) = ("X-Original-Method", "GET");

/// Envoy hands on what callers send, and says the request by the path.
#[test]
fn a_header_of_a_caller_does_not_lead_around_a_rule_behind_envoy() {
    let server = Server::by(LOGIN);
    for _ in 0..2 {
        server.ask("POST", "/v1/forward-auth/login", &[]).is(200);
    }
    let mut around = Vec::new();
    for forged in [
        vec![("X-Forwarded-Uri", "/other")],
        vec![("X-Forwarded-Method", "GET")],
        vec![("X-Forwarded-Method", "GET"), ("X-Forwarded-Uri", "/other")],
        vec![("X-Original-URI", "/other")],
        vec![("X-Original-Method", "GET"), ("X-Original-URI", "/other")],
        vec![("X-Original-Method", "GET"), ("X-Original-URL", "http://h/other")],
        vec![("X-Original-Method", "GET")],
    ] {
        let answer = server.ask("POST", "/v1/forward-auth/login", &forged);
        if answer.status != 400 && answer.status != 429 {
            around.push(format!("{forged:?}: {answer:?}"));
        }
    }
    assert!(around.is_empty(), "{}", around.join("\n\n"));
}

/// What is no path matches no rule, and would pass.
#[test]
fn what_is_no_path_is_not_allowed() {
    let server = Server::by("[[rule]]\nname = 'r'\nmatch = { path = '/login' }\nlimits = ['0/h']");
    server.ask("GET", "/v1/forward-auth/login", &[]).is(429);
    let mut passed = Vec::new();
    for uri in ["login", "example.com:80", "*", "login?x=/", "http:/login"] {
        for headers in [[FORWARDED, ("X-Forwarded-Uri", uri)], [ORIGINAL, ("X-Original-URI", uri)]]
        {
            let answer = server.ask("GET", "/v1/forward-auth", &headers);
            if answer.status == 200 {
                passed.push(format!("{headers:?}: {answer:?}"));
            }
        }
    }
    assert!(passed.is_empty(), "{}", passed.join("\n\n"));
}

#[test]
fn a_forged_address_is_not_believed_behind_a_gateway() {
    let server = Server::by(LOGIN);
    // The gateway appends who connected to it; what stands before was sent by the caller.
    for (forged, status) in [("1.1.1.1", 200), ("2.2.2.2", 200), ("3.3.3.3", 429)] {
        let chain = format!("{forged}, 203.0.113.7");
        let headers = [("X-Forwarded-For", chain.as_str())];
        let answer = server.ask("POST", "/v1/forward-auth/login", &headers);
        assert_eq!(answer.status, status, "{chain}");
    }
}

/// A gateway that says it by one header hands on the other, which the caller sent.
#[test]
fn a_second_header_does_not_lead_around_a_rule() {
    let server = Server::by(NEVER);
    let mut around = Vec::new();
    for (said, forged) in [
        ("X-Original-URI", "X-Original-URL"),
        ("X-Original-URL", "X-Original-URI"),
        ("X-Original-URI", "X-Forwarded-Uri"),
        ("X-Original-URL", "X-Forwarded-Uri"),
        ("X-Forwarded-Uri", "X-Original-URI"),
        ("X-Forwarded-Uri", "X-Original-URL"),
    ] {
        for methods in [&[FORWARDED][..], &[ORIGINAL], &[FORWARDED, ORIGINAL]] {
            let both = [methods, &[(said, "/login"), (forged, "/other")]].concat();
            let answer = server.ask("GET", "/v1/forward-auth", &both);
            if answer.status == 200 {
                around.push(format!("{both:?}: {answer:?}"));
            }
        }
    }
    assert!(around.is_empty(), "{}", around.join("\n\n"));
}

/// Easily written in a gateway's configuration. The path is `/` then, and what headers say is another.
#[test]
fn a_slash_too_many_does_not_switch_rules_off() {
    let server = Server::by(NEVER);
    for path in ["/v1/forward-auth/", "/v1/forward-auth/?deny=403"] {
        for said in
            [[FORWARDED, ("X-Forwarded-Uri", "/login")], [ORIGINAL, ("X-Original-URI", "/login")]]
        {
            let answer = server.ask("GET", path, &said);
            assert_ne!(answer.status, 200, "{path} {said:?}: {answer:?}");
        }
    }
}
