//! Traps that other limiters fell into, each with its story. Those about the calendar are in
//! `calendar.rs`, those about threads in `stress.rs`.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Limiter, ManualClock, MemoryStore, Policy, Quota, Timestamp, Window,
};
use dashpot_testkit::limit;

fn on(clock: &ManualClock, policy: Policy) -> Limiter {
    Limiter::on(policy, MemoryStore::with_clock(clock.clone()))
}

/// So many a minute; at once, under concurrency.
fn a_minute(clock: &ManualClock, algorithm: Algorithm, count: u64) -> Limiter {
    on(clock, limit("p", algorithm, count, Window::MINUTE))
}

fn bucket_on(clock: &ManualClock, quota: Quota) -> Limiter {
    on(clock, Policy::new("p", quota).unwrap())
}

fn bucket(quota: &str) -> (Limiter, ManualClock) {
    let clock = ManualClock::default();
    (bucket_on(&clock, quota.parse().unwrap()), clock)
}

fn admitted(limiter: &Limiter, tries: usize) -> usize {
    (0..tries).filter(|_| limiter.check("k").is_allowed()).count()
}

/// Those that run by a clock, each in its own way.
const CLOCKED: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::FixedWindow,
    Algorithm::SlidingLog,
    Algorithm::SlidingWindow,
];

const NANO: Duration = Duration::from_nanos(1);

/// throttlecrab kept credit from a rest on top of the burst: a burst of 10 admitted 17.
#[test]
fn trap_idle_credit_on_top_of_the_burst() {
    let (limiter, clock) = bucket("10/s burst 10");
    assert_eq!(admitted(&limiter, 5), 5);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(admitted(&limiter, 100), 10);
}

/// And a burst of 1 at one per minute admitted 1000 of 1000, because its state lived for no time.
#[test]
fn trap_state_that_expires_at_once() {
    let (limiter, clock) = bucket("1/min burst 1");
    let mut passed = 0;
    for _ in 0..1000 {
        passed += admitted(&limiter, 1);
        clock.advance(Duration::from_millis(60));
    }
    assert_eq!(passed, 1, "1000 tries in one minute");
    assert!(limiter.check("k").is_allowed(), "and one when the minute is over");
}

/// governor before 0.8 let one more through than the burst; redis-cell's burst is one less than
/// its capacity.
#[test]
fn trap_burst_off_by_one() {
    for capacity in [1, 2, 20] {
        let (limiter, _) = bucket(&format!("10/s burst {capacity}"));
        assert_eq!(admitted(&limiter, 100), capacity);
        assert_eq!(limiter.peek("k").statuses()[0].limit(), capacity as u64);
    }
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingLog, Algorithm::SlidingWindow] {
        let limiter = a_minute(&ManualClock::default(), algorithm, 20);
        assert_eq!(admitted(&limiter, 100), 20, "{algorithm}");
    }
}

/// tower-governor and throttlecrab round waits down, to `Retry-After: 0` in the end.
#[test]
fn trap_truncated_wait() {
    // A third of a second is no whole number of nanoseconds.
    let (limiter, clock) = bucket("3/s burst 1");
    assert_eq!(admitted(&limiter, 2), 1);
    let wait = limiter.check("k").retry_after().unwrap();
    assert_eq!(wait, Duration::from_nanos(333_333_334));
    clock.advance(wait - NANO);
    let denied = limiter.check("k");
    assert_eq!(denied.retry_after(), Some(NANO), "one nanosecond short is short");
    clock.advance(NANO);
    assert!(limiter.check("k").is_allowed());
}

/// Envoy's service and Kong's sliding windows count what they deny: a client that keeps trying
/// never gets through again, and drains its other quotas meanwhile.
#[test]
fn trap_denied_requests_are_charged() {
    for algorithm in Algorithm::ALL {
        let clock = ManualClock::default();
        let limiter = a_minute(&clock, algorithm, 2);
        let daily = Policy::new("daily", Quota::per_day(100)).unwrap();
        let both = [Check::new(limiter.policy(), "k"), Check::new(&daily, "k")];
        let passed = (0..1000).filter(|_| limiter.store().decide_now(&both).is_allowed()).count();
        assert_eq!(passed, 2, "{algorithm}");
        let left = limiter.store().decide_now(&[Check::new(&daily, "k").cost(0)]);
        assert_eq!(left.statuses()[0].remaining(), 98, "{algorithm}");
        if let Some(wait) = limiter.check("k").retry_after() {
            admitted(&limiter, 1000);
            clock.advance(wait);
            assert!(limiter.check("k").is_allowed(), "{algorithm}");
        }
    }
}

/// Intervals below a microsecond that became 0, which is unlimited, or divided by zero.
#[test]
fn trap_intervals_that_round_to_nothing() {
    let clock = ManualClock::default();
    for (count, window) in [
        (1_000_000_000, Window::SECOND),
        (3_000_000_000, Window::SECOND),
        (u64::MAX, Window::SECOND),
        (u64::MAX, Window::new(NANO).unwrap()),
    ] {
        let quota = Quota::new(count, window).burst(10);
        let limiter = bucket_on(&clock, quota);
        assert_eq!(admitted(&limiter, 1000), 10, "{quota}");
        assert_eq!(limiter.check("k").retry_after(), Some(NANO), "{quota}");
        clock.advance(NANO);
        let back = u128::from(count) / window.length().as_nanos();
        assert_eq!(admitted(&limiter, 1000) as u128, back.min(10), "{quota}");
    }
}

/// Floats let callers in half an interval early once numbers are large.
#[test]
fn trap_rates_that_drift() {
    // Primes: no unit of time measures a unit's.
    for (count, hours) in [(7, 1000), (7919, 12), (99_991, 1)] {
        let clock = ManualClock::new(Timestamp::from_secs(1_900_000_000));
        let limiter = bucket_on(&clock, Quota::per_hour(count).burst(2));
        let end = Timestamp::from_secs(1_900_000_000 + hours * 3600);
        let mut passed = 0;
        // As fast as the waits allow; the last one passes at the very end.
        while clock.now() <= end {
            let decision = limiter.check("k");
            passed += u64::from(decision.is_allowed());
            clock.advance(decision.retry_after().unwrap_or_default());
            if passed > count * hours + 2 {
                break;
            }
        }
        assert_eq!(passed, count * hours + 2, "{count}/h for {hours} h");
    }
}

/// tower-governor's `per_second(5)` meant one every five seconds.
#[test]
fn trap_per_second_means_every_so_many_seconds() {
    let limiter = Limiter::new(Quota::per_second(5));
    let status_limit = limiter.peek("k").statuses()[0].limit();
    assert_eq!((status_limit, limiter.policy().quota().to_string()), (5, "5/s".into()));
    let (limiter, clock) = bucket("5/s");
    assert_eq!(admitted(&limiter, 10), 5);
    clock.advance(Duration::from_secs(1));
    assert_eq!(admitted(&limiter, 10), 5);
}

/// pingora-limits asserted on the hot path and panicked in a limiter's first second.
#[test]
fn trap_panic_in_the_first_second() {
    for algorithm in Algorithm::ALL {
        for now in [Timestamp::EPOCH, Timestamp::from_nanos(1), Timestamp::MAX] {
            let limiter = a_minute(&ManualClock::new(now), algorithm, 3);
            assert_eq!(admitted(&limiter, 10), 3, "{algorithm} at {now:?}");
        }
    }
}

/// Least-recently-used eviction is an amnesty for whoever can make keys; and without any, memory
/// grows with every key ever seen.
#[test]
fn trap_eviction_is_amnesty_and_memory_is_unbounded() {
    let (limiter, clock) = bucket("1/min burst 3");
    assert_eq!(admitted(&limiter, 10), 3);
    // An attacker makes keys, as many as are used up within the second.
    let mut most = 0;
    for key in 0..200_000_u32 {
        assert!(limiter.check(&key.to_be_bytes()).is_allowed());
        clock.advance(Duration::from_millis(1));
        most = most.max(limiter.store().len());
        if key == 50_000 {
            // 50 s on, the first key is still owed ten seconds.
            assert!(!limiter.check("k").is_allowed());
        }
    }
    // A key is idle after a minute, when 60 000 others have come. Two are looked at for each that
    // comes, so no more than twice as many are ever there.
    assert!(most >= 60_000, "{most} keys: those still owed a wait must be kept");
    assert!(most <= 120_000, "{most} keys: idle ones must go");
}

/// The same for what runs by no clock: a block, and a permit in flight, outlast any crowd.
#[test]
fn trap_eviction_is_amnesty_for_the_blocked_and_the_busy() {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let crowd = Limiter::on(Policy::new("crowd", Quota::per_second(1)).unwrap(), store.clone());
    let busy = Limiter::on(Policy::new("busy", Quota::concurrent(1)).unwrap(), store.clone());
    crowd.block("k", Duration::from_secs(3600));
    let permit = busy.acquire("k").unwrap();
    for key in 0..100_000_u32 {
        assert!(crowd.check(&key.to_be_bytes()).is_allowed());
        clock.advance(Duration::from_millis(10));
    }
    assert!(store.len() < 20_000, "{} keys: the crowd was swept", store.len());
    assert!(!crowd.check("k").is_allowed());
    assert!(busy.acquire("k").is_err());
    drop(permit);
    assert!(busy.acquire("k").is_ok());
}

/// Sweeps of all keys on somebody's request: whoever comes first after a rush pays for everybody.
#[test]
fn trap_a_sweep_of_everything_on_the_request_path() {
    let (limiter, clock) = bucket("1/s");
    for key in 0..50_000_u32 {
        assert!(limiter.check(&key.to_be_bytes()).is_allowed());
    }
    clock.advance(Duration::from_secs(3600));
    let mut left = limiter.store().len();
    assert_eq!(left, 50_000, "all of them idle now");
    for key in 50_000..60_000_u32 {
        assert!(limiter.check(&key.to_be_bytes()).is_allowed());
        let now = limiter.store().len();
        assert!(left <= now + 800, "a page at most, not everything: from {left} to {now}");
        left = now;
    }
    assert!(left < 35_000, "{left} keys: and they do go");
}

/// At the start of a window, what stands is replaced; what others count right after must add up.
#[test]
fn trap_window_rollover_that_stores_instead_of_adds() {
    for algorithm in [Algorithm::FixedWindow, Algorithm::SlidingWindow] {
        let clock = ManualClock::default();
        let limiter = a_minute(&clock, algorithm, 10);
        for _ in 0..3 {
            clock.advance(Duration::from_secs(120));
            for taken in 1..=10 {
                let decision = limiter.check("k");
                assert_eq!(decision.statuses()[0].remaining(), 10 - taken, "{algorithm}");
            }
            assert!(!limiter.check("k").is_allowed(), "{algorithm}");
        }
    }
}

/// A clock set back that freezes limiters, or hands out what was already used.
#[test]
fn trap_a_clock_that_goes_back() {
    for algorithm in CLOCKED {
        let clock = ManualClock::default();
        let limiter = a_minute(&clock, algorithm, 3);
        assert_eq!(admitted(&limiter, 10), 3);
        let told = limiter.check("k").retry_after().unwrap();
        let back = Duration::from_secs(3600);
        clock.set(clock.now().before(back));
        let denied = limiter.check("k");
        assert!(!denied.is_allowed(), "{algorithm}: going back grants nothing");
        assert_eq!(denied.retry_after(), Some(told + back), "{algorithm}: and the wait is true");
        clock.advance(told + back);
        assert!(limiter.check("k").is_allowed(), "{algorithm}: and breaks nothing");
    }
}

/// Keys without an expiry answered 429 for ever: whatever was used, every key is new again after
/// its `reset_after`, and not before.
#[test]
fn trap_limited_for_ever() {
    for algorithm in CLOCKED {
        let clock = ManualClock::default();
        let limiter = a_minute(&clock, algorithm, 3);
        admitted(&limiter, 10);
        let reset = limiter.peek("k").statuses()[0].reset_after();
        clock.advance(reset - NANO);
        assert!(!limiter.check_n("k", 3).is_allowed(), "{algorithm}");
        clock.advance(NANO);
        assert!(limiter.check_n("k", 3).is_allowed(), "{algorithm}");
    }
}
