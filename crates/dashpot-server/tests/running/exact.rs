//! Limits hold exactly, however many ask at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::service::{Directory, Service};

/// From this many connections at once.
const CONNECTIONS: usize = 8;

/// How many of those who ask this are allowed, if every connection asks so many times.
fn allowed(service: &Service, times: usize, asked: impl Fn(usize) -> String + Sync) -> usize {
    let allowed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CONNECTIONS {
            scope.spawn(|| {
                let mut client = service.client();
                for nth in 0..times {
                    if client.check(&asked(nth)).allowed() {
                        allowed.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    allowed.into_inner()
}

fn check(key: &str, limit: &str, algorithm: &str) -> String {
    format!(r#"{{"key":"{key}","limit":"{limit}","algorithm":"{algorithm}"}}"#)
}

#[test]
fn one_key_is_allowed_as_often_as_it_may() {
    let service = Service::start::<&str>(&[]);
    // A day, so that nothing comes back while they ask: of a bucket, one comes back in 14 minutes.
    for algorithm in ["token-bucket", "leaky-bucket", "sliding-log", "sliding-window"] {
        let count = allowed(&service, 60, |_| check("alice", "100/day", algorithm));
        assert_eq!(count, 100, "{algorithm}");
    }
    // Midnight may come; then it may be as many again.
    let count = allowed(&service, 60, |_| check("alice", "100/year", "fixed-window"));
    assert_eq!(count, 100, "fixed-window");
    let count = allowed(&service, 60, |_| check("minute", "100/min", "sliding-log"));
    assert_eq!(count, 100);
}

#[test]
fn pairs_are_taken_all_or_nothing() {
    let service = Service::start::<&str>(&[]);
    let pair = |_| {
        r#"{"checks":[{"key":"small","limit":"50/day"},{"key":"large","limit":"1000/day"}]}"#
            .to_owned()
    };
    assert_eq!(allowed(&service, 100, pair), 50);
    let left = service.client().check(r#"{"key":"large","limit":"1000/day","cost":0}"#).remaining();
    assert_eq!(left, 950, "denials took nothing");
    // In either order, at the same time.
    let crossed = |nth| {
        let [a, b] = [r#"{"key":"a","limit":"80/day"}"#, r#"{"key":"b","limit":"90/day"}"#];
        let [first, second] = if nth % 2 == 0 { [a, b] } else { [b, a] };
        format!(r#"{{"checks":[{first},{second}]}}"#)
    };
    assert_eq!(allowed(&service, 50, crossed), 80);
    let left = service.client().check(r#"{"key":"b","limit":"90/day","cost":0}"#).remaining();
    assert_eq!(left, 10);
}

#[test]
fn many_keys_do_not_get_into_each_others_way() {
    let service = Service::start::<&str>(&[]);
    let count =
        allowed(&service, 400, |nth| check(&format!("key-{}", nth % 50), "7/day", "token-bucket"));
    assert_eq!(count, 50 * 7);
    let mut client = service.client();
    for nth in 0..50 {
        let looked = format!(r#"{{"key":"key-{nth}","limit":"7/day","cost":0}}"#);
        assert_eq!(client.check(&looked).remaining(), 0);
    }
}

#[test]
fn by_rules_it_is_as_exact() {
    let home = Directory::new();
    let rules = "[[rule]]\nname = 'ip'\nby = ['ip']\nlimits = ['40/day']\n\
                 [[rule]]\nname = 'all'\nlimits = ['100/day']\n";
    let service = Service::with_rules(&home, rules, &[]);
    let asked = |nth: usize| {
        let caller = nth % 4;
        format!(r#"{{"request":{{"path":"/","ip":"203.0.113.{caller}"}}}}"#)
    };
    assert_eq!(allowed(&service, 100, asked), 100);
    // What each was granted comes to what all were.
    let mut client = service.client();
    let used = |caller| {
        let body = format!(r#"{{"request":{{"path":"/","ip":"203.0.113.{caller}"}},"rule":"ip"}}"#);
        let answer = client.post("/v1/keys/peek", &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        40 - answer.remaining()
    };
    assert_eq!((0..4).map(used).sum::<u64>(), 100);
    assert!(service.metric(r#"dashpot_rule_denied_total{rule="all"}"#) > 0.0);
}

/// What is given back may be had again, and not twice.
#[test]
fn what_is_settled_comes_back_once() {
    let service = Service::start::<&str>(&[]);
    let asked = r#"{"key":"alice","limit":"100/day","cost":10,"reserve":true}"#;
    let rounds = || {
        let mut client = service.client();
        for _ in 0..30 {
            let answer = client.check(asked);
            if !answer.allowed() {
                continue;
            }
            let reservation = answer.json()["reservation"].as_str().unwrap().to_owned();
            let settled = format!(r#"{{"reservation":"{reservation}","used":0}}"#);
            assert_eq!(client.post("/v1/settle", &settled).status, 200);
            assert_eq!(client.post("/v1/settle", &settled).status, 409);
        }
    };
    thread::scope(|scope| (0..CONNECTIONS).for_each(|_| drop(scope.spawn(rounds))));
    let left = service.client().check(r#"{"key":"alice","limit":"100/day","cost":0}"#).remaining();
    assert_eq!(left, 100);
}
