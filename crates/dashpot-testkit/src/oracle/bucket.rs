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
    /// How much of it there is, in percent: units cost as much more as there is less.
    percent: u8,
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
            percent: policy.percent(),
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

    /// What units cost at so many percent, rounded up (or down) to what drains in the part of a nanosecond in which time is told.
    fn cost(&self, units: u64, percent: u8, round_up: bool) -> BigInt {
        if percent == 100 {
            return self.units(units);
        }
        let (mut grain, mut rest) = (self.window.clone(), self.count.clone());
        while rest != BigInt::ZERO {
            (grain, rest) = (rest.clone(), grain % rest);
        }
        let hundredfold = &self.window / &grain * units * 100_u8;
        let up = if round_up { percent - 1 } else { 0 };
        (hundredfold + up) / percent * grain * &self.parts
    }

    /// How high the level may be: as high as ever; or a little higher, if rounding would take the last unit away and what passes then would have
    /// passed before.
    fn depth(&self, policy: &Policy) -> BigInt {
        let whole = self.units(policy.whole_limit());
        let price = self.cost(1, policy.percent(), true);
        let units = u128::from(policy.whole_limit()) * u128::from(policy.percent()) / 100;
        let units = units.max(u128::from(policy.whole_limit().min(1)));
        let wanted = &price * units;
        let one_more = self.cost(policy.limit().saturating_add(1), policy.percent(), true);
        let is_harmless = wanted <= &whole + price - self.units(1) && wanted < one_more;
        if wanted > whole && is_harmless { wanted } else { whole }
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
        self.level(at) + self.cost(cost, policy.percent(), true) <= self.depth(policy)
    }

    fn is_fresh(&self, at: Time) -> bool {
        self.level(at) == BigInt::ZERO
    }

    fn charge(&mut self, at: Time, units: u64) {
        self.change(at, self.level(at) + self.cost(units, self.percent, true));
    }

    fn give_back(&mut self, at: Time, _charged_at: Time, units: u64) {
        let level = self.level(at) - self.cost(units, self.percent, false);
        self.change(at, level.max(BigInt::ZERO));
    }

    /// What has drained since is gone; and if it was not at this rate, so is all of it.
    fn undo(&mut self, policy: &Policy, at: Time, charged_at: Time, units: u64) {
        if self.count != count(policy) || self.window != window(policy) {
            return;
        }
        let drained = self.drain() * (at - charged_at).max(0);
        let left = self.cost(units, self.percent, false) - drained;
        if left > BigInt::ZERO {
            self.change(at, (self.level(at) - left).max(BigInt::ZERO));
        }
    }

    fn adopt(&mut self, at: Time, policy: &Policy) {
        let (count, window) = (count(policy), window(policy));
        self.percent = policy.percent();
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

    fn settles(&mut self, policy: &Policy) {
        if self.count == count(policy) && self.window == window(policy) {
            self.percent = policy.percent();
        }
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
