//! The shipped code of leases, nodes' and scripts', among lost and late messages, crashes, and clocks that differ: by
//! thousands of seeds, never more is granted than the policy grants.

mod oracle;
mod server;
mod world;

use std::time::Duration;

use dashpot::{Algorithm, Consistency, Policy};
use fastrand::Rng;

use world::{Scene, Trouble, World};

/// Nothing goes wrong.
const CALM: Trouble = Trouble { lost: 0, crashes: 0, slow: 2, drift: 0, resets: 0 };

fn leased(limit: &str, algorithm: Algorithm) -> Policy {
    let builder = Policy::builder("api", limit.parse().unwrap()).algorithm(algorithm);
    builder.consistency(Consistency::Leased).build().unwrap()
}

/// A scene drawn by lot.
fn scene(seed: u64) -> Scene {
    let mut rng = Rng::with_seed(seed ^ 0x5eed);
    let policies = [
        ("50/s burst 20", Algorithm::TokenBucket),
        ("1000/s burst 500", Algorithm::TokenBucket),
        ("7/s burst 40", Algorithm::LeakyBucket),
        ("999983/min burst 1000", Algorithm::TokenBucket),
        ("100/s", Algorithm::FixedWindow),
        ("400/3s", Algorithm::FixedWindow),
        ("100/s", Algorithm::SlidingWindow),
        ("300/2s", Algorithm::SlidingWindow),
    ];
    let (limit, algorithm) = policies[rng.usize(0..policies.len())];
    let leases = [100, 200, 500, 2000];
    Scene {
        policy: leased(limit, algorithm),
        nodes: rng.usize(1..=6),
        lease: Duration::from_millis(leases[rng.usize(0..leases.len())]),
        lasts: Duration::from_millis(rng.u64(1000..5000)),
        trouble: Trouble {
            lost: [0, 20, 300][rng.usize(0..3)],
            crashes: [0, 100, 500][rng.usize(0..3)],
            slow: [2, 30, 800][rng.usize(0..3)],
            drift: [0, 10, 200][rng.usize(0..3)],
            resets: 0,
        },
        demand: [50, 500, 3000][rng.usize(0..3)],
    }
}

fn played(seed: u64, change: impl Fn(&str) -> String) -> World {
    let mut world = World::new(seed, scene(seed), change);
    world.play();
    world
}

fn as_shipped(text: &str) -> String {
    text.to_owned()
}

#[test]
fn never_more_is_granted_than_the_policy_grants() {
    for seed in 0..3000 {
        let world = played(seed, as_shipped);
        assert_eq!(world.wrong, None, "seed {seed}: {:?}", scene(seed));
    }
}

#[test]
fn what_was_not_used_comes_back() {
    for seed in 0..500 {
        let world = played(seed, as_shipped);
        let (remaining, _) = world.rest();
        let scene = scene(seed);
        if matches!(scene.policy.algorithm(), Algorithm::TokenBucket | Algorithm::LeakyBucket) {
            let spare = scene.policy.limit();
            assert_eq!(remaining, spare, "seed {seed}: {scene:?}");
        }
    }
}
