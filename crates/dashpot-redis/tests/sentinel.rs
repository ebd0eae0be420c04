//! On a master that sentinels watch over.

use std::thread::sleep;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisSentinels, RedisServer, limit};

use crate::support::calm::calmly;
use crate::support::load::{Asks, Call, Load, admitted, slowest, unanswered};

const DEADLINE: Duration = Duration::from_millis(300);
/// What a busy machine may add to that.
const SLACK: Duration = Duration::from_millis(200);
const LIMIT: u64 = 300;

async fn store_on(sentinels: &RedisSentinels) -> RedisStore {
    let store = RedisStore::builder(sentinels.url()).deadline(DEADLINE);
    let store = store.denial_memory(Duration::ZERO).start().unwrap();
    store.ready(Duration::from_secs(5)).await.unwrap();
    store
}

fn callers() -> Vec<Asks> {
    let asks = |algorithm: Algorithm| {
        vec![(limit("load", algorithm, LIMIT, Window::DAY), algorithm.name().to_owned())]
    };
    Algorithm::ALL.map(asks).to_vec()
}

/// Nobody waited too long, or got more than twice the limit; and all are answered a second after then.
fn all_is_well(calls: &[Call], again: Instant) {
    assert!(slowest(calls) < DEADLINE + SLACK, "{:?}", slowest(calls));
    for caller in 0..Algorithm::ALL.len() {
        let admitted = admitted(calls.iter().filter(|call| call.caller == caller));
        assert!((1..=2 * LIMIT).contains(&admitted), "{caller}: {admitted}");
    }
    let late = calls.iter().filter(|call| call.started > again + Duration::from_secs(1));
    let late: Vec<_> = late.collect();
    assert!(late.len() > 100, "{} calls", late.len());
    assert_eq!(unanswered(late).map(|call| &call.allowed), None);
    let last = calls.iter().filter(|call| call.allowed.is_err()).map(|call| call.started).max();
    let after = last.map(|last| last.checked_duration_since(again));
    eprintln!("the last error came {after:?} after; the slowest call took {:?}", slowest(calls));
}

/// How many scripts a server was asked to run, by clients.
fn scripts_run(server: &RedisServer) -> u64 {
    let statistics = server.command(&["INFO", "commandstats"]).text();
    let calls = statistics.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    calls.map_or(0, |calls| calls.split(',').next().unwrap().parse().unwrap())
}

#[test]
fn a_master_that_dies_is_replaced_without_anybody_being_told() {
    calmly(a_master_dies);
}

async fn a_master_dies() {
    let sentinels = RedisSentinels::start();
    let store = store_on(&sentinels).await;
    for algorithm in Algorithm::ALL {
        let policy = limit("five", algorithm, 5, Window::DAY);
        for number in 0..7 {
            let decision = store.decide(&[Check::new(&policy, "caller")]).await.unwrap();
            assert_eq!(decision.is_allowed(), number < 5, "{policy}");
        }
    }
    assert!(sentinels.master().keys_without_ttl().is_empty());

    let load = Load::start(&store, &callers());
    sleep(Duration::from_millis(200));
    let died = Instant::now();
    let old = sentinels.kill_master();
    let new = sentinels.wait_for_new_master(old);
    let named = Instant::now();
    eprintln!("another master after {:?}", named - died);
    sleep(Duration::from_millis(1500));
    let calls = load.stop().await;
    assert!(unanswered(&calls).is_some(), "somebody must have noticed");
    all_is_well(&calls, named);
    // What was not copied in time is lost with the old one; what is asked now is counted here.
    let keys: Vec<_> = new.keys().iter().map(|key| key.escape_ascii().to_string()).collect();
    let counted = keys.iter().filter(|key| key.contains(":load:")).count();
    assert_eq!(counted, Algorithm::ALL.len(), "{keys:?}");
}

#[test]
fn a_master_that_becomes_a_replica_is_not_asked_any_more() {
    calmly(a_master_becomes_a_replica);
}

async fn a_master_becomes_a_replica() {
    let sentinels = RedisSentinels::start();
    let store = store_on(&sentinels).await;
    let old = sentinels.master();
    let load = Load::start(&store, &callers());
    sleep(Duration::from_millis(200));
    let new = sentinels.failover();
    let followed = Instant::now();
    sleep(Duration::from_millis(1500));
    let (before, counted) = (scripts_run(old), scripts_run(new));
    sleep(Duration::from_millis(200));
    let calls = load.stop().await;
    all_is_well(&calls, followed);
    assert_eq!(scripts_run(old), before, "the old one is still asked");
    assert!(scripts_run(new) > counted + 50);

    // What is taken now is on both, because one follows the other.
    let policy = limit("afterwards", Algorithm::TokenBucket, 5, Window::DAY);
    assert!(store.decide(&[Check::new(&policy, "caller")]).await.unwrap().is_allowed());
    let has_it = |server: &RedisServer| {
        server.keys().iter().any(|key| key.windows(10).any(|part| part == b"afterwards"))
    };
    assert!(has_it(new));
    let start = Instant::now();
    while !has_it(old) {
        assert!(start.elapsed() < Duration::from_secs(5), "it does not follow");
        sleep(Duration::from_millis(5));
    }
}
