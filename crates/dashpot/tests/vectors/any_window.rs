//! Buckets whose window may change: time stays what it is.

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Key, KeyOperation, ManualClock, MemoryStore, Policy, PolicyError,
    Quota, Timestamp, Window,
};
use dashpot_testkit::trace::{Ask, Step};
use dashpot_testkit::{Trace, replay};

use super::{START, ms};

fn any(quota: &str) -> Policy {
    Policy::builder("any", quota.parse().unwrap()).any_window().build().unwrap()
}

fn store() -> (MemoryStore, ManualClock) {
    let clock = ManualClock::new(START);
    (MemoryStore::with_clock(clock.clone()), clock)
}

/// When the bucket is full again, as this policy sees it.
fn reset_after(store: &MemoryStore, policy: &Policy, key: &[u8]) -> Duration {
    store.manage_now(policy, Key::new(key), KeyOperation::Peek).statuses()[0].reset_after()
}

/// As redis-cell has it: `CL.THROTTLE k 0 1 60`, then `CL.THROTTLE k 0 1 1` and back.
#[test]
fn a_minute_stays_a_minute() {
    let (store, clock) = store();
    let (minute, second) = (any("1/min burst 1"), any("1/s burst 1"));
    let ask = |policy: &Policy| {
        let decision = store.decide_now(&[Check::new(policy, "k")]);
        (decision.is_allowed(), decision.retry_after())
    };
    assert_eq!(ask(&minute), (true, None));
    clock.advance(ms(1000));
    assert_eq!(ask(&second), (false, Some(ms(59_000))));
    clock.advance(ms(58_999));
    assert_eq!(ask(&second), (false, Some(ms(1))));
    clock.advance(ms(1));
    assert_eq!(ask(&second), (true, None));
    assert_eq!(ask(&minute), (false, Some(ms(1000))));
    // Six that take ten seconds each: a sixtieth of that is used, and that is less than one.
    let six = any("6/min");
    assert_eq!(store.decide_now(&[Check::new(&six, "k").cost(0)]).statuses()[0].remaining(), 5);
}

/// A third of a second is no whole number of nanoseconds, nor is a seventh; what is rounded is rounded once, by less
/// than one, against the caller.
#[test]
fn odd_rates_are_rounded_against_the_caller_by_less_than_a_nanosecond() {
    let (store, _) = store();
    let counts: Vec<u64> = vec![3, 7, 11, 13, 90, 97, 7777, 999_999_937, 1_000_000_007];
    for (number, from) in (0_u64..).zip(&counts) {
        for to in &counts {
            let key = [number.to_be_bytes(), to.to_be_bytes()].concat();
            let (one, other) = (any(&format!("{from}/s")), any(&format!("{to}/s burst 5")));
            assert!(store.decide_now(&[Check::new(&one, &key)]).is_allowed());
            let exact = 1_000_000_000_u128.div_ceil(u128::from(*from));
            assert_eq!(reset_after(&store, &one, &key).as_nanos(), exact);
            let told = reset_after(&store, &other, &key).as_nanos();
            assert!(told == exact || told == exact + 1, "{from} to {to}: {told}, not {exact}");
        }
    }
}

/// When it is full again is no matter of what the clock shows when somebody asks about it.
#[test]
fn a_clock_that_goes_back_finds_it_as_it_was() {
    let (store, clock) = store();
    let (seven, eleven) = (any("7/min"), any("11/min"));
    assert!(store.decide_now(&[Check::new(&seven, "k").cost(7)]).is_allowed());
    clock.advance(ms(3_600_000));
    // It is full now, under whichever.
    assert_eq!(reset_after(&store, &eleven, b"k"), ms(0));
    clock.set(START);
    assert_eq!(reset_after(&store, &eleven, b"k"), ms(60_000));
    assert_eq!(reset_after(&store, &seven, b"k"), ms(60_000));
}

/// So many counts and windows as there are callers, all telling time in nanoseconds: none is in another's way, and
/// each goes on where another has left off.
#[test]
fn thousands_of_definitions_in_one_table() {
    const CALLERS: u64 = 5000;
    let (store, clock) = store();
    // A unit takes some seconds, and the window is as long as its count takes.
    let unit = |number: u64| Duration::from_secs(number % 89 + 1);
    let policies: Vec<Policy> = (0..CALLERS)
        .map(|number| {
            let count = number % 997 + 1;
            let window = Window::new(unit(number) * u32::try_from(count).unwrap()).unwrap();
            // Deep enough for what any other has left.
            let quota = Quota::new(count, window).burst(1000 + number);
            Policy::builder("any", quota).any_window().build().unwrap()
        })
        .collect();
    let key = |number: u64| number.to_be_bytes();
    for (number, policy) in (0..).zip(&policies) {
        let decision = store.decide_now(&[Check::new(policy, &key(number)).cost(3)]);
        assert!(decision.is_allowed(), "{policy}");
        assert_eq!(decision.statuses()[0].reset_after(), 3 * unit(number), "{policy}");
    }
    clock.advance(ms(500));
    for (number, policy) in (0..).zip(policies.iter().rev()) {
        let theirs = unit(CALLERS - 1 - number);
        let decision = store.decide_now(&[Check::new(policy, &key(number))]);
        assert!(decision.is_allowed(), "{policy}: there is room for more than three");
        let exact = 3 * unit(number) + theirs - ms(500);
        assert_eq!(decision.statuses()[0].reset_after(), exact, "{policy}");
    }
    assert_eq!(store.len() as u64, CALLERS);
    assert!(store.usage().bytes < CALLERS * 64, "{:?}", store.usage());
}

/// More definitions that tell time in different grains than a table can tell apart: those beyond are kept aside, and
/// every answer is as right.
#[test]
fn more_grains_than_a_table_can_tell_apart() {
    let odd = (0..150_u64).map(|number| 2 * number + 3);
    // Not in multiples of two or five, which a second is.
    let odd: Vec<u64> = odd.filter(|count| count % 5 != 0).collect();
    assert!(odd.len() > 62 + 40);
    let policies = odd.iter().map(|count| any(&format!("{count}/s burst {}", count / 2)).into());
    let policies: Vec<_> = policies.collect();
    let keys: Vec<_> = (0..7_u8).map(|key| vec![key]).collect();
    let mut steps = Vec::new();
    for number in 0..policies.len() * 6 {
        let policy = number * 37 % policies.len();
        let ask = Ask::new(policy, number % 7, number as u64 % 4 + 1);
        match number % 5 {
            0 => steps.push(Step::Reserve(ask)),
            4 => steps.push(Step::Settle { which: 0, used: number as u64 % 3 }),
            _ => steps.push(Step::Check(vec![ask])),
        }
        steps.push(Step::Advance(Duration::from_nanos(number as u64 * 7919 % 50_000_000)));
    }
    let trace = Trace { start: START, policies, keys, steps };
    let (store, clock) = store();
    assert_eq!(replay(&store, &clock, &trace), Ok(()));
}

/// What is aside because there was no telling its grains apart comes back into its slot.
#[test]
fn what_is_aside_goes_on_under_a_rate_that_is_known() {
    let (store, clock) = store();
    let (first, key) = (any("1/s burst 100"), b"k".as_slice());
    assert!(store.decide_now(&[Check::new(&first, "other")]).is_allowed());
    for count in (3..400).step_by(2).filter(|count| count % 5 != 0) {
        let odd = any(&format!("{count}/s burst {}", 100 * count));
        let before = reset_after(&store, &first, key);
        let decision = store.decide_now(&[Check::new(&odd, key).cost(count)]);
        assert!(decision.is_allowed(), "{odd}");
        // As many as in a second take a second.
        let told = reset_after(&store, &first, key);
        let exact = before + Duration::from_secs(1);
        assert!((exact..=exact + Duration::from_nanos(2)).contains(&told), "{odd}: {told:?}");
        clock.advance(ms(900));
    }
}

/// Two definitions that keep their states alike share nothing else: what is given back is the reservation's own time.
#[test]
fn a_reservation_is_settled_at_its_own_rate() {
    let (store, _) = store();
    let (day, second) = (any("1/day burst 5"), any("1/s burst 100000"));
    // The first of those that tell time in nanoseconds.
    assert!(store.decide_now(&[Check::new(&day, "other")]).is_allowed());
    let check = Check::new(&second, "k").cost(10);
    let reservation = check.reservation(&store.decide_now(&[check])).unwrap();
    store.settle_now(&reservation, 4.into());
    assert_eq!(reset_after(&store, &second, b"k"), ms(4000));
    let reservation = check.reservation(&store.decide_now(&[check])).unwrap();
    store.settle_now(&reservation, 16.into());
    assert_eq!(reset_after(&store, &day, b"k"), ms(20_000));
}

/// Grains as fine as they get, and a moment far from the epoch, take more than a word.
#[test]
fn the_finest_grains_there_are() {
    let (store, clock) = store();
    clock.set(Timestamp::from_secs(7_000_000_000));
    let finest = Quota::new(u64::MAX, Window::SECOND).burst(u64::MAX);
    let finest = Policy::builder("any", finest).any_window().build().unwrap();
    let second = any("1/s burst 3600");
    assert!(store.decide_now(&[Check::new(&finest, "k").cost(u64::MAX)]).is_allowed());
    assert_eq!(reset_after(&store, &second, b"k"), ms(1000));
    assert!(store.decide_now(&[Check::new(&second, "k").cost(9)]).is_allowed());
    assert_eq!(reset_after(&store, &finest, b"k"), ms(10_000));
    clock.advance(ms(10_000));
    assert!(store.decide_now(&[Check::new(&finest, "k").cost(u64::MAX)]).is_allowed());
    assert_eq!(clock.now(), Timestamp::from_secs(7_000_000_010));
}

/// In one call, what passes has to pass under each, and is charged at the slowest rate.
#[test]
fn the_slowest_rate_governs() {
    let (slow, fast) = (any("1/min burst 9"), any("1/s burst 5"));
    assert_eq!(slow.stricter(&fast), &slow);
    assert_eq!(fast.stricter(&slow), &slow);
    let (one, less) = (any("60/min burst 9"), any("1/s burst 5"));
    assert_eq!((one.stricter(&less), less.stricter(&one)), (&less, &less));
    // With one window it is as ever.
    let plain = |quota: &str| Policy::new("plain", quota.parse().unwrap()).unwrap();
    let (few, slower) = (plain("60/min burst 5"), plain("1/min burst 9"));
    assert_eq!((few.stricter(&slower), slower.stricter(&few)), (&few, &few));

    let (store, clock) = store();
    let ask = |for_slow: u64, for_fast: u64| {
        let (slow, fast) = (Check::new(&slow, "k"), Check::new(&fast, "k"));
        let decision = store.decide_now(&[slow.cost(for_slow), fast.cost(for_fast)]);
        let status = decision.statuses()[1];
        assert_eq!(status.limit(), 5);
        (decision.is_allowed(), status.remaining(), decision.retry_after())
    };
    assert_eq!(ask(3, 3), (false, 5, None), "six of five");
    assert_eq!(ask(1, 1), (true, 0, None));
    // Two minutes; the other may be ahead by five seconds, of which one is for the cost.
    assert_eq!(ask(1, 0), (false, 0, Some(ms(116_000))));
    assert_eq!(ask(0, 0), (true, 0, None));
    clock.advance(ms(115_999));
    assert_eq!(ask(0, 1), (false, 0, Some(ms(1))));
    clock.advance(ms(1));
    assert_eq!(ask(0, 1), (true, 0, None));
    assert_eq!(reset_after(&store, &fast, b"k"), ms(64_000));
}

#[test]
fn it_says_so_and_shares_and_is_no_other() {
    let any = any("10/min burst 4");
    assert!(any.is_any_window());
    assert_eq!(any.to_string(), "any: 10/min burst 4, token-bucket, any window");
    let plain = Policy::new("any", any.quota()).unwrap();
    assert!(!plain.is_any_window());
    assert_ne!(any, plain);
    assert!(!any.same_counters(&plain) && !plain.same_counters(&any));
    let another = self::any("3/day");
    assert!(any.same_counters(&another));
    assert_ne!(any, another);

    let part = any.share(4.try_into().unwrap());
    assert_eq!(part.to_string(), "any: 2/min burst 1, token-bucket, any window");
    assert!(part.same_counters(&any));

    // Time is carried by the nanosecond, whatever the unit takes.
    let rates = |quota: &str| self::any(quota).carried_rate().map(|rate| (rate.units, rate.nanos));
    assert_eq!((rates("1/s"), rates("7/s")), (Some((1, 1)), Some((7, 7))));
    assert_eq!(plain.carried_rate(), plain.rate());
}

#[test]
fn only_a_bucket_that_lets_something_pass_has_any_window() {
    let build = |quota: &str, algorithm| {
        let builder = Policy::builder("any", quota.parse().unwrap()).algorithm(algorithm);
        builder.any_window().build()
    };
    assert!(build("1/s", Algorithm::LeakyBucket).is_ok());
    for (quota, algorithm) in [
        ("5/s", Algorithm::FixedWindow),
        ("5/s", Algorithm::SlidingLog),
        ("5/s", Algorithm::SlidingWindow),
        ("5 concurrent", Algorithm::Concurrency),
        ("unlimited", Algorithm::TokenBucket),
        ("0/s", Algorithm::TokenBucket),
    ] {
        let error = build(quota, algorithm).unwrap_err();
        assert_eq!(error, PolicyError::AnyWindow, "{quota}, {algorithm}");
    }
    let never = Policy::builder("any", Quota::per_second(5).burst(0)).any_window();
    assert_eq!(never.build().unwrap_err(), PolicyError::AnyWindow);
    // What is wrong about it anyway is told first.
    let both = build("5 concurrent", Algorithm::TokenBucket).unwrap_err();
    assert!(matches!(both, PolicyError::Form { .. }), "{both}");
}
