//! Long streams of traffic over many keys, decision by decision equal to the oracle's, while idle
//! keys come and go.

use std::time::Duration;

use dashpot::{Algorithm, ManualClock, MemoryStore, Policy, Timestamp, Window};
use dashpot_testkit::trace::{Ask, Step, Trace};
use dashpot_testkit::workload::{Arrival, boundary_attack, bursts, uniform, zipf};
use dashpot_testkit::{limit, replay};

const KEYS: usize = 4000;

fn traffic(policy: &Policy, arrivals: impl Iterator<Item = Arrival>) -> Trace {
    let mut now = Duration::ZERO;
    let steps = arrivals.flat_map(|arrival| {
        let pause = arrival.at - std::mem::replace(&mut now, arrival.at);
        [Step::Advance(pause), Step::Check(vec![Ask::new(0, arrival.key, arrival.cost)])]
    });
    Trace {
        start: Timestamp::from_secs(1_700_000_000 / 60 * 60),
        steps: steps.collect(),
        policies: vec![policy.clone().into()],
        keys: (0..KEYS).map(|key| key.to_be_bytes().to_vec()).collect(),
    }
}

/// A limit that busy keys meet and idle ones forget, under every algorithm.
fn on_every_algorithm(arrivals: impl Fn() -> Vec<Arrival>) {
    for algorithm in Algorithm::ALL {
        let policy = limit("p", algorithm, 7, Window::MINUTE);
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(clock.clone());
        let trace = traffic(&policy, arrivals().into_iter());
        replay(&store, &clock, &trace).unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn everybody_alike() {
    on_every_algorithm(|| uniform(1, KEYS, Duration::from_millis(10)).take(20_000).collect());
}

#[test]
fn a_few_and_the_many() {
    on_every_algorithm(|| zipf(2, KEYS, 1.1, Duration::from_millis(20)).take(10_000).collect());
}

#[test]
fn in_bursts() {
    on_every_algorithm(|| bursts(3, KEYS, 9, Duration::from_millis(40)).take(10_000).collect());
}

#[test]
fn around_the_boundaries() {
    let minute = Window::MINUTE.length();
    on_every_algorithm(|| boundary_attack(minute, 8).take(2_000).collect());
}
