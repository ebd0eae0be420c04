//! Who may administer.

use crate::support::{Answer, Server};

const ROUTES: &[(&str, &str, &str)] = &[
    ("POST", "/v1/keys/peek", "{\"key\":\"a\",\"limit\":\"5/h\"}"),
    ("POST", "/v1/keys/reset", "{\"key\":\"a\",\"limit\":\"5/h\"}"),
    ("POST", "/v1/keys/block", "{\"key\":\"a\",\"limit\":\"5/h\",\"for\":\"1s\"}"),
    ("POST", "/v1/keys/unblock", "{\"key\":\"a\",\"limit\":\"5/h\"}"),
    ("GET", "/v1/keys/top", ""),
    ("GET", "/v1/rules", ""),
    ("POST", "/v1/rules/reload", ""),
    ("POST", "/v1/rules/diff", ""),
    ("POST", "/v1/rules/explain", "{\"request\":{\"path\":\"/\"}}"),
    ("GET", "/v1/health", ""),
    ("POST", "/v1/simulate", "{\"traffic\":[\"boundary\"],\"limits\":[\"5/h\"]}"),
];

const OPEN: &[&str] = &[
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/",
    "/dashboard/app.js",
    "/dashboard/style.css",
];

const RULES: &str = "[[rule]]\nname = 'r'\nlimits = ['5/h']";

fn ask(server: &Server, route: &(&str, &str, &str), headers: &[(&str, &str)]) -> Answer {
    server.client().ask(route.0, route.1, headers, route.2.as_bytes())
}

/// All routes with these headers, and those that were answered otherwise.
#[track_caller]
fn all(server: &Server, headers: &[(&str, &str)], status: u16) {
    let mut other = Vec::new();
    for route in ROUTES {
        let answer = ask(server, route, headers);
        if answer.status != status {
            other.push(format!("{} {headers:?}: {answer:?}", route.1));
        }
    }
    assert!(other.is_empty(), "not {status}: {}", other.join("\n\n"));
}

#[test]
fn a_token_is_asked_for_if_there_is_one() {
    let server = Server::with(RULES, &["--admin-token", "correct-horse"]);
    all(&server, &[("Authorization", "Bearer correct-horse")], 200);
    all(&server, &[], 401);
    for wrong in [
        "Bearer wrong-horse",
        "Bearer correct-hors",
        "Bearer correct-horse1",
        "Bearer ",
        "Bearer",
        "correct-horse",
        "Basic correct-horse",
        "Token correct-horse",
        "Bearer Correct-Horse",
        "Basic Y29ycmVjdC1ob3JzZTpjb3JyZWN0LWhvcnNl",
        "Bearer correct-horse, Bearer x",
    ] {
        all(&server, &[("Authorization", wrong)], 401);
    }
    all(&server, &[("Authorization", "Bearer x"), ("Authorization", "Bearer y")], 401);
    let answer = ask(&server, &ROUTES[0], &[]).problem(401);
    assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{answer:?}");
    // In a query it would end up in logs.
    server.get("/v1/rules?token=correct-horse").is(401);
    for path in OPEN {
        server.get(path).is(200);
    }
    server.check(&serde_json::json!({"key": "a", "limit": "5/h"})).allowed();
}

#[test]
fn a_token_counts_from_anywhere() {
    let server = Server::with(RULES, &["--admin-token", "correct-horse"]);
    let bearer = ("Authorization", "Bearer correct-horse");
    all(&server, &[bearer, ("X-Forwarded-For", "203.0.113.7")], 200);
    all(&server, &[bearer, ("Host", "dashpot.example.com")], 200);
}

#[test]
fn a_token_is_read_from_a_file() {
    let files = [("dashpot.toml", RULES), ("token", "correct-horse\n")];
    let server = Server::start_with(&files, &["--admin-token-file", "token"]);
    all(&server, &[("Authorization", "Bearer correct-horse")], 200);
    all(&server, &[], 401);
    let rules = format!("[serve]\nadmin_token_file = 'token'\n{RULES}");
    let server = Server::start_with(&[("dashpot.toml", &rules), ("token", "correct-horse")], &[]);
    all(&server, &[("Authorization", "Bearer correct-horse")], 200);
    all(&server, &[], 401);
}

#[test]
fn without_one_the_same_machine_may() {
    let server = Server::by(RULES);
    all(&server, &[], 200);
    let port = server.address().port();
    for host in ["127.0.0.1", "localhost", "[::1]"] {
        let host = format!("{host}:{port}");
        all(&server, &[("Host", &host)], 200);
        let origin = format!("http://{host}");
        all(&server, &[("Host", &host), ("Origin", &origin)], 200);
    }
    all(&server, &[("Sec-Fetch-Site", "same-origin")], 200);
    all(&server, &[("Sec-Fetch-Site", "none")], 200);
}

#[test]
fn without_one_whatever_was_forwarded_may_not() {
    let server = Server::by(RULES);
    for name in ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host", "Via"] {
        let value = match name {
            "Forwarded" => "for=127.0.0.1",
            "Via" => "1.1 proxy",
            _ => "127.0.0.1",
        };
        all(&server, &[(name, value)], 403);
    }
}

#[test]
fn without_one_other_web_pages_may_not() {
    let server = Server::by(RULES);
    let port = server.address().port();
    for origin in
        ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost.evil.example"]
    {
        all(&server, &[("Origin", origin)], 403);
    }
    // A name that its owner points at 127.0.0.1.
    for host in ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example"] {
        all(&server, &[("Host", host)], 403);
        let host = format!("{host}:{port}");
        let origin = format!("http://{host}");
        all(&server, &[("Host", &host), ("Origin", &origin)], 403);
    }
    for site in ["cross-site", "same-site"] {
        all(&server, &[("Sec-Fetch-Site", site)], 403);
    }
    let answer = ask(&server, &ROUTES[0], &[("Origin", "https://evil.example")]).problem(403);
    assert!(answer.text().contains("admin"), "it says what to do: {answer:?}");
    assert_eq!(answer.header("access-control-allow-origin"), None);
}

#[test]
fn who_may_not_changes_nothing() {
    let server = Server::by(RULES);
    let five = serde_json::json!({"key": "a", "limit": "5/h", "cost": 5});
    server.check(&five).allowed();
    all(&server, &[("Origin", "https://evil.example")], 403);
    server.check(&five).denied("limited");
    assert_eq!(server.get("/v1/rules").json()["generation"], 1);
}
