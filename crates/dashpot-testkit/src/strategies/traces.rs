//! Traces of 1 to 60 steps, their costs and pauses cut to the policies they are about.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Union;

use super::policies::{any_windows, definitions};
use crate::trace::{Ask, Definitions, Operation, Step, Trace};

/// The end of the year 2199: what starts before has decades left.
const YEAR_2200: u64 = 7_258_118_400_000_000_000;

const NAMES: [&str; 3] = ["one", "two", "three"];

/// A trace about one policy under this algorithm.
pub fn trace(algorithm: Algorithm) -> BoxedStrategy<Trace> {
    definitions(NAMES[0], algorithm).prop_flat_map(|policy| on(vec![policy])).boxed()
}

/// A trace about one bucket of this algorithm that is asked about under another window time and again.
pub fn any_window_trace(algorithm: Algorithm) -> BoxedStrategy<Trace> {
    any_windows(NAMES[0], algorithm).prop_flat_map(on).boxed()
}

/// A trace about up to three policies, under any algorithms.
pub fn mixed_trace() -> BoxedStrategy<Trace> {
    let any = |name| {
        let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
        algorithm.prop_flat_map(move |algorithm| definitions(name, algorithm))
    };
    let policies = (any(NAMES[0]), any(NAMES[1]), any(NAMES[2]), 1_usize..=3);
    policies
        .prop_flat_map(|(one, two, three, number)| {
            on([one, two, three].into_iter().take(number).collect())
        })
        .boxed()
}

fn on(policies: Vec<Definitions>) -> BoxedStrategy<Trace> {
    let start = start(&policies[0].first);
    (start, vec(step(&policies), 1..=60))
        .prop_map(move |(start, steps)| Trace {
            start,
            policies: policies.clone(),
            keys: vec![b"a".to_vec(), b"b".to_vec()],
            steps,
        })
        .boxed()
}

fn step(policies: &[Definitions]) -> BoxedStrategy<Step> {
    let which = 0..policies.len();
    let defined =
        || policies.iter().flat_map(|policy| [&policy.first].into_iter().chain(&policy.other));
    let pause = || Union::new(defined().map(pause));
    let ask = || Union::new((0..).zip(policies).map(|(number, policy)| ask(number, policy)));
    let operation = prop_oneof![
        2 => Just(Operation::Peek),
        1 => Just(Operation::Reset),
        2 => pause().prop_map(Operation::BlockFor),
        1 => Just(Operation::Unblock),
    ];
    let manage = (which.clone(), key(), operation);
    // See how deep such a bucket is.
    let any_window = policies.iter().any(|policy| policy.first.is_any_window());
    let most = if any_window { 1_000_000 } else { u64::MAX };
    prop_oneof![
        12 => vec(ask(), 1..=1).prop_map(Step::Check),
        4 => vec(ask(), 0..=4).prop_map(Step::Check),
        10 => pause().prop_map(Step::Advance),
        2 => pause().prop_map(Step::Back),
        4 => ask().prop_map(Step::Reserve),
        4 => (0_usize..4, used(most)).prop_map(|(which, used)| Step::Settle { which, used }),
        2 => (0_usize..4).prop_map(|which| Step::Undo { which }),
        2 => manage.prop_map(|(policy, key, operation)| Step::Manage { policy, key, operation }),
        1 => which.prop_map(Step::Redefine),
    ]
    .boxed()
}

/// One key is much busier than the other.
fn key() -> BoxedStrategy<usize> {
    prop_oneof![4 => Just(0), 1 => Just(1)].boxed()
}

fn ask(number: usize, policy: &Definitions) -> BoxedStrategy<Ask> {
    let costs = prop_oneof![cost(&policy.first), cost(policy.pick(true))];
    let outdated = prop::bool::weighted(0.03);
    (key(), costs, outdated)
        .prop_map(move |(key, cost, outdated)| Ask { policy: number, key, cost, outdated })
        .boxed()
}

/// What is asked for: mostly one or a few, now and then nothing, all there is, or too much.
pub fn cost(policy: &Policy) -> BoxedStrategy<u64> {
    let limit = policy.limit();
    let around = [limit, limit.saturating_add(1), limit.saturating_sub(1), limit / 2, limit / 3];
    prop_oneof![
        10 => Just(1),
        1 => Just(0),
        4 => 2_u64..=5,
        4 => prop::sample::select(around.to_vec()),
        2 => 0..=limit,
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 1, 1 << 63, 1 << 32]),
    ]
    .boxed()
}

/// What was really used: mostly nothing or a little, now and then a great deal.
fn used(most: u64) -> BoxedStrategy<u64> {
    prop_oneof![
        6 => Just(0),
        8 => 1_u64..=6,
        2 => 1_u64..=1_000_000,
        1 => Just(most),
    ]
    .boxed()
}

/// How long nothing happens: around whole numbers of units, of windows and of halves of them; no
/// time at all; years.
pub fn pause(policy: &Policy) -> BoxedStrategy<Duration> {
    let window = policy.quota().window().map_or(1_000_000_000, |window| window.length().as_nanos());
    let count = u128::from(policy.quota().count().unwrap_or(1).max(1));
    let unit = window / count;
    let about = |nanos: u128| (0_u128..3).prop_map(move |off| (nanos + off).saturating_sub(1));
    let nanos = prop_oneof![
        2 => Just(0),
        2 => 1_u128..=3,
        6 => (1_u128..=5).prop_flat_map(move |times| about(unit * times)),
        4 => (1_u128..=2).prop_flat_map(move |times| about(window * times)),
        4 => (1_u128..=9).prop_flat_map(move |tenths| about(window * tenths / 10)),
        4 => 0..=3 * unit,
        4 => 0..=2 * window,
        1 => (1_u128..=20).prop_map(|years| years * 31_556_952_000_000_000),
    ];
    nanos.prop_map(|nanos| Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))).boxed()
}

/// When a trace starts: at the epoch, around the start of one of the policy's windows, or any time
/// before the year 2200.
pub fn start(policy: &Policy) -> BoxedStrategy<Timestamp> {
    let window = policy.quota().window().map_or(1, |window| window.length().as_nanos() as u64);
    let around = move |(windows, off): (u64, u64)| {
        (window.saturating_mul(windows).min(YEAR_2200) + off).saturating_sub(1)
    };
    let nanos = prop_oneof![
        1 => 0_u64..=2,
        3 => (0..=YEAR_2200 / window, 0_u64..3).prop_map(around),
        1 => (0_u64..=3, 0_u64..3).prop_map(around),
        2 => 0..=YEAR_2200,
    ];
    nanos.prop_map(Timestamp::from_nanos).boxed()
}
