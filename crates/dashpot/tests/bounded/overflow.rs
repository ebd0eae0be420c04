//! Who finds no room is served all the same, and never better.

use std::time::Duration;

use dashpot::{Algorithm, Check, Limiter};

use super::{CELLS, NANO, SECOND, a_minute, fill, one_of_each, pair_in_one_cell, store};

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

/// Who finds room leaves its cell, with what is counted there, and charges it no more: else cells would never be
/// free again while newcomers come, however much room there is.
#[test]
fn newcomers_leave_their_cells_where_there_is_room() {
    let (store, clock) = store(20);
    let squatters = fill(&store);
    let limiter = a_minute(&store, Algorithm::TokenBucket, 2);
    let [one, other] = pair_in_one_cell(&store, &clock, limiter.policy()).unwrap();
    assert!(limiter.check(&one).is_allowed());
    for key in 0..20_u64 {
        squatters.reset(&key.to_be_bytes());
    }
    // Whoever finds no room where it belongs sweeps everywhere.
    assert!(a_minute(&store, Algorithm::FixedWindow, 2).check("passer-by").is_allowed());
    let keys = store.len();
    assert!(keys < 20, "{keys} keys");
    // It has to answer for what is counted in the cell, too.
    assert!(limiter.check(&other).is_allowed());
    assert_eq!(store.len(), keys + 1, "a place of its own");
    assert!(!limiter.check(&other).is_allowed());
    // The cell is as good as new as soon as what the first took is back.
    clock.advance(SECOND * 30);
    assert_eq!(limiter.peek(&other).statuses()[0].remaining(), 1);
    assert!(limiter.check_n(&one, 2).is_allowed());
    assert!(!limiter.check(&one).is_allowed());
}

/// Also if nobody but they could make room: they take several limits at once, all of which count them in cells.
#[test]
fn calls_in_cells_make_room_for_themselves() {
    let (store, clock) = store(20);
    let squatters = fill(&store);
    let limits =
        [Algorithm::SlidingLog, Algorithm::SlidingWindow].map(|it| a_minute(&store, it, 100));
    // Never so late that nothing is counted any more.
    let ask = || {
        clock.advance(SECOND / 2);
        let checks = limits.each_ref().map(|limiter| Check::new(limiter.policy(), "k"));
        assert!(store.decide_now(&checks).is_allowed());
    };
    ask();
    assert_eq!(store.usage().cells, 2, "there is no room");
    for key in 0..20_u64 {
        squatters.reset(&key.to_be_bytes());
    }
    (0..90).for_each(|_| ask());
    clock.advance(SECOND * 20);
    ask();
    assert_eq!(store.len(), 2, "a place of its own for each, and nobody else");
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
