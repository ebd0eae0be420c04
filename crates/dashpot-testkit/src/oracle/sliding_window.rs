//! Sliding window counters: a count for every window there ever was, the last one weighted.

use std::collections::BTreeMap;

use dashpot::Policy;
use num_bigint::BigInt;

use super::calendar::nanos;
use super::meter::{Meter, Time};

#[derive(Clone, Debug)]
pub(super) struct SlidingWindow {
    window: Time,
    /// What was counted, by the number of its window.
    counts: BTreeMap<Time, u128>,
}

impl SlidingWindow {
    pub(super) fn new(policy: &Policy) -> Self {
        let window = policy.quota().window().expect("a rate has a window");
        Self { window: nanos(window), counts: BTreeMap::new() }
    }

    /// The window that counts at this moment, and how far into it that is. It never goes back,
    /// whatever the clock does: an older moment is seen as the start of the newest window charged.
    fn position(&self, at: Time) -> (Time, Time) {
        let number = at.div_euclid(self.window);
        match self.counts.last_key_value() {
            Some((&newest, _)) if newest > number => (newest, 0),
            _ => (number, at.rem_euclid(self.window)),
        }
    }

    fn count(&self, number: Time) -> u128 {
        self.counts.get(&number).copied().unwrap_or(0)
    }

    /// The estimate, times the window's length so that it is a whole number.
    fn estimate(&self, at: Time) -> BigInt {
        let (number, elapsed) = self.position(at);
        let previous = BigInt::from(self.count(number - 1)) * (self.window - elapsed);
        let current = BigInt::from(self.count(number)) * self.window;
        previous + current
    }
}

impl Meter for SlidingWindow {
    fn passes(&self, policy: &Policy, at: Time, cost: u64) -> bool {
        let asked = BigInt::from(cost) * self.window;
        self.estimate(at) + asked <= BigInt::from(policy.limit()) * self.window
    }

    fn is_fresh(&self, at: Time) -> bool {
        self.estimate(at) == BigInt::ZERO
    }

    fn charge(&mut self, at: Time, units: u64) {
        let (number, _) = self.position(at);
        let count = self.counts.entry(number).or_default();
        // A count stops at the largest there is; only debt gets there.
        *count = (*count + u128::from(units)).min(u64::MAX.into());
    }

    fn give_back(&mut self, _at: Time, charged_at: Time, units: u64) {
        let charged = charged_at.div_euclid(self.window);
        if let Some(count) = self.counts.get_mut(&charged) {
            *count = count.saturating_sub(units.into());
        }
    }
}
