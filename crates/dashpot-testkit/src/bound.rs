//! How much may pass in any interval, whatever the traffic.

use dashpot::{Algorithm, Policy, Timestamp};
use num_bigint::BigInt;

use crate::oracle::same_window;

/// Checks what each algorithm promises about every interval, on units that were admitted by a
/// clock that does not go back, and never given back:
/// - bucket: at most the capacity and what the rate adds in the interval;
/// - fixed window: at most the count within a window (of UTC), and twice that in any span of its
///   length, unless that is measured in months, which differ;
/// - sliding log: at most the count in any span of the window's length;
/// - sliding window: less than twice the count in any span of the window's length.
///
/// A span holds its first moment, and not its last. Concurrency promises nothing about time.
///
/// # Errors
/// The first interval that admitted too much.
pub fn admitted_within_bound(
    policy: &Policy,
    admissions: &[(Timestamp, u64)],
) -> Result<(), String> {
    for (number, &(start, _)) in admissions.iter().enumerate() {
        let mut admitted = 0_u128;
        for &(end, units) in &admissions[number..] {
            admitted += u128::from(units);
            if let Some(most) = most_within(policy, start, end).filter(|most| admitted > *most) {
                return Err(format!(
                    "{policy}: {admitted} admitted from {start:?} to {end:?}, at most {most} may be"
                ));
            }
        }
    }
    Ok(())
}

/// Whether a bucket must admit `cost` at this moment, told from everything it ever admitted: it must
/// unless some interval that ends now would then hold more than the capacity and what the rate adds
/// meanwhile, fractions of a unit included. The clock must not have gone back, and nothing may have
/// been given back.
///
/// # Panics
/// If the policy has no rate.
#[must_use]
pub fn bucket_must_admit(
    policy: &Policy,
    admissions: &[(Timestamp, u64)],
    at: Timestamp,
    cost: u64,
) -> bool {
    let count = BigInt::from(policy.quota().count().expect("a bucket has a count"));
    let window = policy.quota().window().expect("a bucket has a window").length().as_nanos();
    let fits = |units: &BigInt, since: Timestamp| {
        // units ≤ capacity + length · count / window
        (units - policy.limit()) * window <= &count * at.since(since).as_nanos()
    };
    let mut units = BigInt::from(cost);
    fits(&units, at)
        && admissions.iter().rev().all(|&(then, admitted)| {
            units += admitted;
            fits(&units, then)
        })
}

/// The most that may pass from one moment to another, both included; `None` if anything may.
fn most_within(policy: &Policy, start: Timestamp, end: Timestamp) -> Option<u128> {
    let (count, window) = (policy.quota().count()?, policy.quota().window()?);
    let length = end.since(start).as_nanos();
    let within = length < window.length().as_nanos();
    let limit = u128::from(policy.limit());
    match policy.algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            // No overflow: a moment has 63 bits and a count 64.
            Some(limit + length * u128::from(count) / window.length().as_nanos())
        }
        Algorithm::FixedWindow if same_window(window, start, end) => Some(limit),
        Algorithm::FixedWindow if window.as_months().is_some() => None,
        Algorithm::FixedWindow if within => Some(2 * limit),
        Algorithm::SlidingLog if within => Some(limit),
        Algorithm::SlidingWindow if within => Some((2 * limit).saturating_sub(1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use dashpot::Quota;

    use super::*;

    fn policy(algorithm: Algorithm) -> Policy {
        Policy::builder("p", Quota::per_second(5)).algorithm(algorithm).build().unwrap()
    }

    fn at(millis: u64) -> Timestamp {
        Timestamp::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_bucket_may_burst_and_refill() {
        let bucket = policy(Algorithm::TokenBucket);
        assert!(admitted_within_bound(&bucket, &[(at(0), 5), (at(200), 1)]).is_ok());
        assert!(admitted_within_bound(&bucket, &[(at(0), 5), (at(199), 1)]).is_err());
        assert!(admitted_within_bound(&bucket, &[(at(0), 6)]).is_err());
    }

    #[test]
    fn a_bucket_must_admit_what_no_interval_forbids() {
        let bucket = policy(Algorithm::TokenBucket);
        assert!(bucket_must_admit(&bucket, &[], at(0), 5));
        assert!(!bucket_must_admit(&bucket, &[], at(0), 6));
        let history = [(at(0), 5), (at(200), 1)];
        assert!(!bucket_must_admit(&bucket, &history, at(399), 1));
        assert!(bucket_must_admit(&bucket, &history, at(400), 1));
    }

    #[test]
    fn a_fixed_window_may_pass_twice_its_count_around_a_boundary_only() {
        let fixed = policy(Algorithm::FixedWindow);
        assert!(admitted_within_bound(&fixed, &[(at(999), 5), (at(1000), 5)]).is_ok());
        assert!(admitted_within_bound(&fixed, &[(at(0), 5), (at(999), 1)]).is_err());
    }

    #[test]
    fn a_log_may_not_and_a_sliding_window_nearly() {
        let burst = [(at(999), 5), (at(1000), 4)];
        let log = policy(Algorithm::SlidingLog);
        assert!(admitted_within_bound(&log, &burst).is_err());
        assert!(admitted_within_bound(&log, &[(at(0), 5), (at(1000), 5)]).is_ok());
        let sliding = policy(Algorithm::SlidingWindow);
        assert!(admitted_within_bound(&sliding, &burst).is_ok());
        assert!(admitted_within_bound(&sliding, &[(at(999), 5), (at(1000), 5)]).is_err());
    }
}
