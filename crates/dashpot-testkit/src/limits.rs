use dashpot::{Algorithm, Policy, Quota, Window};

/// A policy of so many units per window under any algorithm; at once, under concurrency.
///
/// # Panics
/// If the algorithm does not take such a quota.
#[must_use]
pub fn limit(name: &str, algorithm: Algorithm, count: u64, window: Window) -> Policy {
    let quota = match algorithm {
        Algorithm::Concurrency => Quota::concurrent(count),
        _ => Quota::new(count, window),
    };
    Policy::builder(name, quota).algorithm(algorithm).build().expect("a plain quota")
}
