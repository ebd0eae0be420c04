//! Wrong questions by the rules, wrong settlings, and those to administrators.

use serde_json::{Value, json};

use crate::support::Server;

const RULES: &str = "[[rule]]\nname = 'all'\nlimits = ['5/h']";

#[track_caller]
fn all_wrong(path: &str, cases: &[(Value, &str)]) {
    let server = Server::by(RULES);
    let mut client = server.client();
    let mut other = Vec::new();
    for (ask, field) in cases {
        let answer = client.post(path, ask);
        if answer.status != 400 || answer.json()["field"] != *field {
            other.push(format!("{ask} should be wrong in `{field}`: {answer:?}"));
        } else {
            answer.problem(400);
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n\n"));
    let answer = client.check(&json!({"request": {"path": "/"}})).allowed();
    assert_eq!(answer.remaining(), 4, "something was counted or changed");
}

fn with(field: &str, value: Value) -> Value {
    let mut request = json!({"path": "/"});
    request[field] = value;
    json!({ "request": request })
}

#[test]
fn every_field_of_a_request() {
    let mut cases = vec![
        (json!({"request": {}}), "request.path"),
        (json!({"request": "x"}), "request"),
        (json!({"request": 1}), "request"),
        (json!({"request": []}), "request"),
        (with("path", json!("")), "request.path"),
        (with("path", json!("login")), "request.path"),
        (with("path", json!("*")), "request.path"),
        (with("path", json!("http://example.com/")), "request.path"),
        (with("path", json!("/a b")), "request.path"),
        (with("path", json!("/a\u{0}")), "request.path"),
        (with("path", json!("/a\r\nb")), "request.path"),
        (with("method", json!("")), "request.method"),
        (with("method", json!("G T")), "request.method"),
        (with("method", json!("GET\n")), "request.method"),
        (with("host", json!("a b")), "request.host"),
        (with("host", json!("a\nb")), "request.host"),
        (with("ip", json!("")), "request.ip"),
        (with("ip", json!("nobody")), "request.ip"),
        (with("ip", json!("203.0.113.7:80")), "request.ip"),
        (with("ip", json!("203.0.113.0/24")), "request.ip"),
        (with("ip", json!("1.2.3.256")), "request.ip"),
        (with("headers", json!([])), "request.headers"),
        (with("headers", json!("x")), "request.headers"),
        (with("headers", json!({"x": 1})), "request.headers.x"),
        (with("headers", json!({"x": null})), "request.headers.x"),
        (with("headers", json!({"x": {}})), "request.headers.x"),
        (with("headers", json!({"a": "b", "x": ["a", 1]})), "request.headers.x[1]"),
        (with("headers", json!({"x": "a\nb"})), "request.headers.x"),
        (with("headers", json!({"x y": "a"})), "request.headers.x y"),
        (with("facts", json!([])), "request.facts"),
        (with("facts", json!({"tenant": 1})), "request.facts.tenant"),
        (with("facts", json!({"tenant": ["a"]})), "request.facts.tenant"),
        (with("colour", json!("red")), "request.colour"),
        (with("cost", json!(1)), "request.cost"),
    ];
    for (field, place) in [
        ("path", "request.path"),
        ("method", "request.method"),
        ("host", "request.host"),
        ("ip", "request.ip"),
        ("body", "request.body"),
        ("user", "request.user"),
        ("api_key", "request.api_key"),
        ("tier", "request.tier"),
    ] {
        for value in [json!(1), json!(true), json!(["a"]), json!({"a": "b"})] {
            cases.push((with(field, value), place));
        }
    }
    all_wrong("/v1/check", &cases);
}

#[test]
fn costs_and_reserve_beside_a_request() {
    let mut cases = Vec::new();
    for (field, value) in [
        ("cost", json!(-1)),
        ("cost", json!("1")),
        ("cost", json!(0.5)),
        ("reserve", json!(1)),
        ("reserve", json!("yes")),
    ] {
        let mut ask = with("method", json!("GET"));
        ask[field] = value;
        cases.push((ask, field));
    }
    all_wrong("/v1/check", &cases);
}

#[test]
fn without_rules_there_is_nothing_to_ask_by() {
    let server = Server::start(&[]);
    let answer = server.request(&json!({"path": "/"})).wrong("request");
    assert!(answer.text().contains("--config"), "it says what to do: {answer:?}");
}

#[test]
fn settling() {
    all_wrong(
        "/v1/settle",
        &[
            (json!({}), "reservation"),
            (json!({"used": 1}), "reservation"),
            (json!({"reservation": "x"}), "used"),
            (json!({"reservation": 1, "used": 1}), "reservation"),
            (json!({"reservation": "x", "used": -1}), "used"),
            (json!({"reservation": "x", "used": 1.5}), "used"),
            (json!({"reservation": "x", "used": "1"}), "used"),
            (json!({"reservation": "x", "used": null}), "used"),
            (json!({"reservation": "x", "used": 1, "cost": 1}), "cost"),
        ],
    );
}

#[test]
fn which_key() {
    let wrong = [
        (json!({"key": "a"}), "limit"),
        (json!({"limit": "5/h"}), "key"),
        (json!({"key": "a", "limit": "5"}), "limit"),
        (json!({"key": "", "limit": "5/h"}), "key"),
        (json!({"key": "a", "limit": "5/h", "cost": 1}), "cost"),
        (json!({"key": "a", "limit": "5/h", "algorithm": "magic"}), "algorithm"),
        (json!({"request": {}}), "request.path"),
        (json!({"request": {"path": "/"}, "rule": "nobody"}), "rule"),
        (json!({"rule": "nobody", "id": "00"}), "rule"),
        (json!({"rule": "all", "id": "what?"}), "id"),
        (json!({"rule": 1, "id": "00"}), "rule"),
        (json!({"rule": "all", "id": 1}), "id"),
        (json!({"id": "00"}), "rule"),
        (json!({"checks": []}), "checks"),
    ];
    for path in ["/v1/keys/peek", "/v1/keys/reset", "/v1/keys/unblock"] {
        all_wrong(path, &wrong);
        all_wrong(path, &[(json!({"key": "a", "limit": "5/h", "for": "1min"}), "for")]);
    }
    let mut block = Vec::new();
    for (mut ask, field) in wrong {
        ask["for"] = json!("10min");
        block.push((ask, field));
    }
    for value in [json!(""), json!("soon"), json!("10"), json!("-1s"), json!("0s"), json!(10)] {
        block.push((json!({"key": "a", "limit": "5/h", "for": value}), "for"));
    }
    block.push((json!({"key": "a", "limit": "5/h"}), "for"));
    all_wrong("/v1/keys/block", &block);
}

/// Which of the two is meant nobody knows; a reset of the wrong one cannot be taken back.
#[test]
fn a_key_is_named_in_one_way_only() {
    let server = Server::by(RULES);
    let key = json!({"key": "a", "limit": "5/h", "cost": 5});
    server.check(&key).allowed();
    server.check(&json!({"request": {"path": "/"}, "cost": 5})).allowed();
    let mut accepted = Vec::new();
    for ask in [
        json!({"key": "a", "limit": "5/h", "request": {"path": "/"}}),
        json!({"key": "a", "limit": "5/h", "rule": "all"}),
        json!({"key": "a", "limit": "5/h", "id": "00"}),
        json!({"request": {"path": "/"}, "id": "00"}),
        json!({"request": {"path": "/"}, "zone": "UTC"}),
        json!({"rule": "all", "id": "00", "limit": "5/h"}),
    ] {
        let answer = server.post("/v1/keys/reset", &ask);
        if answer.status != 400 {
            accepted.push(format!("{ask}: {answer:?}"));
        }
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n\n"));
}

#[test]
fn how_many_of_the_top() {
    let server = Server::start(&[]);
    for query in ["n=0", "n=-1", "n=x", "n=", "n=1.5", "n=99999999999999999999"] {
        server.get(&format!("/v1/keys/top?{query}")).wrong("n");
    }
    server.get("/v1/keys/top?m=3").wrong("m");
}
