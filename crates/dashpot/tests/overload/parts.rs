//! What a factor makes of a limit: as much less of it, and no unit that was not there.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{Algorithm, Limiter, ManualClock, MemoryStore, Policy, Quota, Timestamp, Window};
use dashpot_testkit::limit;

const PERCENTS: [u8; 12] = [1, 2, 5, 10, 25, 33, 50, 67, 80, 90, 99, 100];

/// One store, asked under any part of one policy.
pub(crate) struct Parts {
    whole: Policy,
    pub(crate) clock: ManualClock,
    store: Arc<MemoryStore>,
}

impl Parts {
    pub(crate) fn new(whole: Policy, start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Self { whole, clock, store }
    }

    pub(crate) fn at(&self, percent: u8) -> Limiter {
        Limiter::on(self.whole.reduced_to(percent), self.store.clone())
    }

    /// How many pass at once.
    fn pass(&self, percent: u8) -> u64 {
        let limiter = self.at(percent);
        (0..).take_while(|_| limiter.check("k").is_allowed()).count() as u64
    }
}

fn parts(whole: Policy) -> Parts {
    Parts::new(whole, Timestamp::from_secs(1_700_000_000))
}

fn rates() -> impl Iterator<Item = Algorithm> {
    Algorithm::ALL.into_iter().filter(|one| *one != Algorithm::Concurrency)
}

/// How many pass in so many seconds if somebody asks all the time.
fn admitted(limiter: &Limiter, clock: &ManualClock, seconds: u64) -> u64 {
    const ASKS: u64 = 1000;
    let mut passed = 0;
    for _ in 0..seconds * ASKS {
        passed += u64::from(limiter.check("k").is_allowed());
        clock.advance(Duration::from_secs(1) / ASKS as u32);
    }
    passed
}

/// 200 a second, for 20 seconds, at every factor.
/// - A bucket: the factor times the rate, and once what it holds.
/// - A fixed window and a log: the factor times the count, each second.
/// - A sliding window, which rounds against the caller, may miss one in each second.
#[test]
fn in_the_long_run_it_is_the_factor_times_the_limit() {
    for algorithm in rates() {
        for percent in PERCENTS {
            let parts = parts(limit("p", algorithm, 200, Window::SECOND));
            let least = 20 * 200 * u64::from(percent) / 100;
            let passed = admitted(&parts.at(percent), &parts.clock, 20);
            let (least, most) = match algorithm {
                Algorithm::TokenBucket | Algorithm::LeakyBucket => (least, least + least / 20),
                Algorithm::SlidingWindow => (least - 20, least),
                _ => (least, least),
            };
            assert!((least..=most).contains(&passed), "{algorithm} at {percent} %: {passed}");
        }
    }
}

/// A queue's pace is slower by the factor.
#[test]
fn a_queue_goes_as_much_slower() {
    let queue = Policy::builder("p", Quota::per_second(200)).algorithm(Algorithm::LeakyBucket);
    let queue = queue.queue(100).build().unwrap();
    for percent in PERCENTS {
        let parts = parts(queue.clone());
        let passed = admitted(&parts.at(percent), &parts.clock, 20);
        let least = 20 * 200 * u64::from(percent) / 100;
        assert!(passed >= least && passed <= least + 101, "at {percent} %: {passed}");
    }
}

/// A bucket's rate is lower by the factor to the fraction, though it holds whole units: 7 a second at 50 % are 3 at once, and 350 in a hundred
/// seconds. What never falls below one is what it holds, and not the rate.
#[test]
fn a_rate_has_fractions() {
    for (quota, percent, at_once, in_all) in [
        (Quota::per_second(7), 50, 3, 350),
        (Quota::per_second(7), 10, 1, 70),
        (Quota::per_second(1), 50, 1, 50),
        (Quota::per_second(1), 1, 1, 1),
        (Quota::per_second(10).burst(1), 20, 1, 200),
        (Quota::per_second(10).burst(3), 50, 1, 500),
    ] {
        let parts = parts(Policy::new("p", quota).unwrap());
        assert_eq!(parts.at(percent).policy().limit(), at_once, "{quota} at {percent} %");
        let passed = admitted(&parts.at(percent), &parts.clock, 100);
        assert!(passed.abs_diff(in_all) <= at_once, "{quota} at {percent} %: {passed}");
    }
}

#[test]
fn limits_are_rounded_down_and_never_below_one() {
    for algorithm in Algorithm::ALL {
        for whole in [1, 3, 7, 100, 321] {
            for percent in PERCENTS {
                let policy = limit("p", algorithm, whole, Window::MINUTE).reduced_to(percent);
                let part = (whole * u64::from(percent) / 100).max(1);
                assert_eq!(policy.limit(), part, "{algorithm}: {whole} at {percent} %");
                assert_eq!((policy.whole_limit(), policy.percent()), (whole, percent));
                let parts = parts(limit("p", algorithm, whole, Window::MINUTE));
                assert_eq!(parts.pass(percent), part, "{algorithm}: {whole} at {percent} %");
            }
        }
    }
}

#[test]
fn permits_are_fewer() {
    let parts = parts(limit("p", Algorithm::Concurrency, 20, Window::SECOND));
    let mut held: Vec<_> = (0..20).map(|_| parts.at(100).acquire("k").unwrap()).collect();
    // Who holds one keeps it; the next is let in when there are fewer than the lower limit.
    while let Some(permit) = held.pop() {
        drop(permit);
        assert_eq!(parts.at(50).acquire("k").is_ok(), held.len() < 10, "{}", held.len());
        assert!(parts.at(100).acquire("k").is_ok());
    }
}

/// 60 of 100 are used. At 50 % a window has none left then, and a bucket as much of its 50 as it had of the 100. Whole again, it is as if
/// nothing had been: what passed in between is used, too.
#[test]
fn what_was_used_stays_used() {
    for algorithm in rates() {
        let is_bucket = matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket);
        let (at_half, whole_again) = if is_bucket { (20, 0) } else { (0, 40) };
        let parts = parts(limit("p", algorithm, 100, Window::HOUR));
        assert!(parts.at(100).check_n("k", 60).is_allowed());
        assert_eq!(parts.at(50).peek("k").statuses()[0].remaining(), at_half, "{algorithm}");
        assert_eq!(parts.pass(50), at_half, "{algorithm}");
        assert_eq!(parts.pass(100), whole_again, "{algorithm}");
    }
}

/// Back and forth a thousand times, in one moment: there is nothing to be had by it.
#[test]
fn nothing_is_handed_out_by_a_change() {
    for algorithm in rates() {
        let parts = parts(limit("p", algorithm, 1000, Window::HOUR));
        let percents = (0..1000).map(|number| [100, 50, 99, 1, 80][number % 5]);
        let passed: u64 =
            percents.map(|percent| u64::from(parts.at(percent).check("k").is_allowed())).sum();
        let rest = parts.pass(100);
        assert!(passed + rest <= 1000, "{algorithm}: {passed} and {rest}");
        assert_eq!((1..=100).map(|percent| parts.pass(percent)).sum::<u64>(), 0, "{algorithm}");
    }
}

/// A cost that is more than the lowered limit has to wait for the factor, and nobody knows how long.
#[test]
fn what_is_too_much_for_a_part_is_denied_without_a_wait() {
    for algorithm in rates() {
        let parts = parts(limit("p", algorithm, 100, Window::SECOND));
        let limiter = parts.at(50);
        let decision = limiter.check_n("k", 51);
        assert!(!decision.is_allowed() && decision.retry_after().is_none(), "{algorithm}");
        assert!(parts.at(51).check_n("k", 51).is_allowed(), "{algorithm}");
    }
}
/// Limits of bytes are high. At 99 % there is nothing left of one that was used up a moment ago, as with a low one.
#[test]
fn nothing_is_handed_out_of_a_high_limit() {
    let handed_out = |count| {
        let parts = parts(Policy::new("p", Quota::per_second(count)).unwrap());
        assert!(parts.at(100).check_n("k", count).is_allowed());
        (count, parts.at(99).peek("k").statuses()[0].remaining(), parts.pass(99))
    };
    let counts = [1_000, 100_000, 1_000_000, 10_000_000];
    assert_eq!(counts.map(handed_out), counts.map(|count| (count, 0, 0)));
}

/// And a high rate is lower by the factor, to a hundredth of it.
#[test]
fn a_high_rate_is_lower_by_the_factor() {
    for count in [1_000_000, 10_000_000, 125_000_000, 1_000_000_000] {
        for percent in [99, 90, 80, 50] {
            let parts = parts(Policy::new("p", Quota::per_second(count)).unwrap());
            let limiter = parts.at(percent);
            assert!(limiter.check_n("k", limiter.policy().limit()).is_allowed());
            let mut passed = 0;
            for _ in 0..100 * 1000 {
                parts.clock.advance(Duration::from_micros(100));
                passed += u64::from(limiter.check_n("k", count / 1000).is_allowed());
            }
            let right = 100 * u64::from(percent);
            assert!(
                passed.abs_diff(right) <= 100,
                "{count}/s at {percent} %: {passed} thousandths in 10 s, not {right}"
            );
        }
    }
}
