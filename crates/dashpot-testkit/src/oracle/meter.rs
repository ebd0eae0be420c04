//! What an algorithm has to say for the oracle to work out the rest.

use dashpot::{Policy, Timestamp};

use super::Slack;

/// Nanoseconds since the epoch, wide enough to look centuries past the last [`Timestamp`].
pub(super) type Time = i128;

pub(super) fn time(at: Timestamp) -> Time {
    Time::from(at.as_nanos())
}

/// One key's history under one algorithm.
pub(super) trait Meter {
    /// Whether `cost` more units would pass at this moment. Once it holds it holds for all later
    /// moments, and for all smaller costs.
    fn passes(&self, policy: &Policy, at: Time, cost: u64) -> bool;

    /// Whether nothing that was counted matters any more at this moment, nor later.
    fn is_fresh(&self, at: Time) -> bool;

    /// Counts units, whether they fit or not.
    fn charge(&mut self, at: Time, units: u64);

    /// Takes back units of a charge made at `charged_at`.
    fn give_back(&mut self, at: Time, charged_at: Time, units: u64);

    /// Takes back what is left of units that were charged at `charged_at`, by this policy, and not used.
    fn undo(&mut self, _policy: &Policy, at: Time, charged_at: Time, units: u64) {
        self.give_back(at, charged_at, units);
    }

    /// Whether waiting helps: only concurrency waits for people instead of time.
    fn runs_by_clock(&self) -> bool {
        true
    }

    /// Carries the units used over to another definition; under any window, the time until there are none.
    /// Counts mean the same under any limit, so most have nothing to do.
    fn adopt(&mut self, _at: Time, _policy: &Policy) {}

    /// What is settled from here on was charged under this definition.
    fn settles(&mut self, _policy: &Policy) {}

    /// Whether a request that comes now may proceed at this moment.
    fn is_due(&self, _policy: &Policy, _at: Time) -> bool {
        true
    }

    /// How much stricter than the exact answer a store may be.
    fn slack(&self) -> Slack {
        Slack::default()
    }
}

/// The smallest number for which `holds` does, found by halving; `max` if there is none below it.
/// It must hold for all numbers above one for which it holds.
pub(super) fn smallest(max: u64, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (0, max);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}
