//! Every algorithm, by what it promises. Windows of the calendar are long here, so that none ends
//! while a test looks at it.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::support::{Answer, Server, pass};

fn ask(server: &Server, algorithm: &str, limit: &str, more: Value) -> Answer {
    let mut body = json!({"key": "alice", "limit": limit, "algorithm": algorithm});
    body.as_object_mut().unwrap().append(more.clone().as_object_mut().unwrap());
    server.check(&body)
}

#[test]
fn each_allows_its_limit_and_denies_the_next() {
    let server = Server::start(&[]);
    for algorithm in
        ["token-bucket", "leaky-bucket", "fixed-window", "sliding-log", "sliding-window"]
    {
        for left in [2, 1, 0] {
            let answer = ask(&server, algorithm, "3/year", json!({})).allowed();
            assert_eq!(answer.remaining(), left, "{algorithm}");
            assert_eq!(answer.policy(0)["limit"], 3, "{algorithm}");
            assert_eq!(answer.json()["delay"].as_f64(), Some(0.0), "{algorithm}");
            assert!(answer.policy(0)["reset_after"].as_f64().unwrap() > 0.0, "{algorithm}");
        }
        let answer = ask(&server, algorithm, "3/year", json!({})).denied("limited");
        assert!(answer.retry_after() > 0.0, "{algorithm}");
        assert_eq!(ask(&server, algorithm, "3/year", json!({"cost": 0})).allowed().remaining(), 0);
    }
}

#[test]
fn a_queue_tells_how_long_to_wait() {
    let server = Server::start(&[]);
    let queued = || ask(&server, "leaky-bucket", "1/min", json!({"queue": 2}));
    let delay = |answer: &Answer| answer.json()["delay"].as_f64().unwrap();
    assert_eq!(delay(&queued().allowed()), 0.0);
    let second = delay(&queued().allowed());
    assert!((50.0..=60.0).contains(&second), "{second}");
    let third = delay(&queued().allowed());
    assert!((110.0..=120.0).contains(&third), "{third}");
    let answer = queued().denied("limited");
    assert!((50.0..=60.0).contains(&answer.retry_after()), "{answer:?}");
}

#[test]
fn the_undelayed_places_of_a_queue_proceed_at_once() {
    let server = Server::start(&[]);
    let queued = || ask(&server, "leaky-bucket", "1/min", json!({"queue": 2, "undelayed": 1}));
    let delay = |answer: &Answer| answer.json()["delay"].as_f64().unwrap();
    assert_eq!(delay(&queued().allowed()), 0.0);
    assert_eq!(delay(&queued().allowed()), 0.0);
    let third = delay(&queued().allowed());
    assert!((50.0..=60.0).contains(&third), "{third}");
    queued().denied("limited");
}

#[test]
fn days_begin_at_midnight_of_the_zone() {
    let server = Server::start(&[]);
    for (zone, hours) in [("UTC", 0.0), ("Asia/Tokyo", 9.0), ("America/Phoenix", -7.0)] {
        let answer = ask(&server, "fixed-window", "5/day", json!({"zone": zone})).allowed();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        let left = 86_400.0 - (now + hours * 3600.0).rem_euclid(86_400.0);
        let told = answer.policy(0)["reset_after"].as_f64().unwrap();
        // Around midnight, either day is right.
        let apart = (told - left).rem_euclid(86_400.0);
        assert!(!(10.0..=86_390.0).contains(&apart), "{zone}: {told}, not {left}");
    }
    let month = ask(&server, "fixed-window", "5/month", json!({})).allowed();
    assert!(month.policy(0)["reset_after"].as_f64().unwrap() <= 31.0 * 86_400.0);
}

#[test]
fn a_sliding_log_forgets_what_is_older_than_the_window() {
    let server = Server::start(&[]);
    let log = || ask(&server, "sliding-log", "2/400ms", json!({}));
    log();
    log();
    // The two may be apart by more than the window if the machine is busy; then there was room.
    let answer = log();
    let wait = if answer.status == 429 { answer.retry_after() } else { 0.4 };
    assert!(wait <= 0.4, "{answer:?}");
    pass(0.4);
    assert_eq!(log().allowed().remaining(), 1, "all of before is gone");
}

#[test]
fn unlimited_never_denies() {
    let server = Server::start(&[]);
    for cost in [0, 1, 1_000_000, u64::MAX, u64::MAX] {
        let answer =
            server.check(&json!({"key": "a", "limit": "unlimited", "cost": cost})).allowed();
        assert!(answer.policies() <= 1, "{answer:?}");
    }
}

#[test]
fn a_limit_of_zero_never_allows_and_names_no_wait() {
    let server = Server::start(&[]);
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let answer = ask(&server, algorithm, "0/min", json!({})).denied("limited");
        assert!(answer.policy(0)["retry_after"].is_null(), "{answer:?}");
        assert_eq!(answer.policy(0)["limit"], 0, "{answer:?}");
        assert_eq!(answer.header("retry-after"), None, "{answer:?}");
        ask(&server, algorithm, "0/min", json!({"cost": 0})).allowed();
    }
}

#[test]
fn huge_counts_are_exact() {
    let server = Server::start(&[]);
    let ask =
        |limit: &str, cost: u64| server.check(&json!({"key": limit, "limit": limit, "cost": cost}));
    // Far above what a double holds: a float on the way would lose the last digits.
    let answer = ask("1000000000000000/year", 1).allowed();
    assert_eq!(answer.policy(0)["limit"], 1_000_000_000_000_000_u64, "{answer:?}");
    let answer = ask("9007199254740993/year", 0).allowed();
    assert_eq!(answer.policy(0)["remaining"], 9_007_199_254_740_993_u64, "{answer:?}");
    let answer = ask("1T/day", 1_000_000_000_000).allowed();
    assert_eq!(answer.policy(0)["limit"], 1_000_000_000_000_u64, "{answer:?}");
    ask("1T/day", 900_000_000_000).denied("limited");
    let never = ask("10/s", u64::MAX).denied("limited");
    assert!(never.policy(0)["retry_after"].is_null(), "{never:?}");
    let windows = json!({"key": "w", "limit": "1G/year", "algorithm": "fixed-window",
        "cost": 999_999_999});
    assert_eq!(server.check(&windows).allowed().remaining(), 1);
    server.check(&windows).denied("limited");
}
