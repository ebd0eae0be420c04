//! Who is served when.

use dashpot::{Algorithm, Check, Limiter, Policy, Quota};
use std::time::Duration;

use crate::crowd::Crowd;
use crate::{LONG, NANO, SECOND, empty_bucket, limiter};

#[test]
fn who_waits_is_served_in_order() {
    let (limiter, clock) = empty_bucket(1, "k");
    let mut crowd = Crowd::new();
    for _ in 0..5 {
        assert!(crowd.add(limiter.until_ready("k", 1, LONG)).is_empty());
    }
    for next in 0..5 {
        clock.advance(SECOND - NANO);
        assert!(crowd.done().is_empty());
        clock.advance(NANO);
        assert_eq!(crowd.done(), [next]);
    }
    assert_eq!(limiter.store().waiting(), 0);
}

#[test]
fn several_whose_time_has_come_are_served_at_once_and_in_order() {
    let (limiter, clock) = empty_bucket(5, "k");
    let mut crowd = Crowd::new();
    for _ in 0..7 {
        crowd.add(limiter.until_ready("k", 1, LONG));
    }
    clock.advance(5 * SECOND);
    assert_eq!(crowd.done(), [0, 1, 2, 3, 4]);
    clock.advance(SECOND);
    assert_eq!(crowd.done(), [5]);
}

#[test]
fn a_large_cost_is_not_overtaken_by_small_ones() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 10, LONG));
    for second in 0..10 {
        // There is enough for these, every second.
        assert!(crowd.add(limiter.until_ready("k", 1, LONG)).is_empty(), "{second}");
        clock.advance(SECOND);
    }
    assert_eq!(crowd.done(), [0]);
    clock.advance(2 * SECOND);
    assert_eq!(crowd.done(), [1, 2]);
}

#[test]
fn a_large_cost_is_not_starved_by_checks() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 10, LONG));
    for second in 0..10 {
        assert!(crowd.done().is_empty());
        let denied = limiter.check("k");
        assert!(!denied.is_allowed());
        assert!(!denied.is_never());
        let status = denied.statuses()[0];
        assert_eq!(status.remaining(), second, "it stands as it stands");
        let wait = (second == 0).then_some(SECOND);
        assert_eq!(status.retry_after(), wait, "no wait is known but for the limit's own");
        assert!(limiter.reserve("k", 1).is_err());
        assert!(limiter.peek("k").is_allowed(), "looking takes nothing");
        clock.advance(SECOND);
    }
    assert_eq!(crowd.done(), [0], "in ten seconds, not one more");
    clock.advance(SECOND);
    assert!(limiter.check("k").is_allowed(), "and then checks pass again");
}

#[test]
fn several_limits_at_once_stand_back_too_and_take_nothing_of_either() {
    let (one, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(one.until_ready("k", 10, LONG));
    clock.advance(SECOND);
    let other = Policy::new("other", Quota::per_minute(5)).unwrap();
    let checks = [Check::new(one.policy(), "k"), Check::new(&other, "k")];
    let decision = one.store().decide_now(&checks);
    assert!(!decision.is_allowed());
    let denied: Vec<_> = decision.denied().map(|status| status.policy().name()).collect();
    assert_eq!(denied, ["p"]);
    let other = Limiter::on(other.clone(), one.store().clone());
    assert_eq!(other.peek("k").statuses()[0].remaining(), 5);
}

#[test]
fn cost_0_waits_for_nobody() {
    let (limiter, _clock) = empty_bucket(1, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 1, LONG));
    let done = crowd.add(limiter.until_ready("k", 0, LONG));
    assert!(done[0].1.as_ref().unwrap().is_allowed());
}

#[test]
fn who_does_not_have_to_wait_does_not() {
    let (limiter, _clock) = limiter(Policy::new("p", Quota::per_second(1).burst(3)).unwrap());
    let mut crowd = Crowd::new();
    for remaining in [2, 1, 0] {
        let done = crowd.add(limiter.until_ready("k", 1, Duration::ZERO));
        assert_eq!(done[0].1.as_ref().unwrap().statuses()[0].remaining(), remaining);
    }
    let (unlimited, _clock) = crate::limiter(Policy::new("p", Quota::UNLIMITED).unwrap());
    assert!(Crowd::new().add(unlimited.until_ready("k", u64::MAX, Duration::ZERO))[0].1.is_ok());
}

#[test]
fn keys_and_policies_do_not_wait_for_each_other() {
    let (slow, clock) = empty_bucket(1, "k");
    let fast = Policy::new("fast", Quota::per_second(10).burst(1)).unwrap();
    let fast = Limiter::on(fast, slow.store().clone());
    assert!(fast.check("k").is_allowed());
    assert!(slow.check("other").is_allowed());
    let mut crowd = Crowd::new();
    crowd.add(slow.until_ready("k", 1, LONG));
    crowd.add(fast.until_ready("k", 1, LONG));
    crowd.add(slow.until_ready("other", 1, LONG));
    crowd.add(fast.until_ready("k", 1, LONG));
    assert_eq!(slow.store().waiting(), 4);
    assert!(slow.check("a third").is_allowed());
    clock.advance(SECOND / 10);
    assert_eq!(crowd.done(), [1]);
    clock.advance(SECOND / 10);
    assert_eq!(crowd.done(), [3]);
    clock.advance(SECOND);
    let mut done = crowd.done();
    done.sort_unstable();
    assert_eq!(done, [0, 2]);
}

/// A queue's places are given out when it is their turn, so one that is given up is not a gap in
/// the flow.
#[test]
fn a_queue_flows_evenly_and_closes_up() {
    let policy = Policy::builder("p", Quota::per_second(1))
        .algorithm(Algorithm::LeakyBucket)
        .queue(3)
        .build()
        .unwrap();
    let (limiter, clock) = limiter(policy);
    let mut crowd = Crowd::new();
    assert_eq!(crowd.add(limiter.until_ready("k", 1, LONG)).len(), 1);
    for _ in 0..6 {
        assert!(crowd.add(limiter.until_ready("k", 1, LONG)).is_empty());
    }
    crowd.leave(2);
    crowd.leave(4);
    for next in [1, 3, 5, 6] {
        clock.advance(SECOND - NANO);
        assert!(crowd.run().is_empty());
        clock.advance(NANO);
        let done = crowd.run();
        assert_eq!(done.len(), 1);
        assert_eq!(done[0].0, next);
        let decision = done[0].1.as_ref().unwrap();
        assert_eq!(decision.delay(), Duration::ZERO, "it has waited");
    }
}
