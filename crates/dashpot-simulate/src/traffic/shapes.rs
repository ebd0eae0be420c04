//! Endless arrivals.

use std::time::Duration;

use dashpot::{Algorithm, Policy, Quota};
use fastrand::Rng;

use crate::Arrival;
use crate::run::{START, nanos};

/// Around a window's end, the attack takes this part of a window on both sides.
const HURRY: u64 = 100;

fn alone(at: u64) -> Arrival {
    Arrival { at, caller: 0, cost: 1 }
}

/// How many, and in how many nanoseconds.
fn parts(rate: Quota) -> (u64, u64) {
    let window = rate.window().map_or(u64::MAX, |window| nanos(window.length()));
    (rate.count().unwrap_or(0).max(1), window)
}

pub(super) fn steady(rate: Quota) -> impl Iterator<Item = Arrival> + Send {
    let (count, window) = parts(rate);
    let at = move |number: u64| {
        let at = u128::from(number) * u128::from(window) / u128::from(count);
        u64::try_from(at).ok()
    };
    (0..).map_while(at).map(alone)
}

pub(super) fn bursts(many: u64, every: Duration) -> impl Iterator<Item = Arrival> + Send {
    let every = nanos(every).max(1);
    let starts = (0_u64..).map_while(move |number| number.checked_mul(every));
    starts.flat_map(move |at| (0..many).map(move |_| alone(at)))
}

pub(super) fn boundary(limit: Quota) -> impl Iterator<Item = Arrival> + Send {
    let (count, length) = parts(limit);
    let hurry = (length / HURRY).max(1);
    let policy = Policy::builder("boundary", limit).algorithm(Algorithm::FixedWindow).build().ok();
    let begin = START.as_nanos();
    let mut window = policy.as_ref().and_then(|policy| policy.window_at(START));
    // Every second end: the window in between was used up when it began.
    let ends = std::iter::from_fn(move || {
        let end = window.as_ref()?.end;
        for _ in 0..2 {
            let next = dashpot::Timestamp::from_nanos(window.as_ref()?.end);
            window = policy.as_ref()?.window_at(next);
        }
        Some(end.saturating_sub(begin))
    });
    ends.flat_map(move |end| {
        let spread = move |number: u64| {
            let part = u128::from(number) * u128::from(hurry) / u128::from(count);
            u64::try_from(part).unwrap_or(u64::MAX)
        };
        let before = (0..count).map(move |number| end.saturating_sub(hurry) + spread(number));
        let after = (0..count).map(move |number| end.saturating_add(spread(number)));
        before.chain(after).map(alone)
    })
}

pub(super) fn poisson(rate: Quota, seed: u64) -> impl Iterator<Item = Arrival> + Send {
    moments(rate, Rng::with_seed(seed)).map(alone)
}

pub(super) fn zipf(
    rate: Quota,
    (callers, exponent): (u32, f64),
    seed: u64,
) -> impl Iterator<Item = Arrival> + Send {
    let mut total = 0.0;
    let up_to: Vec<f64> = (1..=callers)
        .map(|rank| {
            total += f64::from(rank).powf(-exponent);
            total
        })
        .collect();
    let mut random = Rng::with_seed(seed);
    let moments = moments(rate, random.fork());
    moments.map(move |at| {
        let point = random.f64() * total;
        let caller = up_to.partition_point(|end| *end <= point);
        let last = callers.saturating_sub(1);
        Arrival { at, caller: u32::try_from(caller).unwrap_or(last).min(last), cost: 1 }
    })
}

/// Moments at random, so many on average.
fn moments(rate: Quota, mut random: Rng) -> impl Iterator<Item = u64> + Send {
    let (count, window) = parts(rate);
    let mean = window as f64 / count as f64;
    let mut at = 0.0;
    std::iter::from_fn(move || {
        // 1 - f64() is never 0.
        at += -(1.0 - random.f64()).ln() * mean;
        whole(at)
    })
}

/// A time in whole nanoseconds, while there is one.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what does not fit is told apart before"
)]
fn whole(at: f64) -> Option<u64> {
    (at.is_finite() && (0.0..9e18).contains(&at)).then_some(at as u64)
}
