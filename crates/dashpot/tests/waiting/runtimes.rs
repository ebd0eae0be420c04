//! On the machine's clock, under different executors: real time, a few milliseconds of it.

use dashpot::{Limiter, Quota, Timestamp};
use dashpot_testkit::block_on;
use std::thread;
use tokio::runtime::{Builder, Runtime};

use crate::LONG;

const TASKS: u64 = 20;

/// A unit each half a millisecond.
fn limiter() -> Limiter {
    Limiter::new(Quota::per_second(2_000).burst(1))
}

/// As many as took something at these moments may have.
fn in_bound(mut moments: Vec<Timestamp>) {
    moments.sort_unstable();
    let elapsed = moments[moments.len() - 1].since(moments[0]);
    assert_eq!(moments.len() as u64, TASKS);
    assert!(elapsed.as_micros() >= u128::from(TASKS - 1) * 500, "{elapsed:?}");
}

fn on_tokio(runtime: Runtime) {
    let limiter = limiter();
    let moments = runtime.block_on(async {
        let task = |_| {
            let limiter = limiter.clone();
            tokio::spawn(async move { limiter.until_ready("k", 1, LONG).await.unwrap().at() })
        };
        let tasks: Vec<_> = (0..TASKS).map(task).collect();
        let mut moments = Vec::new();
        for task in tasks {
            moments.push(task.await.unwrap());
        }
        moments
    });
    in_bound(moments);
    assert_eq!(limiter.store().waiting(), 0);
}

/// No driver for time or I/O is enabled, so nothing of tokio's can be needed.
#[test]
fn tokio_on_one_thread() {
    on_tokio(Builder::new_current_thread().build().unwrap());
}

#[test]
fn tokio_on_several_threads() {
    on_tokio(Builder::new_multi_thread().worker_threads(3).build().unwrap());
}

#[test]
fn no_runtime_at_all() {
    let limiter = limiter();
    let taken = |_| block_on(limiter.until_ready("k", 1, LONG)).unwrap().at();
    in_bound((0..TASKS).map(taken).collect());
}

#[test]
fn threads_without_a_runtime() {
    let limiter = limiter();
    let moments = thread::scope(|scope| {
        let take = || block_on(limiter.until_ready("k", 1, LONG)).unwrap().at();
        let threads: Vec<_> = (0..TASKS).map(|_| scope.spawn(take)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    in_bound(moments);
}
