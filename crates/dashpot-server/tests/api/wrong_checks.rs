//! Questions that are wrong: a 400 that names the field, and nothing is counted.

use serde_json::{Value, json};

use crate::support::Server;

/// A good question about one limit, with one field replaced.
fn with(field: &str, value: Value) -> Value {
    let mut ask = json!({"key": "alice", "limit": "5/h"});
    ask[field] = value;
    ask
}

/// Asks all, tells all that were not refused as they should be, and then looks whether anything was
/// counted.
#[track_caller]
fn all_wrong(cases: &[(Value, &str)]) {
    let server = Server::start(&[]);
    let mut client = server.client();
    let mut other = Vec::new();
    for (ask, field) in cases {
        let answer = client.check(ask);
        if answer.status != 400 || answer.json()["field"] != *field {
            other.push(format!("{ask} should be wrong in `{field}`: {answer:?}"));
        } else {
            answer.problem(400);
        }
    }
    assert!(other.is_empty(), "{}", other.join("\n\n"));
    // Still on the first connection.
    let peek = json!({"key": "alice", "limit": "5/h", "cost": 0});
    assert_eq!(client.check(&peek).allowed().remaining(), 5, "something was counted");
    assert_eq!(client.get("/v1/keys/top").is(200).json(), json!({"keys": []}));
}

#[test]
fn what_is_missing_is_named() {
    all_wrong(&[
        (json!({"key": "alice"}), "limit"),
        (json!({"limit": "5/h"}), "key"),
        (json!({"key": "alice", "limit": null}), "limit"),
        (json!({"key": null, "limit": "5/h"}), "key"),
        (json!({"checks": []}), "checks"),
        (json!({"checks": [{"key": "alice", "limit": "5/h"}, {}]}), "checks[1].key"),
        (json!({"checks": [{"key": "alice", "limit": "5/h"}, {"key": "b"}]}), "checks[1].limit"),
    ]);
    let server = Server::start(&[]);
    let detail = server.check(&json!({})).problem(400).json()["detail"].to_string();
    for form in ["key", "checks", "request"] {
        assert!(detail.contains(form), "it does not say that there is `{form}`: {detail}");
    }
}

#[test]
fn texts_that_are_no_texts() {
    let mut cases = Vec::new();
    for field in ["key", "limit", "algorithm", "zone"] {
        for value in [json!(1), json!(true), json!(["a"]), json!({"a": 1})] {
            cases.push((with(field, value), field));
        }
    }
    all_wrong(&cases);
}

#[test]
fn limits_that_are_none() {
    let mut cases = Vec::new();
    for limit in [
        "",
        " ",
        "5",
        "/h",
        "5/",
        "5/fortnight",
        "-1/h",
        "1.5/h",
        "5/0s",
        "5/h burst",
        "5/h burst 0",
        "5/h burst -1",
        "5/h burst x",
        "18446744073709551616/s",
        "5/h 6/h",
        "five/h",
        "5 concurren",
        "UNLIMITED!",
    ] {
        cases.push((with("limit", json!(limit)), "limit"));
    }
    all_wrong(&cases);
}

#[test]
fn algorithms_and_what_does_not_go_with_them() {
    let with = |more: Value| {
        let mut ask = json!({"key": "alice", "limit": "5/h"});
        ask.as_object_mut().unwrap().append(more.clone().as_object_mut().unwrap());
        ask
    };
    all_wrong(&[
        (with(json!({"algorithm": "magic"})), "algorithm"),
        (with(json!({"algorithm": ""})), "algorithm"),
        (with(json!({"algorithm": "concurrency", "reserve": true})), "algorithm"),
        (
            with(json!({"limit": "5 concurrent", "algorithm": "token-bucket", "reserve": true})),
            "algorithm",
        ),
        (with(json!({"limit": "5/h burst 9", "algorithm": "fixed-window"})), "limit"),
        (with(json!({"limit": "5/h burst 9", "algorithm": "sliding-log"})), "limit"),
        (with(json!({"limit": "5/h burst 9", "algorithm": "sliding-window"})), "limit"),
        (with(json!({"limit": "1M/h", "algorithm": "sliding-log"})), "limit"),
        (with(json!({"limit": "5/h burst 9", "algorithm": "leaky-bucket", "queue": 1})), "limit"),
        (with(json!({"queue": 1})), "queue"),
        (with(json!({"algorithm": "fixed-window", "queue": 1})), "queue"),
        (with(json!({"undelayed": 1})), "undelayed"),
        (with(json!({"algorithm": "leaky-bucket", "undelayed": 1})), "undelayed"),
        (with(json!({"algorithm": "leaky-bucket", "queue": 1, "undelayed": 2})), "undelayed"),
        (with(json!({"zone": "Asia/Tokyo"})), "zone"),
        (with(json!({"algorithm": "fixed-window", "zone": "Asia/Tokyo"})), "zone"),
        (with(json!({"algorithm": "fixed-window", "limit": "5/day", "zone": "Mars/Base"})), "zone"),
        (with(json!({"algorithm": "fixed-window", "limit": "5/day", "zone": ""})), "zone"),
    ]);
}

#[test]
fn numbers_that_are_no_whole_numbers() {
    let mut cases = Vec::new();
    for value in [json!(-1), json!(1.5), json!("1"), json!(true), json!([]), json!(1e30)] {
        cases.push((with("cost", value.clone()), "cost"));
        let mut queue = with("queue", value.clone());
        queue["algorithm"] = json!("leaky-bucket");
        cases.push((queue.clone(), "queue"));
        queue["queue"] = json!(3);
        queue["undelayed"] = value;
        cases.push((queue, "undelayed"));
    }
    for value in [json!(1), json!("true"), json!([])] {
        cases.push((with("reserve", value), "reserve"));
    }
    all_wrong(&cases);
}

#[test]
fn one_of_several_is_wrong() {
    let mut cases = Vec::new();
    let good = json!({"key": "alice", "limit": "5/h"});
    for (field, value) in [
        ("key", json!("k".repeat(1025))),
        ("key", json!("")),
        ("key", json!(7)),
        ("limit", json!("5")),
        ("limit", json!(5)),
        ("algorithm", json!("magic")),
        ("queue", json!(1)),
        ("undelayed", json!(1)),
        ("zone", json!("Mars/Base")),
        ("cost", json!(-1)),
        ("colour", json!("red")),
        ("reserve", json!(true)),
        ("request", json!({"path": "/"})),
    ] {
        let place: &str = match field {
            "key" => "checks[1].key",
            "limit" => "checks[1].limit",
            "algorithm" => "checks[1].algorithm",
            "queue" => "checks[1].queue",
            "undelayed" => "checks[1].undelayed",
            "zone" => "checks[1].zone",
            "cost" => "checks[1].cost",
            "colour" => "checks[1].colour",
            "reserve" => "checks[1].reserve",
            _ => "checks[1].request",
        };
        cases.push((json!({"checks": [good, with(field, value), good]}), place));
    }
    cases.push((json!({"checks": [good, 3]}), "checks[1]"));
    cases.push((json!({"checks": [good, null]}), "checks[1]"));
    cases.push((json!({"checks": good}), "checks"));
    cases.push((json!({"checks": "alice"}), "checks"));
    all_wrong(&cases);
}

#[test]
fn forms_do_not_mix_and_nothing_is_unknown() {
    let good = json!({"key": "alice", "limit": "5/h"});
    all_wrong(&[
        (with("colour", json!(1)), "colour"),
        (with("Cost", json!(1)), "Cost"),
        (with("checks", json!([good])), "key"),
        (with("request", json!({"path": "/"})), "key"),
        (json!({"checks": [good], "request": {"path": "/"}}), "checks"),
        (json!({"checks": [good], "limit": "5/h"}), "limit"),
        (json!({"checks": [good], "cost": 2}), "cost"),
        (json!({"checks": [good], "algorithm": "sliding-log"}), "algorithm"),
        (json!({"checks": [good], "zone": "UTC"}), "zone"),
        (json!({"request": {"path": "/"}, "limit": "5/h"}), "limit"),
        (json!({"request": {"path": "/"}, "queue": 1}), "queue"),
        (json!({"request": {"path": "/"}, "undelayed": 1}), "undelayed"),
    ]);
}

#[test]
fn a_question_is_an_object_and_never_a_list() {
    let server = Server::start(&[]);
    let mut client = server.client();
    let nulls = vec![Value::Null; 5];
    let list = [vec![json!("alice"), json!("5/h")], nulls.clone()].concat();
    let whole = [list.clone(), vec![Value::Null, Value::Null, json!(false)]].concat();
    for ask in [json!([]), json!(null), json!("alice"), json!(3), json!(whole)] {
        client.check(&ask).problem(400);
    }
    client.check(&json!({ "checks": [list] })).problem(400);
    let peek = json!({"key": "alice", "limit": "5/h", "cost": 0});
    assert_eq!(client.check(&peek).allowed().remaining(), 5, "a list was counted");
}

/// A caller knows the API, and nothing of the program behind it.
#[test]
fn what_is_wrong_is_told_in_words_of_the_api() {
    let server = Server::start(&[]);
    let good = json!({"key": "alice", "limit": "5/h"});
    let mut odd = Vec::new();
    for ask in [
        json!([]),
        json!("alice"),
        with("cost", json!("1")),
        with("cost", json!(-1)),
        json!({"checks": [good, 3]}),
        json!({"checks": good}),
        json!({"request": {"path": "/", "headers": {"x": 1}}}),
        json!({"request": "x"}),
    ] {
        let detail = server.check(&ask).problem(400).json()["detail"].to_string();
        if ["struct ", "enum ", "variant", "u64", "sequence"].iter().any(|w| detail.contains(w)) {
            odd.push(format!("{ask}: {detail}"));
        }
    }
    assert!(odd.is_empty(), "{odd:#?}");
}
