//! A denial is an answer, and for a moment it need not be asked for again.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Cost, Key, KeyOperation, Store};
use dashpot_redis::RedisStore;

use super::common::{
    PATIENT, Rig, allowed, ask, calls_of, daily, denied, manage, millis, run, started,
};
use super::load::{Load, Pattern, Seen};

#[test]
fn denials_by_the_thousand_are_no_errors() {
    run(async {
        let rig = Rig::proxied(PATIENT).await;
        let policies = Algorithm::ALL.map(|algorithm| daily(algorithm, 5));
        let pattern = Pattern { callers: 32, pause: millis(1), is_shared: true };
        let load = Load::start(&rig.store, &policies, pattern);
        tokio::time::sleep(millis(1000)).await;
        let calls = load.stop().await;
        let allowed = calls.iter().filter(|call| call.seen == Seen::Allowed).count();
        let denied = calls.iter().filter(|call| call.seen == Seen::Denied).count();
        assert_eq!(allowed, 30);
        assert_eq!(denied, calls.len() - 30);
        assert!(denied > 2000, "{denied}");
        rig.is_clean();
    });
}

#[test]
fn denials_are_denials_without_a_memory_of_them_too() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let builder = RedisStore::builder(rig.server.url()).deadline(PATIENT);
        let store = started(builder.denial_memory(Duration::ZERO)).await;
        for algorithm in Algorithm::ALL {
            let policy = daily(algorithm, 5);
            for number in 0..300 {
                let decision = ask(&store, policy, "alice").await.unwrap();
                assert_eq!(decision.is_allowed(), number < 5, "{policy:?}");
            }
        }
        rig.is_clean();
    });
}

#[test]
fn a_denied_key_is_asked_about_ten_times_a_second_at_most() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let policy = daily(Algorithm::TokenBucket, 1);
        allowed(&rig.store, policy, "alice").await;
        let before = calls_of(&rig.server, "evalsha");
        let (start, mut asked) = (Instant::now(), 0);
        while start.elapsed() < millis(1000) {
            denied(&rig.store, policy, "alice").await;
            asked += 1;
            if asked % 100 == 0 {
                tokio::time::sleep(millis(1)).await;
            }
        }
        let sent = calls_of(&rig.server, "evalsha") - before;
        println!("{asked} checks, {sent} commands");
        assert!(asked > 1000 && sent <= 20, "{asked} checks, {sent} commands");
        assert!(sent >= 5, "at least every 100 ms: {sent}");
    });
}

#[test]
fn without_a_memory_every_denial_is_asked_for() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let builder = RedisStore::builder(rig.server.url()).deadline(PATIENT);
        let store = started(builder.denial_memory(Duration::ZERO)).await;
        let policy = daily(Algorithm::TokenBucket, 1);
        allowed(&store, policy, "alice").await;
        let before = calls_of(&rig.server, "evalsha");
        for _ in 0..200 {
            denied(&store, policy, "alice").await;
        }
        let sent = calls_of(&rig.server, "evalsha") - before;
        assert!(sent >= 200, "{sent}");
    });
}

#[test]
fn a_reset_by_somebody_else_is_seen_within_a_tenth_of_a_second() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let other = started(RedisStore::builder(rig.server.url()).deadline(PATIENT)).await;
        for algorithm in Algorithm::ALL {
            let policy = daily(algorithm, 1);
            allowed(&rig.store, policy, "alice").await;
            for _ in 0..3 {
                denied(&rig.store, policy, "alice").await;
                manage(&other, policy, "alice", KeyOperation::Reset).await;
                let reset = Instant::now();
                // The last call that is denied began in time.
                loop {
                    let asked = reset.elapsed();
                    if ask(&rig.store, policy, "alice").await.unwrap().is_allowed() {
                        break;
                    }
                    assert!(asked <= millis(105), "{policy:?}: still denied after {asked:?}");
                    tokio::time::sleep(millis(1)).await;
                }
            }
        }
        rig.is_clean();
    });
}

#[test]
fn what_this_store_does_itself_is_seen_at_once() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        for algorithm in Algorithm::ALL {
            let policy = daily(algorithm, 1);
            let check = Check::new(policy, "alice");
            for _ in 0..20 {
                let decision = rig.store.decide(&[check]).await.unwrap();
                let reservation = check.reservation(&decision).expect("it is free");
                denied(&rig.store, policy, "alice").await;
                rig.store.settle(&reservation, Cost::new(0)).await.unwrap();
                allowed(&rig.store, policy, "alice").await;
                denied(&rig.store, policy, "alice").await;
                manage(&rig.store, policy, "alice", KeyOperation::Reset).await;
            }
            allowed(&rig.store, policy, "alice").await;
            denied(&rig.store, policy, "alice").await;
            rig.store.reset_all(Some(policy.name()), 10).await.unwrap();
            allowed(&rig.store, policy, "alice").await;
            let until = decision_time(&rig.store, policy).await.after(Duration::from_secs(60));
            manage(&rig.store, policy, "alice", KeyOperation::Reset).await;
            manage(&rig.store, policy, "alice", KeyOperation::Block(until)).await;
            denied(&rig.store, policy, "alice").await;
            manage(&rig.store, policy, "alice", KeyOperation::Unblock).await;
            allowed(&rig.store, policy, "alice").await;
        }
        rig.is_clean();
    });
}

async fn decision_time(store: &RedisStore, policy: &dashpot::Policy) -> dashpot::Timestamp {
    store.manage(policy, Key::from("alice"), KeyOperation::Peek).await.unwrap().at()
}

/// A memory of denials denies, and never allows: what fits is asked for, and counted.
#[test]
fn what_is_small_enough_is_counted_beside_what_was_too_much() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        for algorithm in Algorithm::ALL {
            let policy = daily(algorithm, 10);
            let take = async |cost: u64| {
                let check = Check::new(policy, "alice").cost(cost);
                rig.store.decide(&[check]).await.unwrap().is_allowed()
            };
            assert!(take(8).await, "{policy:?}");
            assert!(!take(5).await && !take(5).await, "{policy:?}");
            assert_eq!([take(1).await, take(1).await, take(1).await], [true, true, false]);
            assert!(!take(5).await && !take(1).await, "{policy:?}");
            let fresh = started(RedisStore::builder(rig.server.url()).deadline(PATIENT)).await;
            assert_eq!(super::common::left(&fresh, policy, "alice").await, 0, "{policy:?}");
        }
        rig.is_clean();
    });
}
