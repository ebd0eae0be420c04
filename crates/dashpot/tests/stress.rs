//! Real threads, counted exactly.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Limiter, ManualClock, MemoryStore, Policy, Quota, Timestamp, Window,
};
use dashpot_testkit::limit;

const THREADS: u64 = 8;

/// Runs `work` on all threads at once and adds up what they return.
fn on_all_threads(work: impl Fn(u64) -> u64 + Sync) -> u64 {
    dashpot_testkit::on_all_threads(THREADS, work).into_iter().sum()
}

fn policy(algorithm: Algorithm, count: u64) -> Policy {
    limit("p", algorithm, count, Window::MINUTE)
}

/// limitador checks, then updates: two threads that check at the same time both pass. Another
/// trap: at a window's rollover a store instead of an add loses what others counted meanwhile.
#[test]
fn trap_check_then_update() {
    const LIMIT: u64 = 1000;
    for algorithm in Algorithm::ALL {
        let clock = ManualClock::default();
        let limiter = Limiter::on(policy(algorithm, LIMIT), MemoryStore::with_clock(clock.clone()));
        let tries = |limiter: &Limiter| {
            on_all_threads(|_| (0..500).filter(|_| limiter.check("k").is_allowed()).count() as u64)
        };
        assert_eq!(tries(&limiter), LIMIT, "{algorithm}");
        if algorithm != Algorithm::Concurrency {
            // Minutes later each starts afresh, all threads rushing into the new window at once.
            for _ in 0..20 {
                clock.advance(Duration::from_secs(120));
                assert_eq!(tries(&limiter), LIMIT, "{algorithm}");
            }
        }
    }
}

/// Callers that name the same limits in different orders neither deadlock nor over-admit, and a
/// denial by one limit gives nothing away of the others.
#[test]
fn several_limits_at_once_from_all_sides() {
    let store = MemoryStore::with_clock(ManualClock::default());
    let policies: Vec<_> = (0..6)
        .map(|index| Policy::new(format!("p{index}"), Quota::per_hour(300 + index)).unwrap())
        .collect();
    let passed = on_all_threads(|thread| {
        let mut checks: Vec<_> = policies.iter().map(|policy| Check::new(policy, "k")).collect();
        checks.rotate_left(thread as usize % 6);
        if thread % 2 == 1 {
            checks.reverse();
        }
        (0..200).filter(|_| store.decide_now(&checks).is_allowed()).count() as u64
    });
    assert_eq!(passed, 300, "the smallest limit decides");
    for (index, policy) in policies.iter().enumerate() {
        let decision = store.decide_now(&[Check::new(policy, "k").cost(0)]);
        assert_eq!(decision.statuses()[0].remaining(), index as u64, "{policy}");
    }
}

/// A bucket whose window changes with every caller, seven hundred seconds deep under each: together they get that
/// many seconds, to the last unit that fits.
#[test]
fn any_window_from_all_sides() {
    let store = MemoryStore::with_clock(ManualClock::default());
    let any = |quota: &str| Policy::builder("p", quota.parse().unwrap()).any_window().build();
    let policies = ["1/s burst 700", "7/s burst 4900", "60/min burst 700", "3/s burst 2100"];
    let policies = policies.map(|quota| any(quota).unwrap());
    // Of a second, in twenty-firsts.
    let takes = [21, 3, 21, 7];
    let taken = on_all_threads(|thread| {
        let mine = (thread as usize..).map(|turn| turn % 4).take(3000);
        let passed = mine
            .filter(|&policy| store.decide_now(&[Check::new(&policies[policy], "k")]).is_allowed());
        passed.map(|policy| takes[policy]).sum()
    });
    // Each change rounds up, by less than a nanosecond: the least unit of all may not fit any more.
    assert!((700 * 21 - 3..=700 * 21).contains(&taken), "{taken}");
}

/// Units that were given back can be taken again, each exactly once.
#[test]
fn reserve_and_give_back() {
    let clock = ManualClock::default();
    for algorithm in Algorithm::ALL {
        let limiter = Limiter::on(policy(algorithm, 50), MemoryStore::with_clock(clock.clone()));
        let in_use = AtomicU64::new(0);
        on_all_threads(|_| {
            for _ in 0..2000 {
                if let Ok(reservation) = limiter.reserve("k", 7) {
                    let now = in_use.fetch_add(7, Ordering::SeqCst) + 7;
                    assert!(now <= 50, "{algorithm}: {now} in use");
                    in_use.fetch_sub(7, Ordering::SeqCst);
                    limiter.refund(reservation);
                }
            }
            0
        });
        let status = limiter.peek("k");
        assert_eq!(status.statuses()[0].remaining(), 50, "{algorithm}");
    }
}

/// A clock by which no two readings are the same.
#[derive(Default)]
struct CountingClock(AtomicU64);

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        let reading = self.0.fetch_add(1, Ordering::SeqCst);
        // Whoever holds a reading for long must not be served with it after others.
        thread::yield_now();
        Timestamp::from_secs(1_000_000_000).after(Duration::from_nanos(reading))
    }
}

/// Callers of one key are served by the time at which it is their turn: in the order in which they
/// took the units, their times grow.
#[test]
fn time_is_read_when_it_is_a_callers_turn() {
    let store = Arc::new(MemoryStore::with_clock(CountingClock::default()));
    let limiter = Limiter::on(policy(Algorithm::FixedWindow, 4000), store);
    let taken = Mutex::new(Vec::new());
    on_all_threads(|_| {
        for _ in 0..500 {
            let decision = limiter.check("k");
            taken.lock().unwrap().push((decision.statuses()[0].remaining(), decision.at()));
        }
        0
    });
    let mut taken = taken.into_inner().unwrap();
    taken.sort_unstable_by_key(|(remaining, _)| u64::MAX - remaining);
    assert_eq!(taken.len(), 4000);
    assert!(taken.is_sorted_by(|(left, at), (less, later)| left > less && at < later));
}

/// On the machine's own clock: in the time that really passed, no more than burst and rate allow.
#[test]
fn the_bound_holds_in_real_time() {
    let limiter = Limiter::new(Quota::per_second(20_000).burst(100));
    let first = limiter.peek("k").at();
    let last = AtomicU64::new(0);
    let passed = on_all_threads(|_| {
        let mut passed = 0;
        for _ in 0..20_000 {
            let decision = limiter.check("k");
            if decision.is_allowed() {
                passed += 1;
                last.fetch_max(decision.at().as_nanos(), Ordering::SeqCst);
            }
        }
        passed
    });
    let elapsed = Timestamp::from_nanos(last.into_inner()).since(first);
    let bound = 100 + u64::try_from(elapsed.as_nanos() / 50_000).unwrap();
    assert!(passed <= bound, "{passed} passed in {elapsed:?}, {bound} may");
    assert!(passed >= 100, "{passed}");
}

/// Many keys come and go while threads hammer a few: nobody's count is lost in the moves.
#[test]
fn sweeping_loses_no_count() {
    let clock = ManualClock::default();
    let store = Arc::new(MemoryStore::with_clock(clock.clone()));
    let hot = Limiter::on(policy(Algorithm::FixedWindow, 5000), store.clone());
    let noise = Limiter::on(Policy::new("noise", Quota::per_second(1)).unwrap(), store.clone());
    let passed = on_all_threads(|thread| {
        let mut passed = 0;
        for round in 0..5000_u64 {
            passed += u64::from(hot.check("k").is_allowed());
            let key = (thread * 5000 + round).to_be_bytes();
            assert!(noise.check(&key).is_allowed());
            if thread == 0 && round % 500 == 0 {
                clock.advance(Duration::from_secs(1)); // ten in all: within the minute
            }
        }
        passed
    });
    assert_eq!(passed, 5000);
}
