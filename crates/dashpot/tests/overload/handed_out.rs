//! Whatever a factor does: no interval admits more than the limit, nor more than the highest factor there was; and who asks under a
//! factor that was lower at times never has more than who asks under one that was not.

use std::time::Duration;

use dashpot::{Algorithm, Clock, Policy, Quota, Timestamp, Window};
use dashpot_testkit::admitted_within_bound;
use dashpot_testkit::strategies::{cases, cost, pause, policy, start};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::parts::Parts;

fn rates() -> impl Strategy<Value = Algorithm> {
    let all = Algorithm::ALL.into_iter();
    prop::sample::select(all.filter(|&it| it != Algorithm::Concurrency).collect::<Vec<_>>())
}

fn buckets() -> impl Strategy<Value = Algorithm> {
    prop::sample::select(vec![Algorithm::TokenBucket, Algorithm::LeakyBucket])
}

#[derive(Clone, Debug)]
struct Ask {
    pause: Duration,
    percent: u8,
    cost: u64,
}

/// A limit of at most a thousand in no less than a second, or one of any size that is no bucket's: see `parts.rs` for those.
fn modest(algorithm: Algorithm) -> BoxedStrategy<Policy> {
    if !matches!(algorithm, Algorithm::TokenBucket | Algorithm::LeakyBucket) {
        return policy("p", algorithm);
    }
    let windows = [1_000_000_000, 1_000_000_007, 10_000_000_000, 86_399_999_999, 3_600_000_000_000];
    let window = prop::sample::select(windows.to_vec());
    let count = prop_oneof![1_u64..=10, 1_u64..=1000];
    let burst = prop_oneof![Just(None), (1_u64..=1000).prop_map(Some)];
    let policy = (count, window, burst).prop_map(move |(count, window, burst)| {
        let quota = Quota::new(count, Window::new(Duration::from_nanos(window)).unwrap());
        let quota = burst.map_or(quota, |burst| quota.burst(burst));
        Policy::builder("p", quota).algorithm(algorithm).build().unwrap()
    });
    policy.boxed()
}

/// A policy, a moment to begin, and questions under parts of it.
fn run(algorithm: Algorithm) -> impl Strategy<Value = (Policy, Timestamp, Vec<Ask>)> {
    modest(algorithm).prop_flat_map(|policy| {
        let percent = prop_oneof![3 => Just(100_u8), 2 => Just(50), 5 => 1_u8..=100];
        let ask = (pause(&policy), percent, cost(&policy));
        let ask = ask.prop_map(|(pause, percent, cost)| Ask { pause, percent, cost });
        (Just(policy.clone()), start(&policy), vec(ask, 1..100))
    })
}

/// What a bucket may admit from one moment to another under no more than so many percent: that part of what it holds, or one, and that part
/// of what the rate adds. In units times percents times nanoseconds of a window.
fn is_within(policy: &Policy, percent: u8, units: u128, length: u128) -> bool {
    let (Some(count), Some(window)) = (policy.quota().count(), policy.quota().window()) else {
        return true;
    };
    let (window, percent) = (window.length().as_nanos(), u128::from(percent));
    let holds = (u128::from(policy.whole_limit()) * percent).max(100);
    // What is too large to be told is within any bound here: there are a hundred asks.
    let added = length.saturating_mul(u128::from(count)).saturating_mul(percent);
    let most = holds.saturating_mul(window).saturating_add(added);
    units.saturating_mul(100).saturating_mul(window) <= most
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn no_interval_admits_more_than_the_whole_would((whole, start, asks) in rates().prop_flat_map(run)) {
        let parts = Parts::new(whole.clone(), start);
        let mut admissions = Vec::new();
        for ask in asks {
            parts.clock.advance(ask.pause);
            if parts.at(ask.percent).check_n("k", ask.cost).is_allowed() {
                admissions.push((parts.clock.now(), ask.cost));
            }
        }
        admitted_within_bound(&whole, &admissions).map_err(TestCaseError::fail)?;
    }

    #[test]
    fn no_interval_of_a_bucket_admits_more_than_its_highest_factor(
        (whole, start, asks) in buckets().prop_flat_map(run)
    ) {
        let parts = Parts::new(whole.clone(), start);
        let mut admissions = Vec::new();
        for ask in asks {
            parts.clock.advance(ask.pause);
            if parts.at(ask.percent).check_n("k", ask.cost).is_allowed() {
                admissions.push((parts.clock.now(), ask.cost, ask.percent));
            }
        }
        for (number, &(first, ..)) in admissions.iter().enumerate() {
            let (mut units, mut percent) = (0, 0);
            for &(last, cost, at) in &admissions[number..] {
                units += u128::from(cost);
                percent = percent.max(at);
                let length = last.since(first).as_nanos();
                prop_assert!(
                    is_within(&whole, percent, units, length),
                    "{whole}: {units} in {length} ns at up to {percent} %"
                );
            }
        }
    }

    /// Two who ask the same, one unit at a time; the factor of one is never above that of the other, which stays. At no moment has the
    /// first had more.
    #[test]
    fn a_factor_that_changes_never_gives_more_than_one_that_does_not(
        (whole, start, asks) in rates().prop_flat_map(run), most in 1_u8..=100
    ) {
        let (changing, steady) = (Parts::new(whole.clone(), start), Parts::new(whole, start));
        let (mut had, mut steadily) = (0_u64, 0_u64);
        for (number, ask) in asks.iter().enumerate() {
            changing.clock.advance(ask.pause);
            steady.clock.advance(ask.pause);
            for _ in 0..=number % 4 {
                let percent = ask.percent.min(most);
                had += u64::from(changing.at(percent).check("k").is_allowed());
                steadily += u64::from(steady.at(most).check("k").is_allowed());
                prop_assert!(had <= steadily, "{had}, and {steadily} at {most} %");
            }
        }
    }

    /// A factor that nobody asks under changes nothing, in whatever way it goes up and down meanwhile.
    #[test]
    fn to_look_under_another_factor_changes_nothing(
        (whole, start, asks) in rates().prop_flat_map(run), looks in vec(1_u8..=100, 1..10)
    ) {
        let (watched, alone) = (Parts::new(whole.clone(), start), Parts::new(whole, start));
        for ask in asks {
            watched.clock.advance(ask.pause);
            alone.clock.advance(ask.pause);
            for percent in &looks {
                let _ = watched.at(*percent).peek("k");
                let limiter = watched.at(*percent);
                if let Some(too_much) = limiter.policy().limit().checked_add(1) {
                    prop_assert!(
                        !limiter.check_n("k", too_much).is_allowed()
                            || limiter.policy().quota().is_unlimited()
                    );
                }
            }
            let [watched, alone] = [&watched, &alone].map(|parts| parts.at(ask.percent));
            prop_assert_eq!(watched.check_n("k", ask.cost), alone.check_n("k", ask.cost));
        }
    }

    /// Permits: somebody gets one if fewer are held than the lowered limit says, whatever it was before.
    #[test]
    fn permits_go_by_the_factor_of_the_moment(
        whole in policy("p", Algorithm::Concurrency), steps in vec((1_u8..=100, any::<bool>()), 1..200)
    ) {
        let parts = Parts::new(whole.clone(), Timestamp::EPOCH);
        let mut held = Vec::new();
        for (percent, comes) in steps {
            if !comes {
                held.pop();
                continue;
            }
            let limiter = parts.at(percent);
            let room = whole.quota().is_unlimited() || (held.len() as u64) < limiter.policy().limit();
            let permit = limiter.acquire("k");
            prop_assert_eq!(permit.is_ok(), room, "{} at {} %", held.len(), percent);
            held.extend(permit);
        }
    }
}
