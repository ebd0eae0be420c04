//! The scripts against the oracle, on a real server whose clock the test sets: decision by decision equal, and
//! waits exact to the microsecond.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dashpot::{Algorithm, Policy, Timestamp};
use dashpot_redis::RedisStore;
use dashpot_testkit::strategies::{any_window_trace, cases, mixed_trace, trace};
use dashpot_testkit::trace::Step;
use dashpot_testkit::{FakedRedis, Time, Trace, replay};
use proptest::prelude::*;
use proptest::test_runner::{TestCaseResult, TestRunner};

const MICRO: u64 = 1000;
const YEAR: u64 = 31_556_952_000_000_000;

/// When the server's clock is set to something, it is whole microseconds.
struct Clock<'s> {
    server: &'s FakedRedis,
    now: AtomicU64,
}

impl Time for Clock<'_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.now.load(Ordering::Relaxed))
    }

    fn set(&self, now: Timestamp) {
        let nanos = now.as_nanos() / MICRO * MICRO;
        self.now.store(nanos, Ordering::Relaxed);
        self.server.set_time(nanos);
    }

    fn tick(&self) -> Duration {
        Duration::from_nanos(MICRO)
    }
}

/// Makes a trace one that Redis can follow; `None` if it cannot. Redis forgets a key when it does not
/// matter any more, so its clock is not set back here. Numbers stay below 2⁵³.
fn fitting(mut trace: Trace) -> Option<Trace> {
    trace.start = Timestamp::from_nanos(trace.start.as_nanos() % (70 * YEAR) + YEAR);
    let (mut unit, mut most, mut debts) = (0, 0, true);
    for definitions in &trace.policies {
        for policy in [&definitions.first].into_iter().chain(&definitions.other) {
            policy.fits_micros().ok()?;
            // In the end every key is waited for, one after another.
            let window = policy.quota().window().map_or(0, |window| window.length().as_nanos());
            if window > u128::from(2 * YEAR) {
                return None;
            }
            if let Some(rate) = policy.rate() {
                // A bucket that nothing comes back to is left alone here, and frozen in memory.
                unit = unit.max(rate.nanos.checked_div(rate.units)?);
                most = most.max(policy.limit());
                if u128::from(unit) * u128::from(most) > u128::from(5 * YEAR) {
                    return None;
                }
                // What is charged to a key that Redis has forgotten is charged at the rate it was reserved
                // at, elsewhere at the rate it was last asked about at: both are right. If any window will do, it
                // is charged as it was reserved everywhere.
                debts &= definitions.other.is_none() || policy.is_any_window();
            }
        }
    }
    debts &= unit < YEAR / 10_000;
    trace.steps.retain(|step| !matches!(step, Step::Back(_)));
    for step in &mut trace.steps {
        match step {
            Step::Advance(by) => *by = Duration::from_nanos(by.as_nanos() as u64 % YEAR),
            Step::Settle { used, .. } => *used = if debts { *used % 100 } else { 0 },
            _ => {}
        }
    }
    Some(trace)
}

/// Plays so many traces of this kind on one server. Many are about policies that Redis cannot keep, and say
/// nothing; enough must be left.
fn equals_the_oracle(traces: BoxedStrategy<Trace>, wanted: u32) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(1).enable_all().build().unwrap();
    let _entered = runtime.enter();
    let server = FakedRedis::start(YEAR);
    let store = RedisStore::builder(server.url())
        .deadline(Duration::from_secs(5))
        .denial_memory(Duration::ZERO)
        .permit_lease(Duration::from_nanos(80 * YEAR))
        .start()
        .unwrap();
    let clock = Clock { server: &server, now: AtomicU64::new(0) };
    let played = AtomicU64::new(0);
    let play = |trace: Trace| -> TestCaseResult {
        let Some(trace) = fitting(trace) else { return Ok(()) };
        played.fetch_add(1, Ordering::Relaxed);
        server.command(&["FLUSHALL"]);
        replay(&store, &clock, &trace).map_err(TestCaseError::fail)?;
        let lasting = server.keys_without_ttl();
        prop_assert!(lasting.is_empty(), "without an end: {lasting:?}");
        Ok(())
    };
    let config = ProptestConfig { max_shrink_iters: 300, ..cases(wanted) };
    TestRunner::new(config).run(&traces, play).unwrap();
    let played = played.into_inner();
    assert!(played >= u64::from(wanted / 5), "only {played} traces were played");
}

#[test]
fn a_token_bucket_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::TokenBucket), 3000);
}

#[test]
fn a_leaky_bucket_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::LeakyBucket), 3000);
}

#[test]
fn a_token_bucket_of_any_window_equals_the_oracle() {
    equals_the_oracle(any_window_trace(Algorithm::TokenBucket), 1000);
}

#[test]
fn a_leaky_bucket_of_any_window_equals_the_oracle() {
    equals_the_oracle(any_window_trace(Algorithm::LeakyBucket), 1000);
}

#[test]
fn a_fixed_window_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::FixedWindow), 3000);
}

#[test]
fn a_sliding_log_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::SlidingLog), 3000);
}

#[test]
fn a_sliding_window_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::SlidingWindow), 3000);
}

#[test]
fn concurrency_equals_the_oracle() {
    equals_the_oracle(trace(Algorithm::Concurrency), 3000);
}

#[test]
fn several_limits_equal_the_oracle() {
    equals_the_oracle(mixed_trace(), 4000);
}

#[test]
fn a_policy_that_redis_cannot_keep_is_refused() {
    let policy = |quota: &str| Policy::new("p", quota.parse().unwrap()).unwrap();
    assert!(policy("10000000000000000/s").fits_micros().is_err());
    assert!(policy("1/100year burst 2").fits_micros().is_err());
    assert!(policy("1000000000/s").fits_micros().is_ok());
}
