//! A flood of new keys is no amnesty for the limited, the blocked and the busy.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{Algorithm, Limiter, MemoryStore};

use super::{CLOCKED, NANO, SECOND, a_minute, one_of_each, store};

/// So many new keys at once under each of these.
fn flood(limiters: &[Limiter], keys: std::ops::Range<u64>) {
    for key in keys {
        for limiter in limiters {
            let _ = limiter.check_n(&(key + 1_000_000).to_be_bytes(), 3);
        }
    }
}

/// Many times more new keys than there is room for, under all policies, for minutes: each limited
/// key is answered as by a store that has room for all, to the nanosecond.
#[test]
fn the_limited_stay_limited_for_as_long_as_they_are_owed() {
    for algorithm in CLOCKED {
        let (small, clock) = store(500);
        let large = Arc::new(MemoryStore::with_clock(clock.clone()));
        let (here, there) = (a_minute(&small, algorithm, 3), a_minute(&large, algorithm, 3));
        let noise = one_of_each(&small, 3);
        let mut limited: Vec<[u8; 8]> = (0..100_u64).map(u64::to_be_bytes).collect();
        for key in &limited {
            for _ in 0..4 {
                assert_eq!(here.check(key), there.check(key));
            }
            clock.advance(Duration::from_millis(77));
        }
        // Three minutes: one after another is whole again, and may then be forgotten.
        for round in 0..180_u64 {
            flood(&noise, round * 100..(round + 1) * 100);
            limited.retain(|key| !there.peek(key).statuses()[0].reset_after().is_zero());
            for key in &limited {
                let cost = if key[7] % 10 == 0 { 1 } else { 0 };
                let (here, there) = (here.check_n(key, cost), there.check_n(key, cost));
                assert_eq!(here, there, "{algorithm}, round {round}");
            }
            clock.advance(SECOND - NANO * (round % 3) as u32);
        }
        assert!(small.len() <= 500);
        assert!(small.usage().overflowed > 50_000, "{:?}", small.usage());
    }
}

/// The wait it was told before the flood is the wait it has after it.
#[test]
fn a_flood_changes_no_wait() {
    for algorithm in CLOCKED {
        let (store, clock) = store(100);
        let limiter = a_minute(&store, algorithm, 2);
        assert!(limiter.check_n("k", 2).is_allowed());
        let told = limiter.check("k").retry_after().unwrap();
        flood(std::slice::from_ref(&limiter), 0..10_000);
        clock.advance(told - NANO);
        flood(std::slice::from_ref(&limiter), 10_000..20_000);
        assert_eq!(limiter.check("k").retry_after(), Some(NANO), "{algorithm}");
        clock.advance(NANO);
        assert!(limiter.check("k").is_allowed(), "{algorithm}");
    }
}

/// A block lasts to its last nanosecond, whether there was room for it or not.
#[test]
fn the_blocked_stay_blocked() {
    for max_keys in [0, 1, 100] {
        let (store, clock) = store(max_keys);
        let limiters = one_of_each(&store, 3);
        flood(&limiters, 0..1000);
        for limiter in &limiters {
            for key in 0..50_u64 {
                limiter.block(&key.to_be_bytes(), SECOND * 3600);
            }
        }
        clock.advance(SECOND * 3600 - NANO);
        flood(&limiters, 1000..20_000);
        let allowed = |limiter: &Limiter| {
            (0..50_u64).filter(|key| limiter.check(&key.to_be_bytes()).is_allowed()).count()
        };
        for limiter in &limiters {
            assert_eq!(allowed(limiter), 0, "{}, room for {max_keys}", limiter.policy());
        }
        // An hour without noise, so that the cells are free as well; permits never are.
        clock.advance(NANO + SECOND * 3600);
        for limiter in limiters.iter().filter(|it| it.policy().algorithm().name() != "concurrency")
        {
            assert_eq!(allowed(limiter), 50, "{}, room for {max_keys}", limiter.policy());
        }
    }
}

/// Permits in flight are counted for as long as they are, in places of their own and in cells.
#[test]
fn the_busy_stay_busy() {
    for max_keys in [0, 1, 50, 1000] {
        let (store, clock) = store(max_keys);
        let limiter = a_minute(&store, Algorithm::Concurrency, 1);
        let mut permits: Vec<_> =
            (0..100_u64).map(|key| (key, limiter.acquire(&key.to_be_bytes()).ok())).collect();
        // A few may share a cell; a hundred in 65 536 cells do not all.
        permits.retain(|(_, permit)| permit.is_some());
        assert!(permits.len() >= 90, "{} permits", permits.len());
        for key in 1000..20_000_u64 {
            drop(limiter.acquire(&key.to_be_bytes()));
            if key % 1000 == 0 {
                clock.advance(SECOND * 86_400);
            }
        }
        for (key, _) in &permits {
            assert!(limiter.acquire(&key.to_be_bytes()).is_err(), "room for {max_keys}");
        }
        for (key, permit) in permits {
            drop(permit);
            assert!(limiter.acquire(&key.to_be_bytes()).is_ok(), "room for {max_keys}");
        }
    }
}

/// Somebody who is limited and in a cell is as safe from noise as anybody else.
#[test]
fn the_limited_without_a_place_stay_limited() {
    for algorithm in CLOCKED {
        let (store, clock) = store(0);
        let limiter = a_minute(&store, algorithm, 3);
        let limited: Vec<u64> = (0..100_u64)
            .filter(|key| limiter.check_n(&key.to_be_bytes(), 3).is_allowed())
            .collect();
        assert!(limited.len() >= 90);
        let told = limiter.check(&limited[0].to_be_bytes()).retry_after().unwrap();
        flood(std::slice::from_ref(&limiter), 0..50_000);
        clock.advance(told - NANO);
        flood(std::slice::from_ref(&limiter), 50_000..100_000);
        for key in &limited {
            assert!(!limiter.check(&key.to_be_bytes()).is_allowed(), "{algorithm}");
        }
    }
}
