//! The bound, and nobody's advantage, with several threads at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot::Algorithm;
use dashpot_testkit::on_all_threads;

use super::{SECOND, a_minute, one_of_each, squatters, store};

const THREADS: u64 = 4;

/// Anything but blocks and resets, under all policies, on keys of all threads: never one key too many.
#[test]
fn no_moment_has_too_many_keys() {
    for max_keys in [0, 1, 3, 64, 1000] {
        let (store, clock) = store(max_keys);
        let limiters = one_of_each(&store, 3);
        on_all_threads(THREADS, |thread| {
            for round in 0..20_000_u64 {
                // Some keys are new, some are those of other threads.
                let key = (round / 2 * (round % 2) + thread % 2 * 1_000_000).to_be_bytes();
                let limiter = &limiters[(round % 6) as usize];
                match round % 7 {
                    0 => drop(limiter.peek(&key)),
                    1 => drop(limiter.reserve(&key, 2).map(|it| limiter.settle(it, round % 4))),
                    2 => drop(limiter.acquire(&key)),
                    _ => drop(limiter.check(&key)),
                }
                let keys = store.len();
                assert!(keys <= max_keys, "{keys} of {max_keys}");
                if thread == 0 && round % 1000 == 0 {
                    clock.advance(SECOND * 60);
                }
            }
        });
    }
}

/// More keys than there is room for, from all sides, while places become free and taken: by the
/// times it was told, no key gets more in a window than its limit.
#[test]
fn no_key_gets_more_than_a_window_allows() {
    const KEYS: u64 = 40;
    let (store, clock) = store(16);
    let limiter = a_minute(&store, Algorithm::FixedWindow, 3);
    let squatters = squatters(&store);
    let taken = on_all_threads(THREADS, |thread| {
        let mut taken: HashMap<_, u64> = HashMap::new();
        for round in 0..30_000_u64 {
            let key = (round * 7 + thread) % KEYS;
            let decision = limiter.check(&key.to_be_bytes());
            if decision.is_allowed() {
                let minute = decision.at().as_nanos() / 60_000_000_000;
                *taken.entry((key, minute)).or_default() += 1;
            }
            let place = (round % 16).to_be_bytes();
            if round % 3 == 0 {
                let _ = squatters.check(&place);
            } else if round % 7 == 0 {
                squatters.reset(&place);
            }
            if thread == 0 && round % 100 == 0 {
                clock.advance(SECOND * 30);
            }
        }
        taken
    });
    let mut all: HashMap<_, u64> = HashMap::new();
    for (place, units) in taken.into_iter().flatten() {
        *all.entry(place).or_default() += units;
    }
    assert!(all.len() > 1000, "{} windows of some key", all.len());
    let most = all.values().max();
    assert_eq!(most, Some(&3));
    let usage = store.usage();
    assert!(usage.overflowed > 0 && usage.reclaimed > 0, "{usage:?}");
}

/// Permits, which are in flight by no clock: at every moment, each key has at most its limit.
#[test]
fn no_key_has_more_permits_than_it_may() {
    const KEYS: usize = 24;
    const ROUNDS: usize = 30_000;
    let (store, _clock) = store(8);
    let limiter = a_minute(&store, Algorithm::Concurrency, 2);
    let in_flight: Vec<_> = (0..KEYS).map(|_| AtomicU64::new(0)).collect();
    on_all_threads(THREADS, |thread| {
        let mut held = Vec::new();
        for round in 0..ROUNDS {
            let key = (round * 5 + thread as usize) % KEYS;
            if let Ok(permit) = limiter.acquire(&key.to_be_bytes()) {
                let now = in_flight[key].fetch_add(1, Ordering::SeqCst) + 1;
                assert!(now <= 2, "{now} in flight");
                held.push((key, permit));
            }
            // All of them in the end.
            while held.len() > round % 5 || round + 1 == ROUNDS && !held.is_empty() {
                let (key, permit) = held.swap_remove(round % held.len());
                in_flight[key].fetch_sub(1, Ordering::SeqCst);
                drop(permit);
            }
        }
    });
    for key in 0..KEYS {
        let all = limiter.peek(&key.to_be_bytes());
        assert_eq!(all.statuses()[0].remaining(), 2, "everything came back");
    }
    assert!(store.usage().overflowed > 0, "{:?}", store.usage());
}
