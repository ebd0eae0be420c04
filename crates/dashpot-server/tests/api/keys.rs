//! Keys: looked at, reset, blocked.

use serde_json::{Value, json};

use crate::support::{Answer, Server};

const RULES: &str = "[[rule]]\nname = 'login'\nmatch = { path = '/login' }\nby = ['ip']\n\
    limits = ['3/h']\n[[rule]]\nname = 'all'\nby = ['ip']\nlimits = ['10/h', '50/day']";

#[track_caller]
fn key(server: &Server, what: &str, body: &Value) -> Answer {
    server.post(&format!("/v1/keys/{what}"), body).is(200)
}

#[track_caller]
fn block(server: &Server, body: &Value, time: &str) -> Answer {
    let mut body = body.clone();
    body["for"] = json!(time);
    key(server, "block", &body)
}

#[test]
fn a_key_is_named_as_it_was_asked_about() {
    let server = Server::start(&[]);
    let alice = json!({"key": "alice", "limit": "10/h"});
    server.check(&json!({"key": "alice", "limit": "10/h", "cost": 4})).allowed();
    for _ in 0..2 {
        let answer = key(&server, "peek", &alice);
        assert_eq!(answer.json()["outcome"], "allow", "{answer:?}");
        assert_eq!(answer.policy(0)["policy"], "alice", "{answer:?}");
        assert_eq!(answer.remaining(), 6, "looking takes nothing");
    }
    assert_eq!(key(&server, "reset", &alice).remaining(), 10);
    assert_eq!(server.check(&alice).allowed().remaining(), 9);
    // Another algorithm or window is another key.
    let log = json!({"key": "alice", "limit": "10/h", "algorithm": "sliding-log"});
    server.check(&log).allowed();
    key(&server, "reset", &alice);
    assert_eq!(key(&server, "peek", &log).remaining(), 9);
}

#[test]
fn a_block_denies_until_it_ends() {
    let server = Server::start(&[]);
    let alice = json!({"key": "alice", "limit": "10/h"});
    server.check(&alice).allowed();
    assert_eq!(block(&server, &alice, "10min").remaining(), 0);
    let answer = server.check(&alice).denied("limited");
    assert!((590.0..=600.0).contains(&answer.retry_after()), "{answer:?}");
    server.check(&json!({"key": "bob", "limit": "10/h"})).allowed();
    // A reset forgets what was counted; the block stays.
    key(&server, "reset", &alice);
    server.check(&alice).denied("limited");
    assert_eq!(key(&server, "unblock", &alice).remaining(), 10, "and nothing was counted since");
    server.check(&alice).allowed();
}

#[test]
fn a_block_ends_by_itself() {
    let server = Server::start(&[]);
    let alice = json!({"key": "alice", "limit": "10/h"});
    block(&server, &alice, "300ms");
    let answer = server.check(&alice);
    if answer.status == 429 {
        crate::support::pass(answer.retry_after());
    }
    server.check(&alice).allowed();
}

#[test]
fn unblocking_keeps_what_was_counted() {
    let server = Server::start(&[]);
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let ask = json!({"key": "a", "limit": "10/year", "algorithm": algorithm});
        server.check(&ask).allowed();
        server.check(&ask).allowed();
        block(&server, &ask, "1h");
        server.check(&ask).denied("limited");
        assert_eq!(key(&server, "unblock", &ask).remaining(), 8, "{algorithm}");
    }
}

#[test]
fn a_request_names_all_it_is_counted_by_or_one_rule() {
    let server = Server::by(RULES);
    let login = json!({"path": "/login", "ip": "203.0.113.7"});
    for _ in 0..3 {
        server.request(&login).allowed();
    }
    server.request(&login).denied("limited");
    let left = |answer: &Answer| -> Vec<(String, u64)> {
        let json = answer.json();
        let policies = json["policies"].as_array().unwrap();
        let one = |p: &Value| {
            (p["policy"].as_str().unwrap().to_owned(), p["remaining"].as_u64().unwrap())
        };
        policies.iter().map(one).collect()
    };
    let of = |pairs: &[(&str, u64)]| -> Vec<(String, u64)> {
        pairs.iter().map(|(name, left)| ((*name).to_owned(), *left)).collect()
    };
    let all = key(&server, "peek", &json!({ "request": login }));
    assert_eq!(left(&all), of(&[("login", 0), ("all-h", 7), ("all-day", 47)]));
    let one = key(&server, "peek", &json!({"request": login, "rule": "all"}));
    assert_eq!(left(&one), of(&[("all-h", 7), ("all-day", 47)]));
    let one = key(&server, "reset", &json!({"request": login, "rule": "login"}));
    assert_eq!(left(&one), of(&[("login", 3)]));
    let all = key(&server, "peek", &json!({ "request": login }));
    assert_eq!(left(&all), of(&[("login", 3), ("all-h", 7), ("all-day", 47)]));
    let all = key(&server, "reset", &json!({ "request": login }));
    assert_eq!(left(&all), of(&[("login", 3), ("all-h", 10), ("all-day", 50)]));

    block(&server, &json!({"request": login, "rule": "login"}), "1h");
    server.request(&login).denied("limited");
    server.request(&json!({"path": "/", "ip": "203.0.113.7"})).allowed();
    server.request(&json!({"path": "/login", "ip": "203.0.113.8"})).allowed();
    key(&server, "unblock", &json!({"request": login, "rule": "login"}));
    server.request(&login).allowed();
}

#[test]
fn top_tells_who_was_denied_most() {
    let server = Server::by(RULES);
    for (last, denials) in [(1, 2), (2, 5), (3, 1), (4, 0)] {
        let request = json!({"path": "/login", "ip": format!("203.0.113.{last}")});
        for _ in 0..3 + denials {
            server.request(&request);
        }
    }
    for _ in 0..6 {
        server.check(&json!({"key": "alice\n", "limit": "2/h"}));
    }
    let top = |query: &str| server.get(&format!("/v1/keys/top{query}")).is(200).json();
    let told: Vec<(Value, Value, u64)> = top("")["keys"]
        .as_array()
        .unwrap()
        .iter()
        .map(|k| (k["rule"].clone(), k["key"].clone(), k["denied"].as_u64().unwrap()))
        .collect();
    let expected = [
        (json!("login"), json!(["ip=203.0.113.2"]), 5),
        (json!(null), json!(["alice\n"]), 4),
        (json!("login"), json!(["ip=203.0.113.1"]), 2),
        (json!("login"), json!(["ip=203.0.113.3"]), 1),
    ];
    assert_eq!(told, expected);
    assert_eq!(top("?n=2")["keys"].as_array().unwrap().len(), 2);
    assert_eq!(top("?n=1000")["keys"].as_array().unwrap().len(), 4);
    assert_eq!(top("")["keys"][1]["id"], "alice\n", "the id of an ad-hoc check is its key");
    for told in top("")["keys"].as_array().unwrap() {
        assert_eq!(told["error"], 0, "{told}");
        // What the log calls it, and nothing that would tell who it is.
        let name = told["log"].as_str().unwrap();
        server.until_log(&format!("key=\"{name}\""));
        assert_eq!(name.len(), 16, "{told}");
    }
    assert!(!server.log().contains("203.0.113"), "{}", server.log());
    assert!(!server.log().contains("alice"), "{}", server.log());
}

#[test]
fn an_id_that_top_told_names_the_key() {
    let server = Server::by(RULES);
    let login = json!({"path": "/login", "ip": "203.0.113.7"});
    for _ in 0..4 {
        server.request(&login);
    }
    let told = server.get("/v1/keys/top?n=1").is(200).json()["keys"][0].clone();
    let by_id = json!({"rule": told["rule"], "id": told["id"]});
    assert_eq!(key(&server, "peek", &by_id).remaining(), 0);
    assert_eq!(key(&server, "reset", &by_id).remaining(), 3);
    server.request(&login).allowed();
    block(&server, &by_id, "1h");
    server.request(&login).denied("limited");
    server.request(&json!({"path": "/login", "ip": "203.0.113.8"})).allowed();
    key(&server, "unblock", &by_id);
    assert_eq!(key(&server, "peek", &by_id).remaining(), 2);
}

#[test]
fn ids_of_odd_keys_come_back_the_same() {
    let server =
        Server::by("[[rule]]\nname = 'pair'\nby = ['header:x-a', 'query:b']\nlimits = ['1/h']\n");
    let long = "v".repeat(400);
    for (a, b) in [("1,2", "x"), ("1", "2,x"), ("", "x"), ("é", "%00"), (&long, "y"), ("=", "|")] {
        let request = json!({"path": format!("/?b={b}"), "headers": {"x-a": a}});
        server.request(&request).allowed();
        server.request(&request).denied("limited");
        let told = server.get("/v1/keys/top?n=1000").is(200).json();
        let newest: Vec<&Value> = told["keys"].as_array().unwrap().iter().collect();
        let reset = newest.iter().filter(|one| {
            let by_id = json!({"rule": one["rule"], "id": one["id"]});
            key(&server, "peek", &by_id).remaining() == 0
        });
        let reset: Vec<_> = reset.collect();
        assert_eq!(reset.len(), 1, "exactly this one is used up: {a:?} {b:?} {told}");
        key(&server, "reset", &json!({"rule": reset[0]["rule"], "id": reset[0]["id"]}));
        server.request(&request).allowed();
        key(&server, "reset", &json!({ "request": request }));
    }
}

#[test]
fn one_counter_for_all_has_an_id_as_well() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['1/h']");
    server.request(&json!({"path": "/"})).allowed();
    server.request(&json!({"path": "/"})).denied("limited");
    let told = server.get("/v1/keys/top").is(200).json()["keys"][0].clone();
    assert_eq!(told["key"], json!([]), "{told}");
    key(&server, "reset", &json!({"rule": told["rule"], "id": told["id"]}));
    server.request(&json!({"path": "/"})).allowed();
}
