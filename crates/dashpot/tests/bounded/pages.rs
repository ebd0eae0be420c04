//! What keys take in bytes, and in time when they are moved.

use dashpot::{Algorithm, Limiter, Policy, Quota};

use super::{SECOND, a_minute, store};

fn a_second(name: &str, store: &std::sync::Arc<dashpot::MemoryStore>) -> Limiter {
    Limiter::on(Policy::new(name, Quota::per_second(1)).unwrap(), store.clone())
}

/// However many keys there are, not only when pages happen to be full.
#[test]
fn a_key_takes_as_much_in_small_crowds_and_large() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingWindow] {
        let most = if algorithm == Algorithm::TokenBucket { 40 } else { 50 };
        let (store, _clock) = store(1_000_000);
        let limiter = a_minute(&store, algorithm, 1);
        for key in 0..400_000_u64 {
            assert!(limiter.check(&key.to_be_bytes()).is_allowed());
            let usage = store.usage();
            assert!(key < 50_000 || usage.bytes <= usage.keys * most, "{algorithm}: {usage:?}");
        }
    }
}

/// As many keys replaced again and again take as much as at first.
#[test]
fn keys_that_are_replaced_take_no_more() {
    const KEYS: u64 = 100_000;
    let (store, clock) = store(KEYS as usize);
    let limiter = a_second("p", &store);
    let mut bytes = Vec::new();
    for round in 0..10 {
        let came = (0..KEYS).map(|key| (round * KEYS + key).to_be_bytes());
        let allowed = came.filter(|key| limiter.check(key).is_allowed()).count() as u64;
        // Only so many places are looked at for each newcomer, so a few may miss those that are idle.
        assert!(allowed >= KEYS - KEYS / 500, "{allowed}");
        let usage = store.usage();
        bytes.push(usage.bytes);
        // Once more for the pages between which keys are moved; then it stays as it is.
        assert!(bytes[0] <= KEYS * 64 && usage.bytes <= bytes[0] * 2, "{bytes:?}");
        assert!(round < 2 || usage.bytes <= bytes[1] * 6 / 5, "{bytes:?}");
        assert!(usage.keys <= KEYS, "{usage:?}");
        assert!(usage.overflowed <= (round + 1) * KEYS / 50, "{usage:?}");
        clock.advance(SECOND * 3600);
    }
}

/// A crowd that goes away by and by, while a few others come, leaves few keys in many pages. They go together in pages
/// that there are, and so do those who come back.
#[test]
fn crowds_that_come_and_go_take_no_more() {
    const KEYS: u64 = 100_000;
    let (store, clock) = store(KEYS as usize);
    let limiter = a_minute(&store, Algorithm::TokenBucket, 1);
    let mut bytes = Vec::new();
    let mut newcomers = (0_u64..).map(u64::to_be_bytes);
    for _ in 0..4 {
        for minutes in [1, 5] {
            for _ in 0..KEYS {
                clock.advance(SECOND * 60 * minutes / KEYS as u32);
                let _ = limiter.check(&newcomers.next().unwrap());
            }
            bytes.push(store.usage().bytes);
        }
        assert!(store.len() < KEYS as usize / 3, "few are left: {}", store.len());
    }
    assert!(bytes.iter().all(|now| *now <= bytes[0] * 21 / 20), "{bytes:?}");
}

/// Pages that one policy gives up are used by the next.
#[test]
fn policies_that_come_and_go_share_their_pages() {
    const KEYS: u64 = 100_000;
    let (store, clock) = store(KEYS as usize);
    let mut first = 0;
    for policy in 0..10 {
        let limiter = a_second(&format!("p{policy}"), &store);
        let allowed = (0..KEYS).filter(|key| limiter.check(&key.to_be_bytes()).is_allowed());
        // Only so many places are looked at for each newcomer, so a few may miss those that are idle.
        assert!(allowed.count() as u64 >= KEYS - KEYS / 500);
        let usage = store.usage();
        if policy == 0 {
            first = usage.bytes;
        }
        assert!(usage.overflowed <= policy * KEYS / 50, "{usage:?}");
        assert!(usage.bytes <= first * 2, "{first} bytes at first, now {usage:?}");
        assert!(usage.keys <= KEYS, "{usage:?}");
        clock.advance(SECOND * 3600);
    }
}

/// A table that grows moves what is in it a page at a time: nobody pays for all.
#[test]
fn no_insertion_moves_many() {
    let (store, _clock) = store(1_000_000);
    let limiter = a_second("p", &store);
    let (mut before, mut most) = (store.usage().moved, 0);
    for key in 0..300_000_u64 {
        assert!(limiter.check(&key.to_be_bytes()).is_allowed());
        let moved = store.usage().moved;
        most = most.max(moved - before);
        before = moved;
    }
    assert!(most > 0, "it grew");
    assert!(most <= 1600, "{most} moved at once");
    assert_eq!(store.len(), 300_000);
}
