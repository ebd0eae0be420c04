//! How much may pass at most, seen by callers: they know of each unit between what two moments it was granted.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use dashpot::{Algorithm, Policy, Timestamp};

/// When something passed that was asked for: somewhere between these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passed {
    pub(crate) began: Timestamp,
    pub(crate) ended: Timestamp,
}

/// What Redis's clock shows as well: it is on this machine.
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_nanos(u64::try_from(since.as_nanos()).unwrap())
}

/// That no interval has more than it may, and this much more.
pub(crate) fn within_bound(policy: &Policy, passed: &[Passed], more: u64) {
    let mut passed = passed.to_vec();
    passed.sort_by_key(|passed| passed.ended);
    match policy.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => bucket(policy, &passed, more),
        _ => windows(policy, &passed, more),
    }
}

/// A bucket that is as generous as may be never overflows.
fn bucket(policy: &Policy, passed: &[Passed], more: u64) {
    let count = policy.quota().count().unwrap() as f64;
    let rate = count / policy.quota().window().unwrap().length().as_secs_f64();
    // Of what took longer nobody knows when it was.
    let quick = |passed: &&Passed| passed.ended.since(passed.began).as_millis() < 5;
    let most = policy.limit() as f64 + rate * 0.005 + 1.0 + more as f64;
    let (mut level, mut last) = (0.0_f64, Timestamp::EPOCH);
    for one in passed.iter().filter(quick) {
        level = (level - one.ended.since(last).as_secs_f64() * rate).max(0.0) + 1.0;
        last = one.ended;
        assert!(level <= most, "{policy}: {level} of {most} among {} in all", passed.len());
    }
    // And all of it, from the first to the last.
    let Some(first) = passed.iter().map(|passed| passed.began).min() else { return };
    let all = passed.last().map_or(0.0, |last| last.ended.since(first).as_secs_f64());
    let most = policy.limit() as f64 + rate * all + more as f64;
    assert!(passed.len() as f64 <= most, "{policy}: {} of {most} in {all} s", passed.len());
}

/// What passed in each window, and what still weighs of the one before.
fn windows(policy: &Policy, passed: &[Passed], more: u64) {
    let length = policy.quota().window().unwrap().length().as_nanos() as u64;
    let number = |at: Timestamp| at.as_nanos() / length;
    let mut counts = BTreeMap::<u64, u64>::new();
    // Of others nobody knows in which window they were.
    for one in passed.iter().filter(|one| number(one.began) == number(one.ended)) {
        let window = number(one.ended);
        let before = counts.get(&(window - 1)).copied().unwrap_or(0);
        let weighs = match policy.algorithm() {
            Algorithm::SlidingWindow => length - one.ended.as_nanos() % length,
            _ => 0,
        };
        let before = (u128::from(before) * u128::from(weighs) / u128::from(length)) as u64;
        let count = counts.entry(window).or_default();
        *count += 1;
        assert!(*count + before <= policy.limit() + more, "{policy}: {count} after {before}");
    }
}
