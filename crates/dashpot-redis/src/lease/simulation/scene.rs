//! What is played through.

use std::time::Duration;

use dashpot::{Algorithm, Consistency, Policy};
use fastrand::Rng;

/// What may go wrong, each in so many of a thousand times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) lost: u32,
    pub(super) crashes: u32,
    /// How long messages take at most, in milliseconds.
    pub(super) slow: u64,
    /// By how many in ten thousand clocks differ in pace.
    pub(super) drift: u64,
}

/// What is to be played through.
#[derive(Clone, Debug)]
pub(super) struct Scene {
    pub(super) policy: Policy,
    pub(super) nodes: usize,
    pub(super) lease: Duration,
    pub(super) lasts: Duration,
    pub(super) trouble: Trouble,
    /// How often all of them ask, of a second.
    pub(super) demand: u64,
    /// A mistake: a lease is taken to begin when it is heard of.
    pub(super) counts_from_the_answer: bool,
}

pub(super) fn policy(limit: &str, algorithm: Algorithm, consistency: Consistency) -> Policy {
    let builder = Policy::builder("api", limit.parse().unwrap()).algorithm(algorithm);
    builder.consistency(consistency).build().unwrap()
}

/// A scene drawn by lot.
pub(super) fn scene(seed: u64, consistency: Consistency) -> Scene {
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
        policy: policy(limit, algorithm, consistency),
        nodes: rng.usize(1..=6),
        lease: Duration::from_millis(leases[rng.usize(0..leases.len())]),
        lasts: Duration::from_millis(rng.u64(1000..5000)),
        trouble: Trouble {
            lost: [0, 20, 300][rng.usize(0..3)],
            crashes: [0, 100, 500][rng.usize(0..3)],
            slow: [2, 30, 800][rng.usize(0..3)],
            drift: [0, 10, 200][rng.usize(0..3)],
        },
        demand: [50, 500, 3000][rng.usize(0..3)],
        counts_from_the_answer: false,
    }
}

/// Short leases of short windows, and answers that take their time.
pub(super) fn hasty(seed: u64) -> Scene {
    Scene {
        policy: policy("100/s", Algorithm::FixedWindow, Consistency::Leased),
        nodes: 3,
        lease: Duration::from_millis(100),
        trouble: Trouble { lost: 20, crashes: 0, slow: 30, drift: 0 },
        demand: 3000,
        ..scene(seed, Consistency::Leased)
    }
}
