//! Hundreds wait on several threads, and many leave at any moment.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use dashpot::{Limiter, ManualClock, MemoryStore, Policy, Quota, Timestamp};
use dashpot_testkit::{admitted_within_bound, workload};

use crate::LONG;
use crate::crowd::Task;

const THREADS: u64 = 4;
const WAITERS: usize = 150;
const KEYS: [&str; 3] = ["a", "b", "c"];
const CAPACITY: u64 = 5;
const TICK: Duration = Duration::from_millis(1);

/// What becomes of somebody who waits.
#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Stays,
    /// Leaves before it was polled so many times more.
    LeavesAfter(usize),
    /// Leaves when it is woken this many times, without looking why.
    LeavesWoken(usize),
}

/// The same numbers for the same seed, below 1000.
fn random(seed: u64) -> impl Iterator<Item = usize> {
    workload::uniform(seed, 1000, TICK).map(|arrival| arrival.key)
}

fn fate(number: usize) -> Fate {
    match number % 10 {
        0..5 => Fate::Stays,
        5..8 => Fate::LeavesAfter(number / 10 % 4),
        _ => Fate::LeavesWoken(number / 10 % 3),
    }
}

type Admissions = Mutex<Vec<(Timestamp, u64)>>;

/// Lets `WAITERS` wait, a few more at a time, until each is done or has left. Tells how many were
/// served.
fn wait(limiter: &Limiter, seed: u64, admissions: &[Admissions; 3]) -> u64 {
    let mut random = random(seed);
    let mut next = || random.next().unwrap();
    let mut crowd = Vec::new();
    let (mut arrived, mut served) = (0, 0);
    while arrived < WAITERS || !crowd.is_empty() {
        let mut at_once = next() % 20;
        while arrived < WAITERS && at_once > 0 {
            let (key, cost) = (next() % KEYS.len(), 1 + next() as u64 % CAPACITY);
            let task = Task::new(limiter.until_ready(KEYS[key], cost, LONG));
            crowd.push((task, key, cost, fate(next())));
            (arrived, at_once) = (arrived + 1, at_once - 1);
        }
        crowd.retain_mut(|(task, key, cost, fate)| {
            match fate {
                Fate::LeavesAfter(0) => return false,
                Fate::LeavesAfter(polls) => *polls -= 1,
                Fate::LeavesWoken(0) if task.polls() > 0 && task.is_due() => return false,
                Fate::LeavesWoken(wakes) if task.is_due() => *wakes = wakes.saturating_sub(1),
                _ if !task.is_due() => return true,
                _ => {}
            }
            let Poll::Ready(done) = task.poll() else { return true };
            let at = done.expect("there is time enough").at();
            admissions[*key].lock().unwrap().push((at, *cost));
            served += 1;
            false
        });
        thread::yield_now();
    }
    served
}

fn storm(seed: u64) {
    let clock = ManualClock::default();
    let policy = Policy::new("p", Quota::per_second(1_000).burst(CAPACITY)).unwrap();
    let limiter = Limiter::on(policy.clone(), MemoryStore::with_clock(clock.clone()));
    let admissions: [Admissions; 3] = Default::default();
    let running = AtomicU64::new(THREADS);

    let (limiter, admitted) = (&limiter, &admissions);
    let served: u64 = thread::scope(|scope| {
        let wait = |thread| {
            let served = wait(limiter, seed * THREADS + thread, admitted);
            running.fetch_sub(1, Ordering::SeqCst);
            served
        };
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || wait(thread))).collect();
        while running.load(Ordering::SeqCst) > 0 {
            clock.advance(TICK / 4);
            thread::yield_now();
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });

    // Nobody is asleep, or `wait` would not have come back; nobody is left in line.
    assert_eq!(limiter.store().waiting(), 0);
    assert!(served >= THREADS * WAITERS as u64 / 3, "{served} served");
    for (key, admissions) in KEYS.into_iter().zip(admissions) {
        let mut admissions = admissions.into_inner().unwrap();
        admissions.sort_unstable();
        admitted_within_bound(&policy, &admissions).unwrap();
        // What those took who were served is all that was taken.
        let replayed = ManualClock::default();
        let other = Limiter::on(policy.clone(), MemoryStore::with_clock(replayed.clone()));
        for (at, cost) in admissions {
            replayed.set(at);
            assert!(other.check_n(key, cost).is_allowed());
        }
        replayed.set(limiter.store().now());
        assert_eq!(limiter.peek(key), other.peek(key));
    }
}

#[test]
fn nobody_is_forgotten_and_nothing_is_lost_when_many_leave() {
    (0..10).for_each(storm);
}

/// Threads that keep checking get nothing from the moment on when somebody waits, until that one
/// has been served.
#[test]
fn checks_from_all_sides_do_not_overtake() {
    let clock = ManualClock::default();
    let policy = Policy::new("p", Quota::per_second(1_000).burst(100)).unwrap();
    let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));
    assert!(limiter.check_n("k", 100).is_allowed());
    let mut task = Task::new(limiter.until_ready("k", 100, LONG));
    assert!(task.poll().is_pending());
    let running = AtomicBool::new(true);
    thread::scope(|scope| {
        let check = || {
            let mut passed = Vec::new();
            while running.load(Ordering::SeqCst) {
                let decision = limiter.check("k");
                if decision.is_allowed() {
                    passed.push(decision.at());
                }
            }
            passed
        };
        let threads = [(); 3].map(|()| scope.spawn(check));
        let mut ready_at = None;
        for _ in 0..200 {
            clock.advance(TICK);
            if ready_at.is_none()
                && task.is_due()
                && let Poll::Ready(done) = task.poll()
            {
                ready_at = Some(done.unwrap().at());
            }
            thread::yield_now();
        }
        running.store(false, Ordering::SeqCst);
        let ready_at = ready_at.expect("a hundred units are back, and were kept for it");
        for passed in threads.into_iter().flat_map(|thread| thread.join().unwrap()) {
            assert!(passed >= ready_at, "{passed:?} is before {ready_at:?}");
        }
    });
}
