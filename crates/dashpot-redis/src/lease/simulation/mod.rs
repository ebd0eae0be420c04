//! The shipped code of leases, nodes' and scripts', among lost and late messages, crashes, and clocks that differ: by
//! thousands of seeds, never more is granted than the policy grants. And each safeguard, taken away, is missed.

mod oracle;
mod scene;
mod server;
mod world;

use std::time::Duration;

use dashpot::{Algorithm, Consistency, Policy, Timestamp};

use scene::{Scene, Trouble, hasty, policy, scene};
use server::Server;
use world::World;

use super::exchange::{lease_call, read_lease};
use super::slot::{Request, Slot};
use crate::topology::Spot;

/// A scene in which nothing goes wrong.
fn calm(seed: u64, policy: Policy, demand: u64) -> World {
    let scene = Scene {
        policy,
        nodes: 4,
        lease: Duration::from_secs(2),
        lasts: Duration::from_secs(3),
        trouble: Trouble { lost: 0, crashes: 0, slow: 2, drift: 0 },
        demand,
        counts_from_the_answer: false,
    };
    World::new(seed, scene, as_shipped)
}

fn played(seed: u64, scene: Scene, change: impl Fn(&str) -> String) -> World {
    let mut world = World::new(seed, scene, change);
    world.play();
    world
}

fn as_shipped(text: &str) -> String {
    text.to_owned()
}

#[test]
fn leases_never_grant_more_than_the_policy() {
    let (mut admitted, mut calls) = (0, 0);
    for seed in 0..2000 {
        let scene = scene(seed, Consistency::Leased);
        let (limit, told) = (scene.policy.limit(), format!("seed {seed}: {scene:?}"));
        let world = played(seed, scene, as_shipped);
        assert_eq!(world.wrong, None, "{told}");
        // And what was not used comes back, whatever went wrong.
        assert_eq!(world.remaining(), limit, "{told}");
        (admitted, calls) = (admitted + world.admitted, calls + world.calls);
    }
    assert!(admitted > 2 * calls, "{admitted} with {calls} calls: that is hardly leasing");
}

#[test]
fn approximate_counts_keep_to_their_bound() {
    for seed in 0..1000 {
        let scene = scene(seed, Consistency::Approximate);
        let told = format!("seed {seed}: {scene:?}");
        let world = played(seed, scene, as_shipped);
        assert_eq!(world.wrong, None, "{told}");
    }
}

/// What is not spent is given back, to the unit.
#[test]
fn what_was_leased_and_not_spent_is_there_again() {
    let policies = [
        ("1/h burst 3000", Algorithm::TokenBucket),
        ("1/h burst 3000", Algorithm::LeakyBucket),
        ("3000/day", Algorithm::FixedWindow),
        ("3000/day", Algorithm::SlidingWindow),
    ];
    for (seed, (limit, algorithm)) in (0..200).zip(policies.into_iter().cycle()) {
        let policy = policy(limit, algorithm, Consistency::Leased);
        let mut world = calm(seed, policy, 500);
        world.idle_after(Duration::from_secs(3));
        assert!(world.admitted > 50, "seed {seed}: {}", world.admitted);
        assert_eq!(world.remaining(), 3000 - world.admitted, "seed {seed}: {limit}");
    }
}

/// Who asks for more than there is gets nearly all of it, and everybody a fair part.
#[test]
fn what_there_is_is_shared_and_used() {
    for seed in 0..20 {
        let policy = policy("1000/s burst 200", Algorithm::TokenBucket, Consistency::Leased);
        let mut world = calm(seed, policy, 20_000);
        world.eager();
        world.idle_after(Duration::from_secs(3));
        assert_eq!(world.wrong, None);
        assert!(world.admitted > 3200 * 9 / 10, "seed {seed}: {} of 3200", world.admitted);
        let (least, most) = (world.by_node.iter().min(), world.by_node.iter().max());
        assert!(least >= most.map(|most| most / 2).as_ref(), "seed {seed}: {:?}", world.by_node);
    }
}

/// What the scripts see to, how they would be without it, and a seed by which it is missed.
const SAFEGUARDS: [(&str, &str, u64); 4] = [
    // A lease that ends restores capacity, never units: the dead may have spent them.
    ("hold(ended[5])\n", "hold(ended[5])\n      tat = tat - ended[3]\n", 29),
    // While units are out, the bucket holds as many less.
    ("    hold(now)\n    return", "    return", 61),
    // A lease ends with the window it is of.
    ("window_end(state) - now)", "ARGV[2])", 60),
    // A call that comes late is not heard.
    ("lease[6] >= number", "false", 119),
];

#[test]
fn every_safeguard_of_the_scripts_is_missed() {
    for (is, without, seed) in SAFEGUARDS {
        let scene = || scene(seed, Consistency::Leased);
        assert_eq!(played(seed, scene(), as_shipped).wrong, None, "{is}");
        let changed = |text: &str| text.replace(is, without);
        let wrong = played(seed, scene(), changed).wrong;
        assert!(wrong.is_some(), "{is}");
    }
}

#[test]
fn a_lease_that_is_counted_from_the_answer_is_noticed() {
    let seed = 96;
    assert_eq!(played(seed, hasty(seed), as_shipped).wrong, None);
    let mistaken = Scene { counts_from_the_answer: true, ..hasty(seed) };
    assert!(played(seed, mistaken, as_shipped).wrong.is_some());
}

/// A call that is overtaken by the next one, which kept less, is late all the same: what the next one agreed stays.
#[test]
fn a_call_that_was_overtaken_changes_nothing() {
    let policy = policy("1000/s", Algorithm::TokenBucket, Consistency::Leased);
    let place = (b"hot".to_vec(), Spot::default());
    let (slot, server) = (Slot::new(policy, b"hot", place, 7, 1), Server::new(as_shipped));
    let (now, lasts) = (1_700_000_000_000_000_u64, Duration::from_secs(2));
    let ask = |number, kept, spent, want| {
        let request = Request { kept, spent, need: 0, want, asked: 1, number, instances: 1 };
        let call = lease_call(&slot, &request, lasts, Timestamp::from_nanos(now * 1000));
        read_lease(&slot, &request, lasts, &server.run(now, &call)).unwrap().unwrap()
    };
    assert_eq!(ask(1, 0, 0, 100).units, 100);
    assert_eq!(ask(3, 10, 90, 20).units, 20);
    assert_eq!(ask(2, 100, 0, 8).units, 0);
    let next = ask(4, 30, 0, 8);
    assert!(next.is_known && next.units == 8, "{next:?}");
}
