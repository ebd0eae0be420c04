//! Policies that fit together, and pairs of them that count the same thing.

use dashpot::{Algorithm, Policy, Quota, SLIDING_LOG_MAX, Window};
use proptest::option;
use proptest::prelude::*;

use super::quotas::{count, window};
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

/// A policy under this algorithm, half the time with another definition to change to.
pub fn definitions(name: &'static str, algorithm: Algorithm) -> BoxedStrategy<Definitions> {
    let limited = window().prop_flat_map(move |window| {
        let other = option::of(limited(name, algorithm, window));
        (limited(name, algorithm, window), other)
    });
    let redefinable = limited.prop_map(|(first, other)| {
        // Of two that are equally strict, nobody has said which one governs a merged check.
        let strictness = |policy: &Policy| (policy.limit(), policy.quota().count());
        let other = other.filter(|other| strictness(other) != strictness(&first));
        Definitions { first, other }
    });
    prop_oneof![
        19 => redefinable,
        1 => policy(name, algorithm).prop_map(Definitions::from),
    ]
    .boxed()
}

fn limited(name: &'static str, algorithm: Algorithm, window: Window) -> BoxedStrategy<Policy> {
    (count(), shape())
        .prop_map(move |(count, shape)| {
            let build = |quota| Policy::builder(name, quota).algorithm(algorithm);
            let rate = Quota::new(count, window);
            let builder = match (algorithm, shape) {
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
            };
            builder.build().unwrap()
        })
        .boxed()
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
