//! What the hot path does not allocate.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use dashpot::{Algorithm, Check, Limiter, ManualClock, MemoryStore, Policy, Quota, Window};
use dashpot_testkit::limit;

#[track_caller]
fn allocates_nothing(work: impl FnOnce()) {
    let counted = allocation_counter::measure(work);
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

#[test]
fn a_check_of_a_known_key() {
    for algorithm in Algorithm::ALL {
        let policy = limit("p", algorithm, 3, Window::MINUTE);
        let store = MemoryStore::with_clock(ManualClock::default());
        let limiter = Limiter::on(policy, store);
        assert!(limiter.check("alice").is_allowed());
        allocates_nothing(|| {
            assert!(limiter.check("alice").is_allowed());
            assert!(limiter.check("alice").is_allowed());
            assert!(!limiter.check("alice").is_allowed());
            assert!(limiter.peek("alice").is_allowed());
        });
    }
}

/// Nor does a window that changes with every check, unless its grains do.
#[test]
fn a_check_under_any_window() {
    let store = MemoryStore::with_clock(ManualClock::default());
    let any = |quota: &str| Policy::builder("p", quota.parse().unwrap()).any_window().build();
    let policies =
        ["3/min", "1/s burst 90", "5/day", "60/h burst 4"].map(|text| any(text).unwrap());
    for policy in &policies {
        let _ = store.decide_now(&[Check::new(policy, "alice")]);
    }
    allocates_nothing(|| {
        for policy in policies.iter().chain(&policies) {
            let _ = store.decide_now(&[Check::new(policy, "alice")]);
        }
    });
}

#[test]
fn a_check_on_the_machines_clock() {
    let limiter = Limiter::new(Quota::per_minute(100));
    assert!(limiter.check("alice").is_allowed());
    allocates_nothing(|| assert!(limiter.check("alice").is_allowed()));
}

#[test]
fn four_checks_at_once() {
    let store = MemoryStore::new();
    let policies: Vec<_> = (0..4)
        .map(|index| Policy::new(format!("p{index}"), Quota::per_minute(3)).unwrap())
        .collect();
    let checks: Vec<_> = policies.iter().map(|policy| Check::new(policy, "alice")).collect();
    assert!(store.decide_now(&checks).is_allowed());
    allocates_nothing(|| {
        assert!(store.decide_now(&checks).is_allowed());
        assert!(store.decide_now(&checks).is_allowed());
        assert!(!store.decide_now(&checks).is_allowed());
    });
}

#[test]
fn a_stranger_that_is_denied_or_only_looks() {
    let limiter = Limiter::new(Quota::per_minute(3));
    assert!(limiter.peek("alice").is_allowed());
    allocates_nothing(|| {
        assert!(limiter.peek("bob").is_allowed());
        assert!(limiter.check_n("bob", 4).is_never());
    });
    assert!(limiter.store().is_empty());
}

#[test]
fn a_wait_that_is_over_before_it_began() {
    let limiter = Limiter::new(Quota::per_minute(3));
    assert!(limiter.check("alice").is_allowed());
    allocates_nothing(|| {
        let ready = pin!(limiter.until_ready("alice", 1, Duration::ZERO));
        assert!(ready.poll(&mut Context::from_waker(Waker::noop())).is_ready());
    });
}

#[test]
fn a_check_while_somebody_waits() {
    let limiter = Limiter::new(Quota::per_minute(3));
    assert!(limiter.check_n("alice", 3).is_allowed());
    assert!(limiter.check("bob").is_allowed());
    let waiting = pin!(limiter.until_ready("alice", 3, Duration::MAX));
    assert!(waiting.poll(&mut Context::from_waker(Waker::noop())).is_pending());
    allocates_nothing(|| {
        assert!(!limiter.check("alice").is_allowed());
        assert!(limiter.check("bob").is_allowed());
    });
}
