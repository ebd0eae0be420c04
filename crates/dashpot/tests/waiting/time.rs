//! Ready when told, not sooner; too late when told, not later; and asleep in between.

use dashpot::{
    Algorithm, Limiter, ManualClock, MemoryStore, NotReady, Policy, Quota, Timestamp, Window,
};
use dashpot_testkit::limit;
use std::task::Poll;
use std::time::Duration;

use crate::crowd::{Crowd, Task};
use crate::{LONG, NANO, SECOND, empty_bucket, limiter};

#[test]
fn ready_at_the_very_nanosecond() {
    for algorithm in Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::Concurrency) {
        let (limiter, clock) = limiter(limit("p", algorithm, 7, Window::MINUTE));
        for _ in 0..7 {
            clock.advance(SECOND);
            assert!(limiter.check("k").is_allowed());
        }
        for cost in 1..=7 {
            let denied = limiter.check_n("k", cost);
            let Some(wait) = denied.retry_after() else { continue };
            let mut task = Task::new(limiter.until_ready("k", cost, wait));
            assert!(task.poll().is_pending(), "{algorithm}");
            clock.advance(wait - NANO);
            assert!(!task.is_due(), "{algorithm}: not a nanosecond earlier");
            assert!(task.poll().is_pending(), "{algorithm}: not even if it is asked");
            clock.advance(NANO);
            assert!(task.is_due(), "{algorithm}");
            let Poll::Ready(Ok(decision)) = task.poll() else {
                panic!("{algorithm}: not ready after {wait:?}");
            };
            assert_eq!(decision.at().since(denied.at()), wait, "{algorithm}");
        }
    }
}

/// Years of waiting, a day at a time: who waits is asked a handful of times, not every day.
#[test]
fn a_long_wait_is_slept_through() {
    let policy = Policy::new("p", "1/year".parse().unwrap()).unwrap();
    let (limiter, clock) = limiter(policy);
    assert!(limiter.check("k").is_allowed());
    let mut crowd = Crowd::new();
    let forever = Duration::MAX;
    crowd.add(limiter.until_ready("k", 1, forever));
    crowd.add(limiter.until_ready("k", 1, forever));
    for _ in 0..365 {
        assert!(crowd.done().is_empty());
        clock.advance(Duration::from_secs(24 * 60 * 60));
        assert!(!limiter.check("k").is_allowed());
        assert!(limiter.peek("k").is_allowed());
    }
    assert_eq!((crowd.task(0).polls(), crowd.task(1).polls()), (1, 1));
    clock.advance(Duration::from_secs(24 * 60 * 60));
    assert_eq!(crowd.done(), [0]);
    assert_eq!(crowd.task(1).polls(), 2, "once to get in line, once when it was first");
}

#[test]
fn what_can_never_be_granted_is_told_at_once() {
    let (limiter, _clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    assert_eq!(crowd.add(limiter.until_ready("k", 11, LONG))[0].1, Err(NotReady::Never));
    crowd.add(limiter.until_ready("k", 10, LONG));
    assert_eq!(crowd.add(limiter.until_ready("k", 11, LONG))[0].1, Err(NotReady::Never));
}

#[test]
fn too_late_is_told_at_once_if_it_is_known() {
    let (limiter, _clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    let too_late = Err(NotReady::TooLate { retry_after: Some(10 * SECOND) });
    assert_eq!(crowd.add(limiter.until_ready("k", 10, 10 * SECOND - NANO))[0].1, too_late);
    assert!(crowd.add(limiter.until_ready("k", 10, 10 * SECOND)).is_empty());
    // In line too: it takes ten seconds even without the one before.
    assert_eq!(crowd.add(limiter.until_ready("k", 10, 10 * SECOND - NANO))[0].1, too_late);
    assert_eq!(limiter.store().waiting(), 1);
}

#[test]
fn the_first_in_line_is_told_as_soon_as_it_has_become_too_late() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 2, 2 * SECOND));
    crowd.add(limiter.until_ready("k", 1, 3 * SECOND - NANO));
    clock.advance(2 * SECOND);
    let done = crowd.run();
    assert!(done[0].1.is_ok());
    // What the first one took is known to be missing now.
    assert_eq!(done[1].1, Err(NotReady::TooLate { retry_after: Some(SECOND) }));
}

#[test]
fn who_is_not_first_gives_up_when_the_time_is_over() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 10, LONG));
    crowd.add(limiter.until_ready("k", 1, 5 * SECOND));
    clock.advance(5 * SECOND);
    assert!(crowd.done().is_empty());
    clock.advance(NANO);
    assert_eq!(crowd.run(), [(1, Err(NotReady::TooLate { retry_after: None }))]);
    clock.advance(5 * SECOND);
    assert_eq!(crowd.done(), [0]);
}

#[test]
fn who_becomes_first_right_at_the_end_of_its_time_is_served() {
    let (limiter, clock) = empty_bucket(2, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 1, SECOND));
    crowd.add(limiter.until_ready("k", 1, 2 * SECOND));
    clock.advance(2 * SECOND);
    assert_eq!(crowd.run().iter().filter(|(_, done)| done.is_ok()).count(), 2);
}

#[test]
fn time_counts_from_the_call() {
    let (limiter, clock) = empty_bucket(1, "k");
    let mut task = Task::new(limiter.until_ready("k", 1, SECOND));
    clock.advance(SECOND);
    assert!(limiter.check("k").is_allowed(), "it is not in line before it is polled");
    let too_late = Err(NotReady::TooLate { retry_after: Some(SECOND) });
    assert_eq!(task.poll(), Poll::Ready(too_late));
}

#[test]
fn without_time_to_wait_it_is_a_check() {
    let (limiter, _clock) = empty_bucket(1, "k");
    let too_late = |retry_after| Poll::Ready(Err(NotReady::TooLate { retry_after }));
    let at_once = |limiter: &Limiter| {
        Task::new(limiter.until_ready("k", 1, Duration::ZERO)).poll().map_ok(|_| ())
    };
    assert_eq!(at_once(&limiter), too_late(Some(SECOND)));
    let (permits, _clock) = crate::limiter(Policy::new("p", Quota::concurrent(1)).unwrap());
    let _permit = permits.acquire("k").unwrap();
    assert_eq!(at_once(&permits), too_late(None));
}

#[test]
fn as_many_wait_as_may() {
    let (limiter, _clock) = empty_bucket(1, "k");
    let mut crowd = Crowd::new();
    for _ in 0..1024 {
        assert!(crowd.add(limiter.until_ready("k", 1, LONG)).is_empty());
    }
    assert_eq!(crowd.add(limiter.until_ready("k", 1, LONG))[0].1, Err(NotReady::Full));
    assert!(crowd.add(limiter.until_ready("other", 1, LONG))[0].1.is_ok());
    assert_eq!(limiter.store().waiting(), 1024);
    crowd.leave(500);
    assert!(crowd.add(limiter.until_ready("k", 1, LONG)).is_empty());
}

#[test]
fn a_clock_that_goes_back_makes_the_wait_longer_and_nothing_worse() {
    let (limiter, clock) = empty_bucket(1, "k");
    let start = limiter.store().now();
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 1, LONG));
    clock.set(start.before(10 * SECOND));
    assert!(crowd.done().is_empty());
    clock.set(start);
    assert!(crowd.done().is_empty());
    clock.set(start.after(SECOND));
    assert_eq!(crowd.done(), [0]);
}

#[test]
fn at_the_end_of_time_nobody_spins() {
    let clock = ManualClock::new(Timestamp::MAX);
    let policy = Policy::new("p", Quota::per_second(1)).unwrap();
    let limiter = Limiter::on(policy, MemoryStore::with_clock(clock));
    assert!(limiter.check("k").is_allowed());
    let mut crowd = Crowd::new();
    let done = crowd.add(limiter.until_ready("k", 1, Duration::MAX));
    assert_eq!(done[0].1, Err(NotReady::TooLate { retry_after: Some(SECOND) }));
}
