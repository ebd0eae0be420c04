//! Two instances on one Redis.

use dashpot_testkit::RedisServer;
use serde_json::{Value, json};

use crate::support::{Server, until};

fn instance(redis: &RedisServer, token: &str) -> Server {
    let url = redis.url();
    // Tests share the machine: an answer may take its time.
    let rules = format!("[store]\nurl = '{url}'\ndeadline = '5s'");
    Server::with(&rules, &["--admin-token", token])
}

#[track_caller]
fn reserve(server: &Server, mut ask: Value) -> String {
    ask["reserve"] = json!(true);
    let answer = server.check(&ask).allowed();
    assert!(answer.json().get("degraded").is_none(), "{answer:?}");
    answer.reservation()
}

fn left(server: &Server) -> u64 {
    server.check(&json!({"key": "a", "limit": "10/h", "cost": 0})).allowed().remaining()
}

#[test]
fn one_settles_what_the_other_reserved() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-1"));
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 6}));
    assert_eq!(left(&other), 4, "they count together");
    assert_eq!(other.settle(&token, 2).is(200).json(), json!({"settled": true}));
    assert_eq!(left(&one), 8);
    one.settle(&token, 0).problem(409);
    other.settle(&token, 0).problem(409);
    assert_eq!(left(&one), 8, "settled twice");
}

#[test]
fn permits_are_given_back_by_the_other() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-1"));
    let ask = json!({"key": "a", "limit": "1 concurrent"});
    let token = reserve(&one, ask.clone());
    let mut again = ask.clone();
    again["reserve"] = json!(true);
    other.check(&again).denied("limited");
    other.settle(&token, 1).is(200);
    reserve(&one, ask);
}

#[test]
fn another_token_makes_strangers() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-2"));
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 6}));
    other.settle(&token, 0).problem(404);
    assert_eq!(left(&one), 4);
    one.settle(&token, 0).is(200);
}

#[test]
fn a_block_holds_everywhere() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-1"));
    let body = json!({"key": "a", "limit": "10/h", "for": "1h"}).to_string();
    let bearer = [("Authorization", "Bearer secret-1")];
    one.client().ask("POST", "/v1/keys/block", &bearer, body.as_bytes()).is(200);
    other.check(&json!({"key": "a", "limit": "10/h"})).denied("limited");
}

#[test]
fn every_algorithm_settles_on_redis() {
    let redis = RedisServer::start();
    let server = instance(&redis, "secret-1");
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        let ask = |cost: u64| json!({"key": "a", "limit": "10/year", "algorithm": algorithm, "cost": cost});
        let token = reserve(&server, ask(8));
        server.settle(&token, 3).is(200);
        assert_eq!(server.check(&ask(0)).allowed().remaining(), 7, "{algorithm}");
        let token = reserve(&server, ask(1));
        server.settle(&token, 4).is(200);
        assert_eq!(server.check(&ask(0)).allowed().remaining(), 3, "{algorithm}");
    }
    assert!(redis.keys_without_ttl().is_empty(), "429 for ever");
}

#[test]
fn the_same_token_without_the_same_redis_makes_strangers() {
    let (here, there) = (RedisServer::start(), RedisServer::start());
    let (one, other) = (instance(&here, "secret-1"), instance(&there, "secret-1"));
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 6}));
    other.settle(&token, 9).problem(404);
    assert_eq!(left(&other), 10, "it never charged anything");
}

#[test]
fn the_same_token_in_memory_makes_strangers() {
    let memory = || Server::start(&["--admin-token", "secret-1"]);
    let (one, other) = (memory(), memory());
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 6}));
    other.settle(&token, 9).problem(404);
    assert_eq!(left(&other), 10, "it never charged anything");
}

#[test]
fn too_late_is_too_late_for_all() {
    let redis = RedisServer::start();
    let rules = format!("[store]\nurl = '{}'\ndeadline = '5s'", redis.url());
    let start = || Server::with(&rules, &["--admin-token", "secret-1", "--reservation-ttl", "1s"]);
    let (one, other) = (start(), start());
    let ask = json!({"checks": [
        {"key": "a", "limit": "10/h", "cost": 6}, {"key": "a", "limit": "6 concurrent", "cost": 6},
    ]});
    let token = reserve(&one, ask);
    let peek = json!({"key": "a", "limit": "6 concurrent", "cost": 0});
    assert_eq!(other.check(&peek).allowed().remaining(), 0);
    until("permits that lapse", || other.check(&peek).allowed().remaining() == 6);
    other.settle(&token, 0).problem(410);
    one.settle(&token, 0).problem(410);
    assert_eq!(left(&one), 4, "everything else stays charged");
}

#[test]
fn a_store_that_is_gone_is_503_and_trying_again_helps() {
    let redis = RedisServer::start();
    let one = instance(&redis, "secret-1");
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 6}));
    redis.kill();
    one.settle(&token, 0).problem(503);
    redis.restart();
    let mut answer = one.settle(&token, 0);
    until("a store that answers", || {
        answer = one.settle(&token, 0);
        answer.status != 503
    });
    answer.is(200);
}

/// Given back twice, it would let others' use pass as well: more than the limit is admitted.
#[test]
fn what_two_instances_settle_comes_back_once() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-1"));
    let token = reserve(&one, json!({"key": "a", "limit": "10/h", "cost": 5}));
    one.check(&json!({"key": "a", "limit": "10/h", "cost": 5})).allowed();
    one.settle(&token, 0).is(200);
    assert_eq!(left(&one), 5);
    other.settle(&token, 0);
    assert_eq!(left(&one), 5, "given back twice");
}

#[test]
fn a_restart_does_not_forget_what_was_settled() {
    let redis = RedisServer::start();
    let first = instance(&redis, "secret-1");
    let token = reserve(&first, json!({"key": "a", "limit": "10/h", "cost": 5}));
    first.check(&json!({"key": "a", "limit": "10/h", "cost": 5})).allowed();
    first.settle(&token, 0).is(200);
    drop(first);
    let second = instance(&redis, "secret-1");
    assert_eq!(left(&second), 5);
    second.settle(&token, 0).problem(409);
    assert_eq!(left(&second), 5, "given back twice");
}

#[test]
fn permits_that_two_instances_settle_come_back_once() {
    let redis = RedisServer::start();
    let (one, other) = (instance(&redis, "secret-1"), instance(&redis, "secret-1"));
    let ask = json!({"key": "a", "limit": "2 concurrent"});
    let (first, _second) = (reserve(&one, ask.clone()), reserve(&one, ask));
    one.settle(&first, 1).is(200);
    other.settle(&first, 1);
    let peek = json!({"key": "a", "limit": "2 concurrent", "cost": 0});
    assert_eq!(one.check(&peek).allowed().remaining(), 1, "one is still in flight");
}
