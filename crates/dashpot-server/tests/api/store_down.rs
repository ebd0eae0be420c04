//! A store that does not answer: rules say what happens then.

use serde_json::json;

use crate::support::Server;

/// Nothing listens there.
fn down(policy: &str) -> Server {
    Server::by(&format!(
        "[store]\nurl = 'redis://127.0.0.1:1'\non_error = '{policy}'\n\
         [[rule]]\nname = 'r'\nlimits = ['2/h']"
    ))
}

#[test]
fn deny_is_503_and_says_so() {
    let server = down("deny");
    for ask in [json!({"request": {"path": "/"}}), json!({"key": "a", "limit": "2/h"})] {
        let answer = server.check(&ask).is(503);
        let json = answer.json();
        assert_eq!(json["outcome"], "deny", "{answer:?}");
        assert_eq!(json["reason"], "unavailable", "{answer:?}");
        assert_eq!(json["degraded"], true, "{answer:?}");
        assert!(json.get("reservation").is_none(), "{answer:?}");
    }
}

#[test]
fn allow_and_local_say_that_it_was_decided_without_the_store() {
    let server = down("allow");
    for _ in 0..4 {
        let answer = server.request(&json!({"path": "/"})).allowed();
        assert_eq!(answer.json()["degraded"], true, "{answer:?}");
    }
    let server = down("local");
    for _ in 0..2 {
        let answer = server.request(&json!({"path": "/"})).allowed();
        assert_eq!(answer.json()["degraded"], true, "{answer:?}");
    }
    let answer = server.request(&json!({"path": "/"})).denied("limited");
    assert_eq!(answer.json()["degraded"], true, "{answer:?}");
}

#[test]
fn it_is_ready_and_tells_in_health() {
    let server = down("local");
    server.request(&json!({"path": "/"})).allowed();
    server.get("/readyz").is(200);
    server.get("/healthz").is(200);
    let health = server.get("/v1/health").is(200).json();
    assert_eq!(health["up"], false, "{health}");
    let metrics = server.get("/metrics").is(200).text();
    let degraded = "dashpot_rule_degraded_total{rule=\"r\"} 1";
    assert!(metrics.contains(degraded), "{metrics}");
}

#[test]
fn keys_cannot_be_changed_then() {
    let server = down("local");
    let key = json!({"key": "a", "limit": "2/h"});
    for path in ["/v1/keys/peek", "/v1/keys/reset", "/v1/keys/unblock"] {
        server.post(path, &key).problem(503);
    }
    server.post("/v1/keys/block", &json!({"key": "a", "limit": "2/h", "for": "1h"})).problem(503);
}

#[test]
fn a_gateway_is_answered_by_what_the_rules_say() {
    let ask = |server: &Server| server.ask("GET", "/v1/forward-auth/", &[]);
    for _ in 0..4 {
        ask(&down("deny")).is(429);
    }
    let server = down("allow");
    for _ in 0..4 {
        ask(&server).is(200);
    }
    let server = down("local");
    assert_eq!([0; 3].map(|_| ask(&server).status), [200, 200, 429]);
}

#[test]
fn a_rule_may_say_otherwise() {
    let server = Server::by(
        "[store]\nurl = 'redis://127.0.0.1:1'\non_error = 'allow'\n\
         [[rule]]\nname = 'strict'\nmatch = { path = '/strict' }\nlimits = ['2/h']\n\
         on_store_error = 'deny'\n[[rule]]\nname = 'all'\nlimits = ['2/h']",
    );
    for _ in 0..3 {
        server.request(&json!({"path": "/"})).allowed();
        let answer = server.request(&json!({"path": "/strict"})).is(503);
        assert_eq!(answer.json()["rule"], "strict", "{answer:?}");
    }
}
