//! However many ask at once, no more is granted than the bound.

use std::thread;
use std::time::Duration;

use dashpot_testkit::{RedisServer, on_all_threads};

use super::{ASKED, Crowd, Instance, NOTICED, PATIENT, SHORT, passes, rules, until_leased};
use crate::service::until;

/// For what does not come back while a test runs.
fn year(count: u64, algorithm: &str, consistency: &str) -> String {
    format!("limits = ['{count}/year']\nalgorithm = '{algorithm}'\nconsistency = '{consistency}'")
}

/// Units that are given out and those that are left come to the limit: none is granted twice, none is lost.
#[test]
fn all_units_are_granted_once() {
    for algorithm in ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let fleet = Instance::fleet(3, &rules(&redis, PATIENT, &year(3000, algorithm, "leased")));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            fleet.iter().for_each(until_leased);
            crowd.until_admitted(500);
        });
        let left_after = 3000 - crowd.admitted();
        until("all to be given back", NOTICED, || {
            let left: Vec<_> = fleet.iter().map(Instance::left_when_cold).collect();
            assert!(left.iter().all(|left| *left <= left_after), "{algorithm}: {left:?}");
            (left == [left_after; 3]).then_some(())
        });
        // The rest, by one alone.
        let mut client = fleet[1].client();
        until("the rest to be granted", NOTICED, || {
            for _ in 0..100.min(3000 - crowd.admitted()) {
                crowd.count(passes(&client.check(ASKED)));
            }
            (crowd.admitted() == 3000).then_some(())
        });
        let more = (0..50).filter(|_| passes(&client.check(ASKED))).count();
        assert_eq!(more, 0, "{algorithm}");
        assert!(redis.keys_without_ttl().is_empty(), "429 for ever");
    }
}

#[test]
fn nobody_gets_more_than_the_limit() {
    for algorithm in ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let fleet = Instance::fleet(4, &rules(&redis, SHORT, &year(1200, algorithm, "leased")));
        let crowd = Crowd::new();
        crowd.during(&fleet, || {
            crowd.until_admitted(400);
            // Longer than a lease.
            thread::sleep(Duration::from_secs(2));
        });
        crowd.is_within(1200, 0);
    }
}

#[test]
fn what_comes_back_in_time_is_granted_once() {
    let redis = RedisServer::start();
    let limit = "limits = ['600/s burst 300']\nconsistency = 'leased'";
    let fleet = Instance::fleet(3, &rules(&redis, SHORT, limit));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        thread::sleep(Duration::from_secs(2));
    });
    crowd.is_within(300, 600);
}

#[test]
fn in_each_window_no_more_than_it_has() {
    let redis = RedisServer::start();
    let limit = "limits = ['200/s']\nalgorithm = 'fixed-window'\nconsistency = 'leased'";
    let fleet = Instance::fleet(3, &rules(&redis, SHORT, limit));
    let crowd = Crowd::new();
    crowd.during(&fleet, || thread::sleep(Duration::from_secs(3)));
    // It may begin in the middle of a window and end in that of another.
    crowd.is_within(2 * 200, 200);
}

/// What each other instance may grant beside: what the rate brings in one interval.
#[test]
fn approximately_is_within_its_bound() {
    let redis = RedisServer::start();
    let store = format!("{SHORT}reconcile = '200ms'\n");
    let limit = "limits = ['500/s burst 500']\nconsistency = 'approximate'";
    let fleet = Instance::fleet(3, &rules(&redis, &store, limit));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        fleet.iter().for_each(until_leased);
        thread::sleep(Duration::from_secs(2));
    });
    crowd.is_within(500 + 2 * 100, 500);
}

#[test]
fn approximately_of_a_slow_limit_is_one_more_for_each_other() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let fleet =
            Instance::fleet(3, &rules(&redis, PATIENT, &year(900, algorithm, "approximate")));
        let crowd = Crowd::new();
        crowd.during(&fleet, || crowd.until_denied(500));
        crowd.is_within(900 + 2, 0);
    }
}

/// So many of each of four callers, who all have to be allowed.
fn are_all_allowed(fleet: &[Instance], times: usize) {
    on_all_threads(4, |thread| {
        let mut client = fleet[thread as usize % fleet.len()].client();
        for _ in 0..times {
            let answer = client.check(ASKED);
            assert!(answer.allowed(), "{answer:?}");
        }
    });
}

#[test]
fn alone_nobody_is_denied_while_something_is_left() {
    for algorithm in ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let rules = rules(&redis, PATIENT, &year(1000, algorithm, "leased"));
        are_all_allowed(&Instance::fleet(1, &rules), 240);
    }
}

/// Nobody else can have granted too much, so there is nothing to make up for.
#[test]
fn alone_nobody_is_denied_approximately_while_something_is_left() {
    let redis = RedisServer::start();
    let rules = rules(&redis, PATIENT, &year(1000, "token-bucket", "approximate"));
    are_all_allowed(&Instance::fleet(1, &rules), 200);
}

/// At most half of it is out.
#[test]
fn nobody_is_denied_while_half_is_left() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window"] {
        let redis = RedisServer::start();
        let rules = rules(&redis, PATIENT, &year(3000, algorithm, "leased"));
        are_all_allowed(&Instance::fleet(4, &rules), 370);
    }
}

/// Hot with one, and asked about now and then by another: it is not to starve.
#[test]
fn who_asks_seldom_gets_something_too() {
    let redis = RedisServer::start();
    let limit = "limits = ['2000/s burst 2000']\nconsistency = 'leased'";
    let fleet = Instance::fleet(2, &rules(&redis, PATIENT, limit));
    let crowd = Crowd::new();
    crowd.during(&fleet[..1], || {
        until_leased(&fleet[0]);
        let mut client = fleet[1].client();
        until("something for the other", NOTICED, || {
            let passed = passes(&client.check(ASKED));
            crowd.count(passed);
            passed.then_some(())
        });
    });
    crowd.is_within(2000, 2000);
}

/// By a call for some, not by one for each.
#[test]
fn redis_is_asked_for_batches() {
    let redis = RedisServer::start();
    let limit = "limits = ['100M/s']\nconsistency = 'leased'";
    let fleet = Instance::fleet(1, &rules(&redis, PATIENT, limit));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        until_leased(&fleet[0]);
        let calls = || fleet[0].service.metric("dashpot_store_lease_calls_total");
        let (before, admitted) = (calls(), crowd.admitted());
        crowd.until_admitted(2000);
        let (calls, admitted) = (calls() - before, crowd.admitted() - admitted);
        println!("{calls} calls for {admitted}");
        assert!(calls * 4.0 < admitted as f64, "{calls} calls for {admitted}");
    });
}
