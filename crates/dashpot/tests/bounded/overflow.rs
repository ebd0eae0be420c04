//! Who finds no room is served all the same, and never better.

use std::time::Duration;

use dashpot::{Algorithm, Limiter};

use super::{CELLS, NANO, SECOND, a_minute, fill, one_of_each, store};

/// Newcomers get something, each no more than its limit, all no more than the cells have.
#[test]
fn newcomers_are_served_within_limits() {
    let (store, _clock) = store(100);
    fill(&store);
    for limiter in one_of_each(&store, 1) {
        let before = store.usage();
        let mut admitted = 0;
        for key in 0..200_000_u64 {
            let key = key.to_be_bytes();
            let passed = (0..2).filter(|_| limiter.check(&key).is_allowed()).count() as u64;
            assert!(passed <= 1);
            admitted += passed;
        }
        assert!(admitted <= CELLS, "{admitted} of {}", limiter.policy());
        // All but e^-3 of the cells have been found by somebody.
        assert!(admitted > CELLS * 4 / 5, "{admitted} of {}", limiter.policy());
        let after = store.usage();
        assert!(after.cells - before.cells <= CELLS, "{after:?}");
        assert!(after.overflowed - before.overflowed >= CELLS * 4 / 5, "{after:?}");
        assert_eq!(after.keys, 100, "{after:?}");
        assert!(after.bytes <= before.bytes + 1000, "a table with nobody in it: {after:?}");
    }
}

/// A few newcomers hardly ever meet: they get their whole limit, and not a unit more.
#[test]
fn a_newcomer_alone_gets_its_limit() {
    let (store, clock) = store(10);
    fill(&store);
    for algorithm in Algorithm::ALL {
        let limiter = a_minute(&store, algorithm, 5);
        let whole = (0..100_u64).filter(|key| taken(&limiter, *key) == 5).count();
        assert!(whole >= 90, "{whole} of a hundred");
        if algorithm != Algorithm::Concurrency {
            // Two windows on it is the same again.
            clock.advance(SECOND * 120);
            let whole = (0..100_u64).filter(|key| taken(&limiter, *key) == 5).count();
            assert!(whole >= 90, "{whole} of a hundred");
        }
    }
}

/// What a key takes in ten tries.
fn taken(limiter: &Limiter, key: u64) -> usize {
    (0..10).filter(|_| limiter.check(&key.to_be_bytes()).is_allowed()).count()
}

/// Room that appears while a newcomer is limited is no amnesty: it gets a place of its own when it
/// is whole again, and not before.
#[test]
fn room_that_appears_is_no_amnesty() {
    // What is swept when goes by a key's hash: many keys, each in a store of its own.
    for (algorithm, k) in
        Algorithm::ALL.into_iter().flat_map(|it| (0..32_u8).map(move |k| (it, [k])))
    {
        let (store, clock) = store(20);
        let squatters = fill(&store);
        let limiter = a_minute(&store, algorithm, 4);
        assert!(limiter.check_n(&k, 3).is_allowed(), "{algorithm}");
        for key in 0..20_u64 {
            squatters.reset(&key.to_be_bytes());
        }
        assert!(limiter.check(&k).is_allowed(), "{algorithm}: one is left");
        assert!(!limiter.check(&k).is_allowed(), "{algorithm}");
        let reset = limiter.peek(&k).statuses()[0].reset_after();
        if algorithm != Algorithm::Concurrency {
            clock.advance(reset - NANO);
            assert!(!limiter.check_n(&k, 4).is_allowed(), "{algorithm}");
            clock.advance(NANO);
            assert!(limiter.check_n(&k, 4).is_allowed(), "{algorithm}");
            assert!(!limiter.check(&k).is_allowed(), "{algorithm}");
        }
    }
}

/// Permits taken in a cell come back to it, also when there is room again.
#[test]
fn a_permit_from_a_cell_comes_back() {
    let (store, _clock) = store(1);
    let squatters = fill(&store);
    let limiter = a_minute(&store, Algorithm::Concurrency, 2);
    let first = limiter.acquire("k").unwrap();
    let second = limiter.acquire("k").unwrap();
    squatters.reset(&0_u64.to_be_bytes());
    assert!(limiter.acquire("k").is_err());
    drop(first);
    let third = limiter.acquire("k").unwrap();
    assert!(limiter.acquire("k").is_err());
    drop((second, third));
    // Nothing is in flight: whoever comes now has a place of its own.
    let overflowed = store.usage().overflowed;
    let _again = (limiter.acquire("k").unwrap(), limiter.acquire("k").unwrap());
    assert!(limiter.acquire("k").is_err());
    assert_eq!(store.usage().overflowed, overflowed);
    assert_eq!(store.len(), 1);
}

/// Idle keys make room; cells are given up when nobody is counted in them any more.
#[test]
fn idle_keys_make_room() {
    let (store, clock) = store(1000);
    for algorithm in Algorithm::ALL.into_iter().filter(|it| *it != Algorithm::Concurrency) {
        let limiter = a_minute(&store, algorithm, 3);
        let rush = |from: u64| {
            let before = store.usage();
            for key in from..from + 1000 {
                assert!(limiter.check(&key.to_be_bytes()).is_allowed(), "{algorithm}");
            }
            let after = store.usage();
            (after.overflowed - before.overflowed, after.reclaimed - before.reclaimed)
        };
        clock.advance(SECOND * 3600);
        rush(0);
        assert!(store.len() >= 990, "{algorithm}");
        // A few find others in their cells, who had found no room.
        assert!(rush(10_000).0 >= 950, "{algorithm}: no room now");
        clock.advance(SECOND * 3600);
        let (overflowed, reclaimed) = rush(20_000);
        assert!(overflowed <= 20, "{algorithm}: everybody had gone");
        assert!(reclaimed >= 970, "{algorithm}: and {reclaimed} made room");
        assert!(store.len() >= 970, "{algorithm}");
    }
    clock.advance(SECOND * 3600);
    let limiter = a_minute(&store, Algorithm::TokenBucket, 3);
    for key in 0..10_000_u64 {
        let _ = limiter.check(&key.to_be_bytes());
        clock.advance(Duration::from_millis(100));
    }
    assert!(store.usage().cells <= 100, "{:?}", store.usage());
}
