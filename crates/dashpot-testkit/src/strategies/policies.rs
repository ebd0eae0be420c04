//! Policies that fit together, and pairs of them that count the same thing.

use dashpot::{Algorithm, Policy, PolicyBuilder, Quota, SLIDING_LOG_MAX, Window};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::quotas::{count, friendly_window, window};
use crate::trace::Definitions;

/// A policy under this algorithm, with whatever burst or queue it can have. One in twenty has no
/// limit.
pub fn policy(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Policy> {
    let unlimited = Policy::builder(name, Quota::UNLIMITED).algorithm(algorithm);
    prop_oneof![
        19 => window().prop_flat_map(move |window| limited(name, algorithm, window)),
        1 => Just(unlimited.build().unwrap()),
    ]
    .boxed()
}

/// A policy under this algorithm, half the time with another definition to change to: a fourth of those is a part of the policy. A fourth of
/// all buckets may change their window, too.
pub fn definitions(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Definitions> {
    let limited = window().prop_flat_map(move |window| {
        let other = option::of(limited(name, algorithm, window));
        (limited(name, algorithm, window), other, option::weighted(0.25, 1_u8..100))
    });
    let redefinable = limited.prop_map(|(first, other, part)| {
        let other = match part {
            Some(percent) => other.map(|_| first.reduced_to(percent)),
            None => other.filter(|other| !equally_strict(&first, other)),
        };
        Definitions { first, other }
    });
    let redefinable = match algorithm {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            prop_oneof![3 => redefinable, 1 => any_window(name, algorithm)].boxed()
        }
        _ => redefinable.boxed(),
    };
    prop_oneof![
        19 => redefinable,
        1 => policy(name, algorithm).prop_map(Definitions::from),
    ]
    .boxed()
}

/// A bucket whose window may change, and another definition of it with another.
pub fn any_window(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Definitions> {
    (of_any_window(name, algorithm), of_any_window(name, algorithm))
        .prop_map(|(first, other)| {
            let other = Some(other).filter(|other| !equally_strict(&first, other));
            Definitions { first, other }
        })
        .boxed()
}

/// Several definitions of one bucket whose window may change, and now and then one of the same name whose window
/// may not.
pub fn any_windows(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Vec<Definitions>> {
    let plain = option::weighted(
        0.2,
        window().prop_flat_map(move |window| limited(name, algorithm, window)),
    );
    (vec(of_any_window(name, algorithm), 2..=5), plain)
        .prop_map(|(mut policies, plain)| {
            let mut known: Vec<Policy> = Vec::new();
            policies.retain(|policy| {
                let is_new = !known.iter().any(|known| equally_strict(known, policy));
                known.extend(is_new.then(|| policy.clone()));
                is_new
            });
            policies.into_iter().chain(plain).map(Definitions::from).collect()
        })
        .boxed()
}

/// Of two that are equally strict, nobody has said which one governs a merged check.
fn equally_strict(one: &Policy, other: &Policy) -> bool {
    let (ours, theirs) = (one.quota(), other.quota());
    let rate = |quota: Quota, other: Quota| {
        let nanos = other.window().map_or(1, |window| window.length().as_nanos());
        u128::from(quota.count().unwrap_or(u64::MAX)) * nanos
    };
    one.limit() == other.limit() && rate(ours, theirs) == rate(theirs, ours)
}

/// As long as any other bucket of the same name takes to run dry, in the finest grains of all, must be a number
/// that a store can have. These make that ten million years.
const FINEST: u64 = 1 << 40;
const DEEPEST: u64 = 1_000_000;

/// A bucket of any window: mostly of a rate that somebody might write, whose unit is no whole number of
/// nanoseconds in many a case.
fn of_any_window(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Policy> {
    let odd = vec![1, 3, 7, 11, 13, 90, 97, 7777, 1_000_000_000];
    let rates = prop_oneof![
        4 => (prop::sample::select(odd), friendly_window()),
        2 => (1_u64..=10, friendly_window()),
        1 => (count(), window()),
    ];
    (rates, shape())
        .prop_map(move |((count, window), shape)| {
            // One that never lets anything pass has no time to keep.
            let (count, shape) = match (count.clamp(1, FINEST), shape) {
                (count, Shape::Burst(burst)) => (count, Shape::Burst(burst.clamp(1, DEEPEST))),
                (count, Shape::Scaled(..10)) => (count, Shape::Burst(1)),
                (count, Shape::Queue(queue, undelayed)) => {
                    (count, Shape::Queue(queue.min(DEEPEST), undelayed))
                }
                (count, shape) => (count, shape),
            };
            let builder = builder(name, algorithm, (count, window), shape);
            builder.any_window().build().unwrap()
        })
        .boxed()
}

fn limited(name: &'static str, algorithm: Algorithm, window: Window) -> BoxedStrategy<Policy> {
    (count(), shape())
        .prop_map(move |(count, shape)| {
            builder(name, algorithm, (count, window), shape).build().unwrap()
        })
        .boxed()
}

fn builder(
    name: &str,
    algorithm: Algorithm,
    (count, window): (u64, Window),
    shape: Shape,
) -> PolicyBuilder {
    let build = |quota| Policy::builder(name, quota).algorithm(algorithm);
    let rate = Quota::new(count, window);
    match (algorithm, shape) {
        (Algorithm::Concurrency, _) => build(Quota::concurrent(count)),
        (Algorithm::SlidingLog, _) => build(Quota::new(count.min(SLIDING_LOG_MAX), window)),
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, Shape::Burst(burst)) => {
            build(rate.burst(burst))
        }
        (Algorithm::TokenBucket | Algorithm::LeakyBucket, Shape::Scaled(tenths)) => {
            build(rate.burst(scaled(count, tenths)))
        }
        (Algorithm::LeakyBucket, Shape::Queue(queue, undelayed)) => {
            build(rate).queue(queue).undelayed(undelayed.min(queue))
        }
        _ => build(rate),
    }
}

/// What a bucket may have besides its rate.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Plain,
    /// A capacity of its own.
    Burst(u64),
    /// A capacity of so many tenths of the count.
    Scaled(u64),
    Queue(u64, u64),
}

fn shape() -> BoxedStrategy<Shape> {
    let places = || prop_oneof![8 => 0_u64..=8, 1 => 100_u64..=1_000_000, 1 => any::<u64>()];
    prop_oneof![
        2 => Just(Shape::Plain),
        2 => places().prop_map(Shape::Burst),
        1 => (1_u64..=40).prop_map(Shape::Scaled),
        3 => (places(), places()).prop_map(|(queue, undelayed)| Shape::Queue(queue, undelayed)),
    ]
    .boxed()
}

fn scaled(count: u64, tenths: u64) -> u64 {
    u64::try_from(u128::from(count) * u128::from(tenths) / 10).unwrap_or(u64::MAX)
}
