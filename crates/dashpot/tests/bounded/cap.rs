//! Never more keys than may be.

use dashpot::{Algorithm, Check, Cost};

use super::{SECOND, a_minute, fill, one_of_each, store};

/// Whatever the policies, and whatever is done: the bound is on all of them together.
#[test]
fn all_policies_together_keep_the_bound() {
    for max_keys in [0, 1, 2, 7, 100, 1000] {
        let (store, clock) = store(max_keys);
        let limiters = one_of_each(&store, 3);
        for key in 0..5000_u64 {
            let key = key.to_be_bytes();
            for limiter in &limiters {
                assert!(limiter.peek(&key).is_allowed());
                if let Ok(reservation) = limiter.reserve(&key, 2) {
                    limiter.settle(reservation, u64::from(key[7]) % 5);
                }
                assert!(store.len() <= max_keys, "{} of {max_keys}", store.len());
            }
            let checks: Vec<_> =
                limiters.iter().map(|limiter| Check::new(limiter.policy(), &key)).collect();
            let _ = store.decide_now(&checks);
            assert_eq!(store.usage().keys, store.len() as u64);
            assert!(store.len() <= max_keys, "{} of {max_keys}", store.len());
            if key[7] == 0 {
                clock.advance(SECOND * 20);
            }
        }
        assert_eq!(store.usage().max_keys, max_keys as u64);
    }
}

/// With no room at all, or for one key only, everybody is still served, and limited.
#[test]
fn room_for_none_or_one() {
    for max_keys in [0, 1] {
        let (store, clock) = store(max_keys);
        for limiter in one_of_each(&store, 3) {
            for _ in 0..3 {
                assert!(limiter.check("a").is_allowed(), "{}", limiter.policy());
            }
            assert!(!limiter.check("a").is_allowed(), "{}", limiter.policy());
            assert!(limiter.check_n("a", 4).is_never());
            assert!(limiter.check_n("a", Cost::PEEK).is_allowed());
            limiter.block("b", SECOND);
            assert!(!limiter.check("b").is_allowed());
            limiter.unblock("b");
            assert!(limiter.check("b").is_allowed());
            limiter.reset("b");
            assert!(store.len() <= max_keys + 1, "one that was blocked comes on top");
            clock.advance(SECOND * 3600);
        }
    }
}

/// A key that has its place keeps it, and is counted exactly, when all others are taken too.
#[test]
fn who_is_in_is_not_bothered_by_the_bound() {
    let (store, clock) = store(100);
    let limiter = a_minute(&store, Algorithm::TokenBucket, 60);
    assert!(limiter.check("k").is_allowed());
    let squatters = super::squatters(&store);
    for key in 0..1000_u64 {
        let _ = squatters.check(&key.to_be_bytes());
        assert_eq!(limiter.peek("k").statuses()[0].remaining(), 59);
    }
    for _ in 0..1000 {
        clock.advance(SECOND);
        assert_eq!(limiter.peek("k").statuses()[0].remaining(), 60);
        assert_eq!(limiter.check("k").statuses()[0].remaining(), 59);
    }
}

/// Keys that are blocked are remembered on top, and make room when their block is over.
#[test]
fn blocks_come_on_top_and_go_again() {
    let (store, clock) = store(10);
    let squatters = fill(&store);
    for key in 0..50_u64 {
        squatters.block(&(key + 1000).to_be_bytes(), SECOND);
    }
    assert!(store.len() <= 60, "{}", store.len());
    clock.advance(SECOND);
    for key in 0..1000_u64 {
        let _ = squatters.check(&(key + 2000).to_be_bytes());
    }
    assert_eq!(store.len(), 10, "the blocks are over");
    for key in 0..10_u64 {
        assert!(!squatters.check(&key.to_be_bytes()).is_allowed(), "and squatters stay");
    }
}

/// So are keys that are reset while others are counted with them: they start afresh in a place of
/// their own, because there is no telling what of the shared count is theirs. (Permits in flight are
/// left where they must come back to.)
#[test]
fn resets_come_on_top_and_go_again() {
    let (store, clock) = store(10);
    fill(&store);
    for algorithm in Algorithm::ALL.into_iter().filter(|it| *it != Algorithm::Concurrency) {
        let limiter = a_minute(&store, algorithm, 3);
        for key in 0..50_u64 {
            let key = key.to_be_bytes();
            let _ = limiter.check_n(&key, 3);
            limiter.reset(&key);
            assert!(limiter.check(&key).is_allowed(), "{}", limiter.policy());
            limiter.reset(&key);
        }
        assert!(store.len() <= 60, "{}", store.len());
        for key in 0..1000_u64 {
            let _ = limiter.check(&(key + 2000).to_be_bytes());
        }
        assert_eq!(store.len(), 10, "what is whole makes room");
        clock.advance(SECOND * 3600);
    }
}
