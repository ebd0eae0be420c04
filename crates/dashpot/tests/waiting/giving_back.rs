//! What is given back, forgotten or lifted is noticed by those who wait.

use dashpot::{Alarm, Clock, Limiter, MemoryStore, NotReady, Permit, Policy, Quota, Timestamp};
use dashpot_testkit::block_on;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::thread;

use crate::crowd::Crowd;
use crate::{LONG, NANO, SECOND, empty_bucket, limiter};

#[test]
fn a_permit_that_is_dropped_goes_to_the_first_in_line() {
    let (limiter, clock) = limiter(Policy::new("p", Quota::concurrent(2)).unwrap());
    let (one, other) = (limiter.acquire("k").unwrap(), limiter.acquire("k").unwrap());
    let mut crowd = Crowd::new();
    for _ in 0..3 {
        assert!(crowd.add(limiter.acquire_within("k", LONG)).is_empty());
    }
    clock.advance(SECOND);
    assert!(crowd.done().is_empty(), "time brings nothing back");
    drop(one);
    assert!(limiter.acquire("k").is_err(), "it is the first one's already");
    let mut done = crowd.run();
    assert_eq!(done.len(), 1);
    assert_eq!(done[0].0, 0);
    drop(other);
    assert_eq!(crowd.run().iter().map(|(number, _)| *number).collect::<Vec<_>>(), [1]);
    // Dropped just now, so the last one gets it.
    assert_eq!(crowd.done(), [2]);
    done.clear();
    assert_eq!(limiter.peek("k").statuses()[0].remaining(), 2);
}

#[test]
fn no_permit_in_time() {
    let (limiter, clock) = limiter(Policy::new("p", Quota::concurrent(1)).unwrap());
    let permit = limiter.acquire("k").unwrap();
    let mut crowd = Crowd::new();
    crowd.add(limiter.acquire_within("k", SECOND));
    clock.advance(SECOND - NANO);
    assert!(crowd.done().is_empty());
    clock.advance(NANO);
    let done = crowd.run();
    assert_eq!(done[0].1.as_ref().unwrap_err(), &NotReady::TooLate { retry_after: None });
    drop(permit);
    assert!(limiter.acquire("k").is_ok());
}

#[test]
fn a_refund_makes_the_wait_shorter() {
    let (limiter, _clock) = limiter(Policy::new("p", Quota::per_second(1).burst(10)).unwrap());
    let reservation = limiter.reserve("k", 10).unwrap();
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 3, LONG));
    crowd.add(limiter.until_ready("k", 3, LONG));
    crowd.add(limiter.until_ready("k", 3, LONG));
    limiter.settle(reservation, 4);
    assert_eq!(crowd.done(), [0, 1]);
}

#[test]
fn debt_makes_the_wait_longer() {
    let (limiter, clock) = limiter(Policy::new("p", Quota::per_second(1).burst(10)).unwrap());
    let reservation = limiter.reserve("k", 10).unwrap();
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 1, LONG));
    limiter.settle(reservation, 15);
    clock.advance(6 * SECOND - NANO);
    assert!(crowd.done().is_empty());
    clock.advance(NANO);
    assert_eq!(crowd.done(), [0]);
}

#[test]
fn a_reset_is_noticed() {
    let (limiter, _clock) = empty_bucket(10, "k");
    let mut crowd = Crowd::new();
    crowd.add(limiter.until_ready("k", 6, LONG));
    crowd.add(limiter.until_ready("k", 4, LONG));
    limiter.reset("k");
    assert_eq!(crowd.done(), [0, 1]);
}

#[test]
fn a_block_holds_and_the_end_of_it_is_noticed() {
    for permits in [false, true] {
        let quota = if permits { Quota::concurrent(1) } else { Quota::per_second(1).burst(1) };
        let (limiter, clock) = limiter(Policy::new("p", quota).unwrap());
        limiter.block("k", 60 * SECOND);
        let mut crowd = Crowd::new();
        crowd.add(limiter.until_ready("k", 1, LONG));
        clock.advance(30 * SECOND);
        assert!(crowd.done().is_empty());
        limiter.unblock("k");
        assert_eq!(crowd.done(), [0]);

        limiter.reset("k");
        limiter.block("k", 60 * SECOND);
        crowd.add(limiter.until_ready("k", 1, LONG));
        clock.advance(60 * SECOND - NANO);
        assert!(crowd.done().is_empty());
        clock.advance(NANO);
        assert_eq!(crowd.done(), [1]);
    }
}

/// A clock on which somebody gives a permit back when an alarm is set: after the one in line was
/// denied, before it sleeps.
#[derive(Clone, Default)]
struct Meddler(Arc<Mutex<Option<Permit>>>);

impl Clock for Meddler {
    fn now(&self) -> Timestamp {
        Timestamp::from_secs(1_000_000_000)
    }

    fn wake_at(&self, _at: Timestamp, _waker: &Waker) -> Alarm {
        drop(self.0.lock().unwrap().take());
        Alarm::new(|| {})
    }
}

#[test]
fn what_is_given_back_between_the_denial_and_the_sleep_is_noticed() {
    let clock = Meddler::default();
    let policy = Policy::new("p", Quota::concurrent(1)).unwrap();
    let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));
    *clock.0.lock().unwrap() = Some(limiter.acquire("k").unwrap());
    let mut crowd = Crowd::new();
    assert_eq!(crowd.add(limiter.acquire_within("k", LONG)).len(), 1);
}

/// Threads that take turns, each asleep until it is woken: were a single wake-up lost, it would
/// never end; were one permit too many given out, it would be counted.
#[test]
fn permits_pass_between_threads_and_no_wake_up_is_lost() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 2_000;
    let limiter = Limiter::new(Quota::concurrent(3));
    let (in_flight, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let permit = block_on(limiter.acquire_within("k", LONG)).unwrap();
                    let now = in_flight.fetch_add(1, Ordering::SeqCst) + 1;
                    assert!(now <= 3, "{now} in flight");
                    taken.fetch_add(1, Ordering::SeqCst);
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    drop(permit);
                }
            });
        }
    });
    assert_eq!(taken.into_inner(), THREADS * ROUNDS);
    assert_eq!(limiter.store().waiting(), 0);
    assert_eq!(limiter.peek("k").statuses()[0].remaining(), 3);
}
