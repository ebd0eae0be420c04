//! Slots that move from one node to another while they are used.

use std::thread::sleep;
use std::time::Duration;

use dashpot::{Algorithm, Key, KeyOperation, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::redis::slot;
use dashpot_testkit::{RedisCluster, limit};

use super::{callers_in, cluster_and_store};
use crate::support::calm::calmly;
use crate::support::load::{Asks, Call, Load, admitted, slowest, unanswered};

const DEADLINE: Duration = Duration::from_secs(1);
const LIMIT: u64 = 400;

/// Callers in one slot: some under one limit, some under three at once, and one under its own and one in
/// another slot.
struct Crowd {
    slot: u16,
    callers: Vec<Asks>,
}

fn crowd() -> Crowd {
    let slot_of_all = slot(b"the one that moves");
    let names = callers_in(|slot| slot == slot_of_all, 6);
    let policy = |name: &str, algorithm| limit(name, algorithm, LIMIT, Window::DAY);
    let three = [Algorithm::TokenBucket, Algorithm::SlidingWindow, Algorithm::SlidingLog];
    let asks = |(number, name): (usize, &String)| match number % 3 {
        0 => vec![(policy("alone", Algorithm::ALL[number]), name.clone())],
        1 => three.map(|one| (policy(one.name(), one), name.clone())).to_vec(),
        _ => {
            let elsewhere = limit("elsewhere", Algorithm::FixedWindow, 1_000_000, Window::DAY);
            vec![
                (policy("here", Algorithm::TokenBucket), name.clone()),
                (elsewhere, "elsewhere".to_owned()),
            ]
        }
    };
    Crowd { slot: slot_of_all, callers: names.iter().enumerate().map(asks).collect() }
}

async fn remaining(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    let peek = store.manage(policy, Key::from(key), KeyOperation::Peek).await.unwrap();
    peek.statuses()[0].remaining()
}

/// Nobody noticed anything, and what was admitted is what was charged.
async fn nobody_noticed(store: &RedisStore, callers: &[Asks], calls: &[Call]) {
    let first = unanswered(calls);
    let errors = calls.iter().filter(|call| call.allowed.is_err()).count();
    assert!(first.is_none(), "{errors} of {} calls, as {first:?}", calls.len());
    eprintln!("{} calls, the slowest {:?}", calls.len(), slowest(calls));
    for (caller, asks) in callers.iter().enumerate() {
        let admitted = admitted(calls.iter().filter(|call| call.caller == caller));
        assert!((1..=LIMIT).contains(&admitted), "{admitted} of {LIMIT}");
        for (policy, key) in asks.iter().filter(|(policy, _)| policy.name() != "elsewhere") {
            let left = remaining(store, policy, key).await;
            assert_eq!(left, LIMIT - admitted, "{policy} after {admitted}");
        }
    }
}

/// The primaries that do not have the slot.
fn others(cluster: &RedisCluster, slot: u16) -> Vec<u16> {
    let owner = cluster.primary_of(slot).port();
    let primaries = cluster.nodes()[..3].iter().map(|node| node.port());
    primaries.filter(|port| *port != owner).collect()
}

#[test]
fn a_slot_that_moves_around_is_not_noticed() {
    calmly(a_slot_moves_around);
}

async fn a_slot_moves_around() {
    let (cluster, store) = cluster_and_store(DEADLINE).await;
    let Crowd { slot, callers } = crowd();
    let load = Load::start(&store, &callers);
    for _ in 0..4 {
        sleep(Duration::from_millis(100));
        cluster.move_slot(slot, others(&cluster, slot)[0]);
    }
    sleep(Duration::from_millis(100));
    let calls = load.stop().await;
    nobody_noticed(&store, &callers, &calls).await;
}

#[test]
fn a_slot_that_is_long_on_its_way_is_not_noticed() {
    calmly(a_slot_is_long_on_its_way);
}

async fn a_slot_is_long_on_its_way() {
    let (cluster, store) = cluster_and_store(DEADLINE).await;
    let Crowd { slot, callers } = crowd();
    let load = Load::start(&store, &callers);
    sleep(Duration::from_millis(100));
    let owner = cluster.primary_of(slot);
    let on_its_way = cluster.begin_move(slot, others(&cluster, slot)[1]);
    // Keys of one call are on two nodes for longer than a few attempts take.
    let mut moved = 0;
    while on_its_way.migrate_keys(1) > 0 {
        moved += 1;
        sleep(Duration::from_millis(40));
    }
    assert!(moved >= 8, "{moved} keys");
    sleep(Duration::from_millis(100));
    on_its_way.finish();
    sleep(Duration::from_millis(100));
    let calls = load.stop().await;
    let errors = owner.command(&["INFO", "errorstats"]).text();
    for kind in ["ASK", "TRYAGAIN", "MOVED"] {
        assert!(errors.contains(&format!("errorstat_{kind}:")), "no {kind} in {errors}");
    }
    nobody_noticed(&store, &callers, &calls).await;
}
