//! Waiting for a limit: in order, in time, and without loss when somebody leaves.

mod cancelling;
mod crowd;
mod giving_back;
mod model;
mod order;
mod runtimes;
mod storm;
mod time;

use dashpot::{Limiter, ManualClock, MemoryStore, Policy};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const NANO: Duration = Duration::from_nanos(1);
/// Longer than any test.
const LONG: Duration = Duration::from_secs(1_000_000);

/// A limiter on a clock of its own.
fn limiter(policy: Policy) -> (Limiter, ManualClock) {
    let clock = ManualClock::default();
    (Limiter::on(policy, MemoryStore::with_clock(clock.clone())), clock)
}

/// A bucket that gets a unit each second, and has been emptied for `key`.
fn empty_bucket(capacity: u64, key: &str) -> (Limiter, ManualClock) {
    let quota = dashpot::Quota::per_second(1).burst(capacity);
    let (limiter, clock) = limiter(Policy::new("p", quota).unwrap());
    assert!(limiter.check_n(key, capacity).is_allowed());
    (limiter, clock)
}
