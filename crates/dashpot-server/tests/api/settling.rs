//! Reserve a guess, settle with what it really cost.

use serde_json::{Value, json};

use crate::support::{Server, pass};

fn left(server: &Server, key: &str, limit: &str) -> u64 {
    server.check(&json!({"key": key, "limit": limit, "cost": 0})).allowed().remaining()
}

#[track_caller]
fn reserve(server: &Server, mut ask: Value) -> String {
    ask["reserve"] = json!(true);
    server.check(&ask).allowed().reservation()
}

#[test]
fn less_is_given_back_and_more_is_charged() {
    let server = Server::start(&[]);
    for (key, used, then) in [("a", 3, 97), ("b", 10, 90), ("c", 0, 100), ("d", 40, 60)] {
        let token = reserve(&server, json!({"key": key, "limit": "100/day", "cost": 10}));
        assert_eq!(left(&server, key, "100/day"), 90);
        let answer = server.settle(&token, used).is(200);
        assert_eq!(answer.json(), json!({"settled": true}));
        assert_eq!(left(&server, key, "100/day"), then, "{used} used");
    }
}

#[test]
fn every_algorithm_gives_back() {
    let server = Server::start(&[]);
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let ask =
            |cost| json!({"key": "a", "limit": "10/year", "algorithm": algorithm, "cost": cost});
        let token = reserve(&server, ask(8));
        server.settle(&token, 3).is(200);
        assert_eq!(server.check(&ask(0)).allowed().remaining(), 7, "{algorithm}");
        let token = reserve(&server, ask(1));
        server.settle(&token, 4).is(200);
        assert_eq!(server.check(&ask(0)).allowed().remaining(), 3, "{algorithm}");
    }
}

#[test]
fn more_than_there_is_becomes_debt() {
    let server = Server::start(&[]);
    let token = reserve(&server, json!({"key": "a", "limit": "10/h", "cost": 1}));
    server.settle(&token, 30).is(200);
    let answer = server.check(&json!({"key": "a", "limit": "10/h"})).denied("limited");
    assert_eq!(answer.remaining(), 0);
    // 30 used of 10: 21 have to come back, at 10 an hour.
    let hours = answer.retry_after() / 3600.0;
    assert!((2.05..=2.1).contains(&hours), "{answer:?}");
}

#[test]
fn with_several_checks_it_is_charged_to_each() {
    let server = Server::start(&[]);
    let checks = json!([
        {"key": "a", "limit": "10/h", "cost": 5}, {"key": "b", "limit": "20/day", "cost": 1},
    ]);
    let token = reserve(&server, json!({ "checks": checks }));
    server.settle(&token, 3).is(200);
    assert_eq!(left(&server, "a", "10/h"), 7);
    assert_eq!(left(&server, "b", "20/day"), 17);
}

#[test]
fn a_second_time_is_a_conflict() {
    let server = Server::start(&[]);
    let token = reserve(&server, json!({"key": "a", "limit": "10/h", "cost": 5}));
    server.settle(&token, 1).is(200);
    for used in [1, 0, 9] {
        server.settle(&token, used).problem(409);
    }
    assert_eq!(left(&server, "a", "10/h"), 9, "settled once");
}

#[test]
fn only_what_was_given_out_is_taken() {
    let server = Server::start(&[]);
    let token = reserve(&server, json!({"key": "a", "limit": "10/h", "cost": 5}));
    let mut client = server.client();
    let mut settle =
        |token: &str| client.post("/v1/settle", &json!({"reservation": token, "used": 0}));
    for garbage in [
        "",
        "x",
        "AAAA",
        "null",
        "é",
        &"A".repeat(60_000),
        &token[1..],
        &format!("{token}A"),
        &format!("{token}="),
        &format!(" {token}"),
        &token.to_uppercase(),
    ] {
        settle(garbage).problem(404);
    }
    let flips: Vec<usize> = (0..token.len()).collect();
    for at in flips {
        let mut bytes = token.clone().into_bytes();
        bytes[at] = if bytes[at] == b'A' { b'B' } else { b'A' };
        settle(&String::from_utf8(bytes).unwrap()).problem(404);
        settle(&token[..at]).problem(404);
    }
    assert_eq!(left(&server, "a", "10/h"), 5, "something was given back");
    settle(&token).is(200);
    assert_eq!(left(&server, "a", "10/h"), 10);
}

#[test]
fn another_server_does_not_know_it() {
    let (one, other) = (Server::start(&[]), Server::start(&[]));
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 5}));
    other.settle(&token, 0).problem(404);
    one.settle(&token, 0).is(200);
}

#[test]
fn there_is_a_reservation_only_if_asked_for_and_taken() {
    let server = Server::start(&[]);
    let with = |more: Value| {
        let mut ask = json!({"key": "a", "limit": "1/h"});
        ask.as_object_mut().unwrap().append(more.clone().as_object_mut().unwrap());
        server.check(&ask)
    };
    let none = |answer: crate::support::Answer| assert!(answer.json().get("reservation").is_none());
    none(with(json!({"reserve": true, "cost": 0})).allowed());
    none(with(json!({"reserve": false})).allowed());
    none(with(json!({"reserve": true})).denied("limited"));
}

#[test]
fn by_rules_what_settles_is_settled() {
    let server = Server::by(
        "[[rule]]\nname = 'tokens'\nlimits = ['1000/h']\ncost = 100\nsettle = 'header:x-used'\n\
         [[rule]]\nname = 'requests'\nlimits = ['50/day']",
    );
    let ask = json!({"request": {"path": "/"}});
    let token = reserve(&server, ask);
    server.settle(&token, 30).is(200);
    let peek = || server.check(&json!({"request": {"path": "/"}, "cost": 0})).allowed();
    assert_eq!(peek().policy(0)["remaining"], 970, "{:?}", peek());
    // The other counts requests: it is not charged with tokens.
    assert_eq!(peek().policy(1)["remaining"], 49, "{:?}", peek());
}

#[test]
fn by_rules_0_gives_all_back() {
    let server = Server::by(
        "[[rule]]\nname = 'tokens'\nlimits = ['1000/h']\ncost = 100\nsettle = 'header:x-used'\n\
         [[rule]]\nname = 'requests'\nlimits = ['50/day']",
    );
    let token = reserve(&server, json!({"request": {"path": "/"}}));
    server.settle(&token, 0).is(200);
    let after = server.check(&json!({"request": {"path": "/"}, "cost": 0})).allowed();
    assert_eq!(after.policy(0)["remaining"], 1000, "{after:?}");
    assert_eq!(after.policy(1)["remaining"], 50, "{after:?}");
}

#[test]
fn by_rules_that_say_nothing_of_it_all_are_settled() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['100/h', '500/day']");
    let token = reserve(&server, json!({"request": {"path": "/"}, "cost": 10}));
    server.settle(&token, 4).is(200);
    let peek = server.check(&json!({"request": {"path": "/"}, "cost": 0})).allowed();
    assert_eq!(peek.policy(0)["remaining"], 96, "{peek:?}");
    assert_eq!(peek.policy(1)["remaining"], 496, "{peek:?}");
}

#[test]
fn by_rules_what_depends_on_the_response_is_given_back_with_0() {
    let rules = "[[rule]]\nname = 'login'\nlimits = ['5/h']\ncharge_on = [401]";
    let server = Server::by(rules);
    let peek = || server.check(&json!({"request": {"path": "/"}, "cost": 0})).allowed().remaining();
    let token = reserve(&server, json!({"request": {"path": "/"}}));
    assert_eq!(peek(), 4);
    server.settle(&token, 0).is(200);
    assert_eq!(peek(), 5);
    let token = reserve(&server, json!({"request": {"path": "/"}}));
    server.settle(&token, 1).is(200);
    assert_eq!(peek(), 4);
}

#[test]
fn too_late_is_gone_and_stays_charged() {
    let server = Server::start(&["--reservation-ttl", "1s"]);
    let token = reserve(&server, json!({"key": "a", "limit": "10/h", "cost": 5}));
    pass(1.2);
    server.settle(&token, 0).problem(410);
    assert_eq!(left(&server, "a", "10/h"), 5);
}
