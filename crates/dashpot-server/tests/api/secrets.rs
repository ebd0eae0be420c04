//! Nothing secret is told to those who only look.

use serde_json::json;

use crate::support::{Server, until};

const TOKEN: &str = "admin-token-that-is-secret";
const API_KEY: &str = "sk-live-of-a-customer";
const CALLER: &str = "alice@example.com";
const ADDRESS: &str = "203.0.113.77";
const PASSWORD: &str = "redis-password";

#[test]
fn no_token_key_or_caller_is_in_logs_metrics_rules_or_description() {
    for format in ["text", "json"] {
        let rules = format!(
            "[store]\nurl = 'redis://:{PASSWORD}@127.0.0.1:1'\n\
             [identity]\ntrusted_proxies = ['127.0.0.0/8']\napi_key = 'header:x-api-key'\n\
             [[rule]]\nname = 'keys'\nby = ['api_key']\nlimits = ['1/h']\n\
             [[rule]]\nname = 'users'\nby = ['user', 'ip']\nlimits = ['1/h']\n\
             [[rule]]\nname = 'mails'\nby = ['json:email']\nlimits = ['1/h']\n\
             [[rule]]\nname = 'raw'\nby = ['header:x-api-key']\nlimits = ['1/h']"
        );
        let flags = ["--admin-token", TOKEN, "--log-format", format, "--log-level", "trace"];
        let server = Server::with(&rules, &flags);
        let bearer = format!("Bearer {TOKEN}");
        let admin = [("Authorization", bearer.as_str())];
        let request = json!({"method": "POST", "path": format!("/x?mail={CALLER}"), "ip": ADDRESS,
            "user": CALLER, "api_key": API_KEY, "body": format!("{{\"email\":\"{CALLER}\"}}"),
            "headers": {"x-api-key": API_KEY, "content-type": "application/json",
                "authorization": format!("Bearer {API_KEY}")}});
        for _ in 0..3 {
            server.request(&request);
            server.check(&json!({"key": CALLER, "limit": "1/h"}));
            let forwarded = [
                ("X-Forwarded-For", ADDRESS),
                ("X-Api-Key", API_KEY),
                ("Authorization", bearer.as_str()),
            ];
            server.ask("GET", &format!("/v1/forward-auth/?mail={CALLER}"), &forwarded);
        }
        server.check(&json!({"key": CALLER, "limit": "nonsense"})).problem(400);
        let token = server.check(&json!({"key": "other", "limit": "9/h", "reserve": true}));
        let reservation = token.reservation();
        server.settle(&reservation, 0);
        server.settle(&format!("{reservation}x"), 0).problem(404);
        let wrong = format!("Bearer {TOKEN}-almost");
        server.ask("GET", "/v1/rules", &[("Authorization", &wrong)]).is(401);
        let rules = server.ask("GET", "/v1/rules", &admin).is(200).text();
        let health = server.ask("GET", "/v1/health", &admin).is(200).text();
        let top = server.ask("GET", "/v1/keys/top", &admin).is(200).text();
        let metrics = server.get("/metrics").is(200).text();
        let description = server.get("/openapi.json").is(200).text();
        let front = server.get("/").is(200).text();
        until("denials in the log", || server.log().contains("denied"));
        let log = server.log();
        let mut told = Vec::new();
        for (place, text) in [
            ("the log", &log),
            ("/v1/rules", &rules),
            ("/v1/health", &health),
            ("/metrics", &metrics),
            ("/openapi.json", &description),
            ("/", &front),
        ] {
            for secret in [TOKEN, API_KEY, CALLER, ADDRESS, PASSWORD, reservation.as_str()] {
                if let Some(line) = text.lines().find(|line| line.contains(secret)) {
                    told.push(format!("{place} tells {secret}: {line:.300}"));
                }
            }
        }
        // Top is for administrators and names callers, but no keys that open doors.
        for secret in [TOKEN, API_KEY, PASSWORD] {
            if top.contains(secret) {
                told.push(format!("top tells {secret}: {top:.300}"));
            }
        }
        assert!(told.is_empty(), "{format}: {}", told.join("\n"));
        if format == "json" {
            for line in log.lines() {
                let line: Result<serde_json::Value, _> = serde_json::from_str(line);
                assert!(line.is_ok(), "a line of the log is no JSON: {line:?}\n{log}");
            }
        }
    }
}

#[test]
fn an_explanation_hides_what_is_secret() {
    let rules = "[[rule]]\nname = 'raw'\nby = ['header:x-api-key']\nlimits = ['1/h']";
    let server = Server::by(rules);
    let request = json!({"path": "/", "headers": {"x-api-key": API_KEY}});
    let told = server.post("/v1/rules/explain", &json!({ "request": request })).is(200).text();
    assert!(!told.contains(API_KEY), "{told}");
}

#[test]
fn a_wrong_question_is_not_logged_with_what_it_says() {
    let server = Server::start(&["--log-level", "trace"]);
    server.check(&json!({"key": CALLER, "limit": 5})).problem(400);
    server.check(&json!({"keys": CALLER})).problem(400);
    let mut client = server.client();
    client.ask("POST", "/v1/check", &[], format!("{{\"key\":\"{CALLER}").as_bytes()).problem(400);
    assert!(!server.log().contains(CALLER), "{}", server.log());
}
