//! Token and leaky buckets: a level that rises by what is charged and drains at the policy's rate.

use dashpot::Policy;
use num_bigint::BigInt;

use super::meter::{Meter, Time};

/// How much stricter than the exact answer a store may be about a key that was carried over from
/// one rate to another: it may round the level up to its own grain, by less than two nanoseconds
/// of draining each time. It may never be more generous.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slack {
    /// So much longer may a wait be.
    pub nanos: u64,
    /// So much less may remain.
    pub units: u64,
}

/// All levels are counted in `window`-ths of a unit: a bucket of `count` units per window then
/// drains by exactly `count` of them per nanosecond, so whole numbers are exact. If it goes on at another
/// rate for as long as before, its level may be no whole number of those; it is one of some `parts` of them.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    window: BigInt,
    count: BigInt,
    parts: BigInt,
    /// The level right after the last change, and when that was. `None` before the first.
    last: Option<(Time, BigInt)>,
    slack: BigInt,
}

impl Bucket {
    pub(super) fn new(policy: &Policy) -> Self {
        Self {
            window: window(policy),
            count: count(policy),
            parts: BigInt::from(1),
            last: None,
            slack: BigInt::ZERO,
        }
    }

    /// By how much it drains in a nanosecond.
    fn drain(&self) -> BigInt {
        &self.count * &self.parts
    }

    /// The level, as if it went on below empty. A moment before the last change sees it higher.
    fn signed_level(&self, at: Time) -> BigInt {
        match &self.last {
            None => BigInt::ZERO,
            Some((then, level)) => level - self.drain() * (at - then),
        }
    }

    fn level(&self, at: Time) -> BigInt {
        self.signed_level(at).max(BigInt::ZERO)
    }

    /// Whether it has run dry, and what a store may have rounded up, too.
    fn is_surely_fresh(&self, at: Time) -> bool {
        self.signed_level(at) <= -&self.slack
    }

    fn units(&self, units: u64) -> BigInt {
        &self.window * &self.parts * units
    }

    fn change(&mut self, at: Time, level: BigInt) {
        if self.is_surely_fresh(at) {
            self.slack = BigInt::ZERO;
        }
        self.last = Some((at, level));
    }
}

impl Meter for Bucket {
    fn passes(&self, policy: &Policy, at: Time, cost: u64) -> bool {
        self.level(at) + self.units(cost) <= self.units(policy.limit())
    }

    fn is_fresh(&self, at: Time) -> bool {
        self.level(at) == BigInt::ZERO
    }

    fn charge(&mut self, at: Time, units: u64) {
        self.change(at, self.level(at) + self.units(units));
    }

    fn give_back(&mut self, at: Time, _charged_at: Time, units: u64) {
        let level = self.level(at) - self.units(units);
        self.change(at, level.max(BigInt::ZERO));
    }

    fn adopt(&mut self, at: Time, policy: &Policy) {
        let (count, window) = (count(policy), window(policy));
        if self.count == count && self.window == window {
            return;
        }
        if policy.is_any_window() {
            // It runs dry when it would have: as before, whatever the clock shows when it is asked about, or later.
            // `level / (count · parts)` nanoseconds stay what they are.
            self.last = self.last.take().map(|(then, level)| (then, level * &count));
            self.slack *= &count;
            self.parts *= &self.count;
            (self.count, self.window) = (count, window);
            self.slack += 2 * self.drain();
            return;
        }
        if self.is_fresh(at) {
            // Nothing is used, so nothing is carried over; unless what a store rounded up is. Then it
            // may be stricter, and if the clock goes back, by any amount.
            self.slack = match self.is_surely_fresh(at) {
                true => BigInt::ZERO,
                false => self.units(u64::MAX) * u64::MAX,
            };
            self.last = None;
        } else {
            self.change(at, self.level(at));
            self.slack += 2 * &count;
        }
        self.count = count;
    }

    fn is_due(&self, policy: &Policy, at: Time) -> bool {
        policy.queue().is_none() || self.level(at) <= self.units(policy.undelayed())
    }

    fn slack(&self) -> Slack {
        Slack {
            nanos: divide_up(&self.slack, &self.drain()),
            units: divide_up(&self.slack, &self.units(1)),
        }
    }
}

fn count(policy: &Policy) -> BigInt {
    policy.quota().count().expect("a rate has a count").into()
}

fn window(policy: &Policy) -> BigInt {
    let window = policy.quota().window().expect("a rate has a window");
    window.length().as_nanos().into()
}

fn divide_up(dividend: &BigInt, divisor: &BigInt) -> u64 {
    if *dividend == BigInt::ZERO {
        return 0;
    }
    if *divisor == BigInt::ZERO {
        return u64::MAX;
    }
    let quotient = (dividend + divisor - 1_u8) / divisor;
    u64::try_from(quotient).unwrap_or(u64::MAX)
}
