//! A hard bound on the number of keys: nobody who is owed a limit is forgotten to keep it, and nobody
//! gets more for there being no room.

mod cap;
mod flood;
mod generous;
mod overflow;
mod pages;
mod shared;
mod threads;

use std::sync::Arc;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Cost, Limiter, ManualClock, MemoryStore, Policy, Quota, Reservation, Window,
};
use dashpot_testkit::limit;

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
/// Those that run by the clock.
const CLOCKED: [Algorithm; 5] = [
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::FixedWindow,
    Algorithm::SlidingLog,
    Algorithm::SlidingWindow,
];
/// In this many cells each policy counts those who find no room.
const CELLS: u64 = 65_536;

/// A store for so many keys, on a clock of its own.
fn store(max_keys: usize) -> (Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::default();
    let store = MemoryStore::builder().clock(clock.clone()).max_keys(max_keys).build();
    (Arc::new(store), clock)
}

/// So many a minute under this algorithm, and its name; at once, under concurrency.
fn a_minute(store: &Arc<MemoryStore>, algorithm: Algorithm, count: u64) -> Limiter {
    Limiter::on(limit(algorithm.name(), algorithm, count, Window::MINUTE), store.clone())
}

/// One of each algorithm on this store.
fn one_of_each(store: &Arc<MemoryStore>, count: u64) -> Vec<Limiter> {
    Algorithm::ALL.into_iter().map(|algorithm| a_minute(store, algorithm, count)).collect()
}

/// Keys that are taken, of a policy of their own: each is owed a limit for a century unless it is
/// reset.
fn squatters(store: &Arc<MemoryStore>) -> Limiter {
    let century = Window::months(1200).unwrap();
    let policy = Policy::new("squatters", Quota::new(1, century)).unwrap();
    Limiter::on(policy, store.clone())
}

/// Leaves no room for a key more.
fn fill(store: &Arc<MemoryStore>) -> Limiter {
    let squatters = squatters(store);
    for key in 0..store.usage().max_keys {
        assert!(squatters.check(&key.to_be_bytes()).is_allowed());
    }
    assert_eq!(store.usage().keys, store.usage().max_keys);
    assert_eq!(store.usage().overflowed, 0, "there was room for all of them");
    squatters
}

/// Two keys that are counted together, in a store that has no room. Nobody outside can tell which do;
/// but when some hundreds have asked for all they may take, one is denied, because another has taken
/// it. Both are whole again afterwards. None if the policy has no limit, or one of 0.
fn pair_in_one_cell(
    store: &MemoryStore,
    clock: &ManualClock,
    policy: &Policy,
) -> Option<[Vec<u8>; 2]> {
    if policy.quota().is_unlimited() || policy.limit() == 0 {
        return None;
    }
    let take_all = |key: &[u8]| {
        let check = Check::new(policy, key).cost(policy.limit());
        check.reservation(&store.decide_now(&[check]))
    };
    let peek = |key: &[u8]| store.decide_now(&[Check::new(policy, key).cost(0)]).statuses()[0];
    let give_back = |reservation: &Reservation| {
        store.settle_now(reservation, Cost::new(0));
    };
    let mut taken = Vec::new();
    let mut is_denied = |key: &Vec<u8>| match take_all(key) {
        None => true,
        Some(reservation) => {
            taken.push(reservation);
            false
        }
    };
    let key = |number: u64| (number + 1_000_000).to_be_bytes().to_vec();
    let second = (0..5000).map(key).find(|key| is_denied(key))?;
    // Permits come back; everything else needs time.
    taken.iter().for_each(give_back);
    clock.advance(peek(&second).reset_after());
    let reservation = take_all(&second)?;
    let is_mate = |one: &&Reservation| peek(one.key().as_bytes()).remaining() < policy.limit();
    let first = taken.iter().find(is_mate)?.key().as_bytes().to_vec();
    give_back(&reservation);
    clock.advance(peek(&second).reset_after());
    Some([first, second])
}
