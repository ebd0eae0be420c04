//! Several checks in one question.

use serde_json::{Value, json};

use crate::support::Server;

fn left(server: &Server, key: &str, limit: &str) -> u64 {
    server.check(&json!({"key": key, "limit": limit, "cost": 0})).allowed().remaining()
}

#[test]
fn all_are_charged_or_none() {
    let server = Server::start(&[]);
    let both = json!({"checks": [
        {"key": "alice", "limit": "10/h", "cost": 3},
        {"key": "everybody", "limit": "4/h", "cost": 3},
    ]});
    let answer = server.check(&both).allowed();
    assert_eq!(answer.policies(), 2);
    assert_eq!(answer.policy(0)["policy"], "alice", "in the order of the question");
    assert_eq!(answer.policy(0)["remaining"], 7);
    assert_eq!(answer.policy(1)["policy"], "everybody");
    assert_eq!(answer.policy(1)["remaining"], 1);
    for _ in 0..5 {
        let answer = server.check(&both).denied("limited");
        assert_eq!(answer.policy(0)["outcome"], "allow", "this one had room: {answer:?}");
        assert!(answer.policy(0)["retry_after"].is_null(), "{answer:?}");
        assert_eq!(answer.policy(1)["outcome"], "deny", "{answer:?}");
    }
    assert_eq!(left(&server, "alice", "10/h"), 7, "hammering drained it");
    assert_eq!(left(&server, "everybody", "4/h"), 1);
}

#[test]
fn a_denial_first_takes_none_of_what_follows() {
    let server = Server::start(&[]);
    let both = json!({"checks": [
        {"key": "closed", "limit": "0/h"},
        {"key": "log", "limit": "5/h", "algorithm": "sliding-log"},
        {"key": "window", "limit": "5/year", "algorithm": "fixed-window"},
        {"key": "slide", "limit": "5/year", "algorithm": "sliding-window"},
        {"key": "queue", "limit": "5/h", "algorithm": "leaky-bucket", "queue": 4},
        {"key": "bucket", "limit": "5/h"},
    ]});
    let before = server.check(&both).denied("limited").json();
    let after = server.check(&both).denied("limited").json();
    assert_eq!(before["policies"].as_array().unwrap().len(), 6);
    assert_eq!(before["policies"], after["policies"], "something was taken");
}

#[test]
fn one_key_may_have_several_windows() {
    let server = Server::start(&[]);
    let both = json!({"checks": [
        {"key": "alice", "limit": "2/h"}, {"key": "alice", "limit": "5/day"},
    ]});
    server.check(&both).allowed();
    let answer = server.check(&both).allowed();
    assert_eq!(answer.policy(0)["remaining"], 0, "{answer:?}");
    assert_eq!(answer.policy(1)["remaining"], 3, "{answer:?}");
    server.check(&both).denied("limited");
    assert_eq!(left(&server, "alice", "5/day"), 3);
}

#[test]
fn the_longest_wait_of_those_that_deny_is_told() {
    let server = Server::start(&[]);
    let both = json!({"checks": [
        {"key": "a", "limit": "1/min"}, {"key": "a", "limit": "1/h"}, {"key": "a", "limit": "9/day"},
    ]});
    server.check(&both).allowed();
    let answer = server.check(&both).denied("limited");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((3_500..=3_600).contains(&wait), "{answer:?}");
    // No wait would do for one of them: then there is none to tell.
    let never = json!({"checks": [{"key": "a", "limit": "1/min"}, {"key": "b", "limit": "0/h"}]});
    let answer = server.check(&never).denied("limited");
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
}

#[test]
fn duplicates_are_one_check_with_the_sum_of_costs() {
    let server = Server::start(&[]);
    let twice = json!({"checks": [
        {"key": "alice", "limit": "5/h", "cost": 2}, {"key": "alice", "limit": "5/h", "cost": 1},
    ]});
    let answer = server.check(&twice).allowed();
    let policies: Vec<Value> = answer.json()["policies"].as_array().unwrap().clone();
    assert!(policies.iter().all(|policy| policy["remaining"] == 2), "{answer:?}");
    server.check(&twice).denied("limited");
    assert_eq!(left(&server, "alice", "5/h"), 2);
    // Each alone would pass; both never do.
    let never = json!({"checks": [
        {"key": "bob", "limit": "1/h"}, {"key": "bob", "limit": "1/h"},
    ]});
    let answer = server.check(&never).denied("limited");
    assert_eq!(answer.header("retry-after"), None, "{answer:?}");
    assert_eq!(left(&server, "bob", "1/h"), 1);
}

#[test]
fn one_counter_with_two_limits_never_over_admits() {
    let server = Server::start(&[]);
    // The same key, algorithm and window, but two counts: whatever is answered, what is taken is
    // taken from one counter.
    let odd = json!({"checks": [{"key": "a", "limit": "3/h"}, {"key": "a", "limit": "9/h"}]});
    let answer = server.check(&odd);
    let used = match answer.status {
        200 => 2,
        400 | 429 => 0,
        _ => panic!("{answer:?}"),
    };
    assert_eq!(left(&server, "a", "9/h"), 9 - used, "{answer:?}");
}

#[test]
fn there_may_be_64_checks_and_no_more() {
    let server = Server::start(&[]);
    let checks = |count: usize| -> Value {
        (0..count).map(|n| json!({"key": format!("k{n}"), "limit": "5/h"})).collect()
    };
    let answer = server.check(&json!({ "checks": checks(64) })).allowed();
    assert_eq!(answer.policies(), 64);
    assert_eq!(answer.policy(63)["policy"], "k63");
    server.check(&json!({ "checks": checks(65) })).wrong("checks");
    server.check(&json!({"checks": []})).wrong("checks");
    assert_eq!(left(&server, "k0", "5/h"), 4, "a wrong question took something");
}
