//! Two keys in one cell: neither gets anything at the other's expense, or by a trick.

use std::pin::pin;
use std::sync::Arc;
use std::task::Context;

use dashpot::{Algorithm, Check, Limiter, ManualClock};
use dashpot_testkit::Bell;

use super::{CLOCKED, NANO, SECOND, a_minute, fill, pair_in_one_cell, store};

struct Scene {
    clock: ManualClock,
    limiter: Limiter,
    /// Two keys that are counted in one cell.
    one: Vec<u8>,
    other: Vec<u8>,
}

/// Five a minute, and no room.
fn scene(algorithm: Algorithm) -> Scene {
    let (store, clock) = store(0);
    let limiter = a_minute(&store, algorithm, 5);
    let [one, other] = pair_in_one_cell(&store, &clock, limiter.policy()).unwrap();
    Scene { clock, limiter, one, other }
}

/// Several newcomers in one call, of one policy or of several, whether there is room for none, for
/// one or for some of them. It never returned.
#[test]
fn newcomers_in_one_call() {
    for max_keys in 0..4 {
        let (store, _clock) = store(max_keys);
        let policies = super::one_of_each(&store, 5);
        for key in 0..100_u64 {
            let keys = [key.to_be_bytes(), (key + 1000).to_be_bytes()];
            let checks: Vec<_> = policies
                .iter()
                .flat_map(|limiter| keys.iter().map(|key| Check::new(limiter.policy(), key)))
                .collect();
            assert!(store.decide_now(&checks).is_allowed());
            assert!(store.len() <= max_keys);
        }
    }
}

/// Two keys of one call that share a cell are counted both. Each was judged as if the other were not
/// there, and what one took was forgotten.
#[test]
fn both_keys_of_one_call_are_counted() {
    for algorithm in Algorithm::ALL {
        let Scene { limiter, one, other, .. } = scene(algorithm);
        let ask = |for_one: u64, for_other: u64| {
            let check = Check::new(limiter.policy(), &one).cost(for_one);
            let another = Check::new(limiter.policy(), &other).cost(for_other);
            limiter.store().decide_now(&[check, another]).is_allowed()
        };
        assert!(!ask(3, 3), "{algorithm}: together they may take five");
        assert!(ask(2, 1), "{algorithm}");
        assert_eq!(limiter.peek(&one).statuses()[0].remaining(), 2, "{algorithm}");
        assert_eq!(limiter.peek(&other).statuses()[0].remaining(), 2, "{algorithm}");
        assert!(ask(1, 0) && ask(0, 1), "{algorithm}");
        assert!(!ask(1, 0) && !ask(0, 1), "{algorithm}");
    }
}

/// What one has taken and not used has drained long ago. When it was given back, it was at the expense
/// of what the other has taken since: that one could take five more.
#[test]
fn what_one_gives_back_is_not_the_others() {
    for algorithm in CLOCKED {
        let Scene { clock, limiter, one, other } = scene(algorithm);
        let reservation = limiter.reserve(&one, 5).unwrap();
        clock.advance(limiter.peek(&one).statuses()[0].reset_after());
        assert!(limiter.check_n(&other, 5).is_allowed(), "{algorithm}");
        limiter.refund(reservation);
        assert!(!limiter.check(&other).is_allowed(), "{algorithm}");
    }
}

/// Two tiers count by one name. Where they met in a cell, what the slow one had used drained as fast as the other's: it had
/// its whole limit again after three tenths of a second.
#[test]
fn a_fast_mate_does_not_hurry_a_slow_one() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let Scene { clock, limiter, one, other } = scene(algorithm);
        let fast = a_minute(limiter.store(), algorithm, 1000);
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}");
        assert_eq!(fast.peek(&other).statuses()[0].remaining(), 995, "{algorithm}: as many units");
        assert!(fast.check_n(&other, 90).is_allowed(), "{algorithm}");
        clock.advance(SECOND * 12);
        assert!(!limiter.check(&one).is_allowed(), "{algorithm}");
        assert_eq!(
            fast.peek(&other).statuses()[0].remaining(),
            906,
            "{algorithm}: one has drained"
        );
        // Each goes on by its own limit, and nothing is lost by asking.
        (0..100).for_each(|_| drop(fast.peek(&other)));
        let reset = limiter.peek(&one).statuses()[0].reset_after();
        assert_eq!(reset, SECOND * 12 * 94, "{algorithm}");
        clock.advance(reset);
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}");
    }
}

/// Who takes nothing from a cell slows down nobody in it: a tier that is denied, one that only looks, or one that grants
/// nothing. A cell that such a one asked about once was full for good.
#[test]
fn who_takes_nothing_slows_nobody_down() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        for (tier, cost) in [(5, 5), (5, 0), (0, 1), (0, 0)] {
            let Scene { clock, limiter, one, other } = scene(algorithm);
            let fast = a_minute(limiter.store(), algorithm, 1000);
            let slow = a_minute(limiter.store(), algorithm, tier);
            assert!(fast.check_n(&one, 1000).is_allowed(), "{algorithm}");
            assert_eq!(slow.check_n(&other, cost).is_allowed(), cost == 0, "{algorithm}");
            assert!(!slow.check(&other).is_allowed(), "{algorithm}");
            clock.advance(SECOND * 60);
            assert!(fast.check_n(&one, 1000).is_allowed(), "{algorithm} {tier}/min {cost}");
        }
    }
}

/// Who shares a cell with a slower one is told how long that takes to drain, and not how long its own would.
#[test]
fn a_wait_in_a_slow_cell_is_enough() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        for count in [1000, 77, 13, 7] {
            let Scene { clock, limiter, one, other } = scene(algorithm);
            let fast = a_minute(limiter.store(), algorithm, count);
            assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}");
            let denied = fast.check_n(&other, count);
            assert_eq!(denied.statuses()[0].reset_after(), SECOND * 60, "{algorithm} {count}");
            let wait = denied.retry_after().unwrap();
            // What rounding adds is less than a unit of each.
            assert!(wait >= SECOND * 60 && wait <= SECOND * 60 + NANO * 1000, "{wait:?}");
            clock.advance(SECOND * 60 - NANO);
            assert!(!fast.check_n(&other, count).is_allowed(), "{algorithm} {count}");
            clock.advance(wait + NANO - SECOND * 60);
            assert!(fast.check_n(&other, count).is_allowed(), "{algorithm} {count}");
        }
    }
}

/// The other way round, too: what a slow one asks for drains as fast as the cell does, in which nobody slow is counted. It was told
/// three hours, and who waits with a deadline gave up at once.
#[test]
fn a_wait_in_a_fast_cell_is_the_least() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let Scene { clock, limiter, one, other } = scene(algorithm);
        let fast = a_minute(limiter.store(), algorithm, 1000);
        assert!(fast.check_n(&one, 1000).is_allowed(), "{algorithm}");
        let denied = limiter.check(&other);
        assert_eq!(denied.statuses()[0].reset_after(), SECOND * 60, "{algorithm}");
        // All but four of a thousand, at sixty milliseconds each.
        let wait = denied.retry_after().unwrap();
        assert!(wait >= SECOND * 60 * 996 / 1000 && wait <= SECOND * 60 * 996 / 1000 + NANO);
        clock.advance(wait - NANO * 2);
        assert!(!limiter.check(&other).is_allowed(), "{algorithm}");
        clock.advance(NANO * 2);
        assert!(limiter.check(&other).is_allowed(), "{algorithm}");
    }
}

/// A cell that has nothing to drain is nobody's: what is charged to it first drains at that one's rate, also if it is debt. It drained
/// at the rate of whoever was there before, and never if that was nothing a minute.
#[test]
fn debt_in_an_empty_cell_drains_at_its_own_rate() {
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        for tier in [5, 0] {
            let Scene { clock, limiter, one, other } = scene(algorithm);
            let fast = a_minute(limiter.store(), algorithm, 1000);
            let slow = a_minute(limiter.store(), algorithm, tier);
            let reserved = fast.reserve(&other, 1).unwrap();
            clock.advance(SECOND);
            assert_eq!(slow.check(&one).is_allowed(), tier > 0, "{algorithm}");
            clock.advance(SECOND * 12);
            fast.settle(reserved, 501);
            let peek = fast.peek(&other);
            assert_eq!(peek.statuses()[0].reset_after(), SECOND * 30, "{algorithm} {tier}");
            assert_eq!(peek.statuses()[0].remaining(), 500, "{algorithm} {tier}");
        }
    }
}

/// Who only looks denies nobody what is asked for beside it, and what one alone can never have is never.
#[test]
fn looking_at_a_mate_has_no_say() {
    let Scene { limiter, one, other, .. } = scene(Algorithm::TokenBucket);
    let fast = a_minute(limiter.store(), Algorithm::TokenBucket, 1000);
    let ask = |cost: u64, looked: u64| {
        let asked = Check::new(fast.policy(), &one).cost(cost);
        let looked = Check::new(limiter.policy(), &other).cost(looked);
        [[asked, looked], [looked, asked]].map(|both| limiter.store().decide_now(&both))
    };
    assert!(fast.check(&one).is_allowed(), "and is counted in the cell");
    for decision in ask(50, 0) {
        assert!(decision.is_allowed());
        assert!(decision.statuses().iter().any(|status| status.limit() == 5));
    }
    assert_eq!(fast.peek(&one).statuses()[0].remaining(), 899);
    for decision in ask(1, 6) {
        assert!(!decision.is_allowed() && decision.is_never());
    }
    for decision in ask(1, 5) {
        assert!(!decision.is_allowed() && !decision.is_never());
    }
}

/// Who leaves a cell for a place of its own takes along what everybody there has used, in short: it is as strict, and takes
/// no more room than a key of its own does. Each took along all entries of all.
#[test]
fn a_log_is_left_with_in_short() {
    let (store, clock) = store(20);
    let squatters = fill(&store);
    let limiter = a_minute(&store, Algorithm::SlidingLog, 9000);
    let [one, other] = pair_in_one_cell(&store, &clock, limiter.policy()).unwrap();
    for _ in 0..5000 {
        assert!(limiter.check(&one).is_allowed());
        clock.advance(NANO * 1000);
    }
    for key in 0..20_u64 {
        squatters.reset(&key.to_be_bytes());
    }
    // Whoever finds no room where it belongs sweeps everywhere.
    assert!(a_minute(&store, Algorithm::FixedWindow, 2).check("passer-by").is_allowed());
    let keys = store.len();
    let counted = allocation_counter::measure(|| {
        let answer = limiter.check(&other);
        assert_eq!(answer.statuses()[0].remaining(), 3999, "what others used counts");
        assert_eq!(answer.statuses()[0].reset_after(), SECOND * 60);
    });
    assert!(counted.bytes_max < 10_000, "{counted:?}");
    assert_eq!(store.len(), keys + 1, "it has a place of its own");
    assert_eq!(limiter.check(&one).statuses()[0].remaining(), 3999, "and it is the only one there");
    clock.advance(SECOND * 60 - NANO * 501);
    assert!(limiter.check_n(&other, 8999).is_allowed(), "and all of it ends when it would have");
}

/// One unit costs some tiers more than others. Where two are asked about at once, each pays its own price.
#[test]
fn each_of_two_pays_its_own_price() {
    let (store, clock) = store(0);
    let ten = a_minute(&store, Algorithm::TokenBucket, 10);
    let [one, other] = pair_in_one_cell(&store, &clock, ten.policy()).unwrap();
    let half = a_minute(&store, Algorithm::TokenBucket, 100).policy().reduced_to(50);
    let both = [Check::new(ten.policy(), &one), Check::new(&half, &other).cost(4)];
    assert!(store.decide_now(&both).is_allowed());
    let peek = store.decide_now(&[Check::new(&half, &other).cost(0)]);
    // Of a hundred one and four times two are gone; another takes two.
    assert_eq!(peek.statuses()[0].remaining(), 45);
}

/// Who waits for one of two keys of a cell comes first, also if both are asked about at once.
#[test]
fn a_call_about_both_does_not_overtake() {
    let Scene { clock, limiter, one, other } = scene(Algorithm::TokenBucket);
    assert!(limiter.check_n(&one, 5).is_allowed());
    for (first, second) in [(&one, &other), (&other, &one)] {
        let waker = Arc::new(Bell::default()).into();
        let mut context = Context::from_waker(&waker);
        let mut waiting = pin!(limiter.until_ready(second, 2, SECOND * 60));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        clock.advance(SECOND * 24);
        let both = [Check::new(limiter.policy(), first), Check::new(limiter.policy(), second)];
        assert!(!limiter.store().decide_now(&both).is_allowed());
        assert!(waiting.as_mut().poll(&mut context).is_ready());
    }
}

/// More than a cell ever grants at once is no reason to give up, if it is several keys that want it.
#[test]
fn what_two_want_is_not_never() {
    let Scene { limiter, one, other, .. } = scene(Algorithm::TokenBucket);
    let both = [&one, &other].map(|key| Check::new(limiter.policy(), key).cost(3));
    let denied = limiter.store().decide_now(&both);
    assert!(!denied.is_allowed() && !denied.is_never());
}

/// A block outlasts what the cell counts, and a reset.
#[test]
fn a_block_in_a_cell_lasts() {
    for algorithm in CLOCKED {
        let Scene { clock, limiter, one, other } = scene(algorithm);
        assert!(limiter.check_n(&one, 4).is_allowed(), "{algorithm}");
        limiter.block(&one, SECOND * 3600);
        limiter.reset(&one);
        clock.advance(SECOND * 3600 - NANO);
        assert!(!limiter.check(&one).is_allowed(), "{algorithm}");
        assert!(limiter.check_n(&other, 5).is_allowed(), "{algorithm}");
        clock.advance(NANO);
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}: it has a place of its own");
    }
}

/// A reset is for one key, and at nobody's expense.
#[test]
fn a_reset_is_for_one() {
    for algorithm in CLOCKED {
        let Scene { limiter, one, other, .. } = scene(algorithm);
        assert!(limiter.check_n(&one, 3).is_allowed(), "{algorithm}");
        assert!(limiter.check_n(&other, 2).is_allowed(), "{algorithm}");
        limiter.reset(&one);
        assert!(!limiter.check(&other).is_allowed(), "{algorithm}");
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}");
    }
}

/// Permits come back to the cell they were taken in, whatever was done to their key meanwhile. They
/// came back to a place of its own, and the cell was short of them for ever.
#[test]
fn permits_come_back_to_their_cell() {
    let Scene { clock, limiter, one, other } = scene(Algorithm::Concurrency);
    for _ in 0..10 {
        let permit = limiter.acquire(&one).unwrap();
        limiter.block(&one, SECOND);
        limiter.reset(&one);
        drop(permit);
        // Not `unblock`: a block of keys that share lasts, because it may be another's.
        clock.advance(SECOND);
        assert!(limiter.acquire(&one).is_ok());
    }
    assert_eq!(limiter.peek(&other).statuses()[0].remaining(), 5);
    assert!(limiter.store().usage().keys == 0);
}

/// Who waits for a permit is woken when somebody else gives back what they share. It was not, and
/// slept for ever.
#[test]
fn a_permit_that_comes_back_wakes_those_who_share() {
    let Scene { limiter, one, other, .. } = scene(Algorithm::Concurrency);
    let mut permits: Vec<_> = (0..5).map(|_| limiter.acquire(&one).unwrap()).collect();
    let bell = Arc::new(Bell::default());
    let waker = bell.waker();
    let mut context = Context::from_waker(&waker);
    let mut waiting = pin!(limiter.acquire_within(&other, SECOND * 3600));
    assert!(waiting.as_mut().poll(&mut context).is_pending());
    permits.pop();
    assert!(bell.rings() > 0, "woken");
    assert!(waiting.as_mut().poll(&mut context).is_ready());
}

/// A few in a cell, and a store that has room again: they stay together until the cell is whole.
#[test]
fn together_until_the_cell_is_whole() {
    for algorithm in CLOCKED {
        let (store, clock) = store(10);
        let squatters = fill(&store);
        let limiter = a_minute(&store, algorithm, 5);
        let [one, other] = pair_in_one_cell(&store, &clock, limiter.policy()).unwrap();
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}");
        for key in 0..10_u64 {
            squatters.reset(&key.to_be_bytes());
        }
        assert!(!limiter.check(&other).is_allowed(), "{algorithm}");
        clock.advance(limiter.peek(&other).statuses()[0].reset_after() - NANO);
        assert!(!limiter.check_n(&other, 5).is_allowed(), "{algorithm}");
        clock.advance(NANO);
        assert!(limiter.check_n(&other, 5).is_allowed(), "{algorithm}");
        assert!(limiter.check_n(&one, 5).is_allowed(), "{algorithm}: each by itself now");
    }
}
