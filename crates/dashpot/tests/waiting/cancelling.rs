//! Who leaves takes nothing along.

use crate::crowd::{Crowd, Task};
use crate::{LONG, SECOND, empty_bucket};

#[test]
fn when_the_first_leaves_the_next_moves_up_at_once() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 10, LONG));
    crowd.add(limiter.until_ready("k", 1, LONG));
    clock.advance(SECOND);
    assert!(crowd.done().is_empty());
    crowd.leave(0);
    assert_eq!(crowd.done(), [1], "there was enough for it all the time");
}

#[test]
fn when_one_in_the_middle_leaves_nobody_is_disturbed() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    for _ in 0..3 {
        crowd.add(limiter.until_ready("k", 1, LONG));
    }
    crowd.leave(1);
    assert!(!crowd.task(0).is_due() && !crowd.task(2).is_due());
    clock.advance(SECOND);
    assert_eq!(crowd.done(), [0]);
    clock.advance(SECOND);
    assert_eq!(crowd.done(), [2], "in the time of the one that left");
}

#[test]
fn one_that_was_woken_and_leaves_wakes_the_next() {
    let (limiter, clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    for _ in 0..3 {
        crowd.add(limiter.until_ready("k", 1, LONG));
    }
    clock.advance(SECOND);
    assert!(crowd.task(0).is_due());
    crowd.leave(0);
    assert!(crowd.task(1).is_due());
    crowd.leave(1);
    assert_eq!(crowd.done(), [2]);
}

#[test]
fn leaving_charges_nothing_and_leaves_nothing_behind() {
    let (limiter, clock) = empty_bucket(5, "k");
    drop(limiter.until_ready("k", 5, LONG));
    for _ in 0..100 {
        let mut task = Task::new(limiter.until_ready("k", 5, LONG));
        assert!(task.poll().is_pending());
        assert!(task.poll().is_pending());
        assert_eq!(task.wakers(), 2, "one in line, one with the clock");
    }
    assert_eq!(limiter.store().waiting(), 0);
    clock.advance(5 * SECOND);
    assert!(limiter.check_n("k", 5).is_allowed());
}

#[test]
fn a_waker_is_kept_nowhere_when_its_owner_is_gone_or_done() {
    let (limiter, clock) = empty_bucket(1, "k");
    let mut done = Task::new(limiter.until_ready("k", 1, LONG));
    let mut gone = Task::new(limiter.until_ready("k", 1, LONG));
    assert!(done.poll().is_pending() && gone.poll().is_pending());
    assert_eq!((done.wakers(), gone.wakers()), (2, 2), "in line and with the clock");
    gone.leave();
    assert_eq!(gone.wakers(), 0);
    clock.advance(SECOND);
    assert!(done.poll().is_ready());
    assert_eq!(done.wakers(), 0);
}
