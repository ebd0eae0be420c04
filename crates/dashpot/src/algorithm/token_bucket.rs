//! Token bucket ≡ GCRA ≡ leaky bucket as a meter.
//!
//! The state is one number, the theoretical arrival time (TAT): when the bucket will be full again
//! (or the meter empty). With count L per window W, a unit takes T = W/L, which need not be a
//! whole number of nanoseconds. So time is told in *grains* of 1/l nanosecond, where l/w is L/W in
//! lowest terms: `now` is then `now·l` grains and T is `w` grains, both whole, and nothing is ever
//! rounded but the waits, up, to whole nanoseconds.
//!
//! Nothing overflows: a moment is below 2⁶³ ns and l below 2⁶⁴, a window is below 2⁶² ns and a
//! capacity below 2⁶⁴. Only debt can grow past that, and it stops at the top.

use std::num::NonZeroU64;

use super::{Enforce, Judged, Packed, Verdict};
use crate::{Rate, Retry, Standing, Timestamp, Window};

#[derive(Debug)]
pub(super) struct TokenBucket {
    /// Grains in a nanosecond: l.
    per_nano: u64,
    /// Grains in the time of one unit: w.
    per_unit: u64,
    /// How much of the rate there is: units cost as much more as there is less.
    percent: u8,
    /// Grains in the time of all units: τ.
    depth: u128,
    /// Whether it is time that is carried over to a bucket of another rate, and not units.
    carries_time: bool,
}

/// The theoretical arrival time, in grains since the epoch. A fresh bucket's lies in the past.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tat(u128);

impl Tat {
    pub(super) fn new(grains: u128) -> Self {
        Self(grains)
    }
}

impl TokenBucket {
    pub(super) fn new(count: u64, window: Window, capacity: u64) -> Self {
        let window = window.nanos();
        // A bucket that never refills still counts in fine grains, in case its limit changes.
        let shared = if count == 0 { 1 } else { gcd(count, window) };
        let per_unit = window / shared;
        let per_nano = count / shared;
        let depth = grains(capacity, per_unit);
        Self { per_nano, per_unit, percent: 100, depth, carries_time: false }
    }

    /// The same at so many percent of its rate, and with room for so many units. Time is told as before, so states are the same: units
    /// cost more of it, rounded up against the caller.
    pub(super) fn reduced_to(mut self, percent: u8, capacity: u64) -> Self {
        self.percent = percent.max(1);
        // Rounding is not to take away the last of them, nor all if there is one. A little more depth does no harm: as long as it is no more
        // than a unit costs more, nothing passes that the whole would not let pass.
        let price = self.cost(1);
        let wanted = price.saturating_mul(capacity.into());
        let is_harmless = wanted <= self.depth + (price - u128::from(self.per_unit));
        if is_harmless && wanted < self.cost(capacity.saturating_add(1)) {
            self.depth = self.depth.max(wanted);
        }
        self
    }

    /// The same, carrying time over or units.
    pub(super) fn carrying_time(mut self, carries_time: bool) -> Self {
        self.carries_time = carries_time;
        self
    }

    /// A bucket of this rate and no depth, to take over from.
    pub(super) fn of(rate: Rate) -> Self {
        // A unit takes some time.
        let per_unit = rate.nanos.max(1);
        Self { per_nano: rate.units, per_unit, percent: 100, depth: 0, carries_time: false }
    }

    /// What so many units cost, in grains.
    #[inline]
    pub(super) fn cost(&self, units: u64) -> u128 {
        let grains = grains(units, self.per_unit);
        if self.percent == 100 { grains } else { self.reduced_cost(grains) }
    }

    // Out of the way of those that are whole.
    #[cold]
    #[inline(never)]
    fn reduced_cost(&self, grains: u128) -> u128 {
        let (whole, part) = hundredfold(grains, self.percent);
        whole.saturating_add(part.div_ceil(self.percent.into()))
    }

    /// What so many units are worth that are given back: what they cost, but for a part of a grain.
    pub(super) fn worth(&self, units: u64) -> u128 {
        let grains = grains(units, self.per_unit);
        if self.percent == 100 {
            return grains;
        }
        let (whole, part) = hundredfold(grains, self.percent);
        whole.saturating_add(part / u128::from(self.percent))
    }

    /// How many units so many grains are.
    #[inline]
    fn units(&self, room: u128) -> u64 {
        if self.percent == 100 { divide(room, self.per_unit) } else { self.reduced_units(room) }
    }

    #[cold]
    #[inline(never)]
    fn reduced_units(&self, room: u128) -> u64 {
        let (percent, price) = (u128::from(self.percent), grains(100, self.per_unit));
        let units = room / price * percent + room % price * percent / price;
        u64::try_from(units).unwrap_or(u64::MAX)
    }

    pub(super) const fn depth(&self) -> u128 {
        self.depth
    }

    pub(super) fn rate(&self) -> Rate {
        Rate { units: self.per_nano, nanos: self.per_unit }
    }

    /// One word holds a moment of any year to come if there are few grains in a nanosecond, as with
    /// nearly all limits that people write.
    pub(super) fn words(&self) -> usize {
        // Who may have any window may have any grains.
        if self.per_nano <= 3 && !self.carries_time { 1 } else { 2 }
    }

    fn moment(&self, now: u64) -> u128 {
        grains(now, self.per_nano)
    }

    /// Grains until the bucket is full.
    pub(super) fn backlog(&self, tat: &Tat, now: u64) -> u128 {
        tat.0.saturating_sub(self.moment(now))
    }

    /// Grains as nanoseconds, rounded up: a wait must be enough.
    fn nanos(&self, grains: u128) -> u64 {
        match grains {
            0 => 0,
            // A bucket that never refills has no wait that is enough.
            _ if self.per_nano == 0 => u64::MAX,
            _ if self.per_nano == 1 => u64::try_from(grains).unwrap_or(u64::MAX),
            _ => divide(grains.saturating_add(u128::from(self.per_nano - 1)), self.per_nano),
        }
    }

    /// The same bucket in short, if all its numbers are.
    pub(super) fn short(&self) -> Option<Short> {
        // Grains are nanoseconds for nearly all limits that people write.
        let is_whole = grains(100, self.per_unit).is_multiple_of(self.percent.into());
        let unit = u64::try_from(self.cost(1)).ok().filter(|_| self.per_nano == 1 && is_whole)?;
        let unit = NonZeroU64::new(unit)?;
        let depth = u64::try_from(self.depth).ok().filter(|depth| (1..=SHORT).contains(depth))?;
        Some(Short { unit, depth, limit: depth / unit })
    }

    /// Nanoseconds until no more than `units` are left of the backlog.
    pub(super) fn drained_to(&self, tat: &Tat, now: u64, units: u64) -> u64 {
        let kept = grains(units, self.per_unit);
        self.nanos(self.backlog(tat, now).saturating_sub(kept))
    }

    fn give_back(&self, tat: &mut Tat, now: u64, grains: u128) {
        tat.0 = tat.0.saturating_sub(grains).max(self.moment(now));
    }

    /// Takes what another state of this bucket has to drain, too.
    pub(super) fn join(&self, tat: &mut Tat, other: &Tat, now: u64) {
        let start = tat.0.max(self.moment(now));
        tat.0 = start.saturating_add(self.backlog(other, now));
    }

    /// Grains in what stays the same when a state is taken over: in the time of one unit, or in a nanosecond.
    fn carried(&self) -> u64 {
        if self.carries_time { self.per_nano } else { self.per_unit }
    }

    /// Takes over a state of `old`: as many units used, or as long to go, fractions rounded up against the caller.
    pub(super) fn adopt(&self, old: &Self, tat: &mut Tat, now: u64) {
        if (self.per_nano, self.carried()) == (old.per_nano, old.carried()) {
            return; // The same grains, so the same time to drain.
        }
        // When it will be full stays the same whatever the clock shows, also if it has gone back since.
        let now = if self.carries_time { 0 } else { now };
        let backlog = old.backlog(tat, now);
        let (old_unit, new_unit) = (u128::from(old.carried()), u128::from(self.carried()));
        let (units, part) = (backlog / old_unit, backlog % old_unit);
        let part = (part * new_unit).div_ceil(old_unit);
        let backlog = units.saturating_mul(new_unit).saturating_add(part);
        *tat = match backlog {
            0 => Tat::default(),
            _ => Tat(self.moment(now).saturating_add(backlog)),
        };
    }
}

/// The deepest a short bucket is: to add so much to a moment is never too much.
const SHORT: u64 = 1 << 62;

/// A bucket that grants something, tells time in nanoseconds, and whose numbers take one word each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Short {
    unit: NonZeroU64,
    depth: u64,
    limit: u64,
}

impl Short {
    /// Whether it is up to this cost: neither a peek, nor more than it can ever grant.
    #[inline]
    pub(crate) fn takes(&self, cost: u64) -> bool {
        cost.wrapping_sub(1) < self.limit
    }

    /// Verdict and standing in one, for a cost that it [takes](Self::takes), and the next state, which
    /// is the same if it does not pass.
    #[inline]
    pub(crate) fn judge(&self, tat: u64, now: Timestamp, cost: u64) -> (Judged, u64) {
        match self.pass(tat, now, cost) {
            Ok(next) => (self.allowed(next, now), next),
            Err(wait) => (self.denied(tat, now, wait), tat),
        }
    }

    /// The next state, for a cost that it [takes](Self::takes), or how long to wait.
    #[inline(always)]
    pub(crate) fn pass(&self, tat: u64, now: Timestamp, cost: u64) -> Result<u64, u64> {
        let wanted = cost.wrapping_mul(self.unit.get()); // At most the depth.
        let room = self.depth.wrapping_sub(wanted);
        let backlog = tat.saturating_sub(now.as_nanos());
        if backlog <= room { Ok(now.as_nanos() + (backlog + wanted)) } else { Err(backlog - room) }
    }

    /// It passed, and this is the next state.
    #[inline(always)]
    pub(crate) fn allowed(&self, next: u64, now: Timestamp) -> Judged {
        Judged { verdict: Verdict::ALLOW, standing: self.standing(next, now) }
    }

    /// It did not, and has to wait so long.
    #[inline(always)]
    pub(crate) fn denied(&self, tat: u64, now: Timestamp, wait: u64) -> Judged {
        Judged { verdict: Verdict::Deny(Retry::After(wait)), standing: self.standing(tat, now) }
    }

    /// How a key stands.
    #[inline]
    pub(crate) fn standing(&self, tat: u64, now: Timestamp) -> Standing {
        let backlog = tat.saturating_sub(now.as_nanos());
        Standing {
            limit: self.limit,
            remaining: self.depth.saturating_sub(backlog) / self.unit,
            reset_after_nanos: backlog,
            available_after_nanos: Some(backlog.saturating_sub(self.depth - self.unit.get())),
        }
    }
}

impl Enforce for TokenBucket {
    type State = Tat;

    fn verdict(&self, tat: &Tat, now: u64, cost: u64) -> Verdict {
        let wanted = self.backlog(tat, now).saturating_add(self.cost(cost));
        match wanted.saturating_sub(self.depth) {
            0 => Verdict::ALLOW,
            missing => Verdict::Deny(Retry::After(self.nanos(missing))),
        }
    }

    fn charge(&self, tat: &mut Tat, now: u64, units: u64) {
        // Never from before now: a rest fills the bucket, it does not overfill it.
        let start = tat.0.max(self.moment(now));
        tat.0 = start.saturating_add(self.cost(units));
    }

    fn credit(&self, tat: &mut Tat, now: u64, _charged_at: u64, units: u64) {
        self.give_back(tat, now, self.worth(units));
    }

    fn undo(&self, tat: &mut Tat, now: u64, charged_at: u64, units: u64) {
        // What has drained since would have drained of what others took meanwhile.
        let drained = self.moment(now.saturating_sub(charged_at));
        match self.worth(units).saturating_sub(drained) {
            0 => {}
            left => self.give_back(tat, now, left),
        }
    }

    fn remaining(&self, tat: &Tat, now: u64) -> u64 {
        let room = self.depth.saturating_sub(self.backlog(tat, now));
        self.units(room)
    }

    fn reset_after(&self, tat: &Tat, now: u64) -> u64 {
        self.drained_to(tat, now, 0)
    }

    fn is_idle(&self, tat: &Tat, now: u64) -> bool {
        self.backlog(tat, now) == 0
    }
}

impl Packed for Tat {
    #[inline]
    fn pack(&self, words: &mut [u64]) -> bool {
        let ([high, low], fits) = (halves(self.0), self.0 >> 64 == 0);
        match words {
            [word] => {
                *word = low;
                fits
            }
            [first, second, ..] => {
                [*first, *second] = [high, low];
                true
            }
            [] => false,
        }
    }

    #[inline]
    fn unpack(words: &[u64]) -> Self {
        match *words {
            [low] => Self(low.into()),
            [high, low, ..] => Self(u128::from(high) << 64 | u128::from(low)),
            [] => Self::default(),
        }
    }
}

/// The two words of a number.
#[expect(clippy::cast_possible_truncation, reason = "the rest is in the other half")]
fn halves(number: u128) -> [u64; 2] {
    [(number >> 64) as u64, number as u64]
}

/// Whole times, at most `u64::MAX`. Long division is a slow call, and seldom needed.
#[inline]
fn divide(number: u128, by: u64) -> u64 {
    match u64::try_from(number) {
        Ok(number) => number / by,
        Err(_) => u64::try_from(number / u128::from(by)).unwrap_or(u64::MAX),
    }
}

/// A hundred times a number, by a percentage: what is whole, and a hundred times what is left over.
fn hundredfold(number: u128, percent: u8) -> (u128, u128) {
    let percent = u128::from(percent);
    ((number / percent).saturating_mul(100), number % percent * 100)
}

fn grains(one: u64, other: u64) -> u128 {
    u128::from(one) * u128::from(other)
}

fn gcd(mut one: u64, mut other: u64) -> u64 {
    while one != 0 {
        (one, other) = (other % one, one);
    }
    other
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_told_in_grains_that_make_a_unit_whole() {
        let nice = TokenBucket::new(100, Window::MINUTE, 100);
        assert_eq!((nice.per_nano, nice.per_unit), (1, 600_000_000));
        let awkward = TokenBucket::new(7, Window::SECOND, 7);
        assert_eq!((awkward.per_nano, awkward.per_unit), (7, 1_000_000_000));
        let never = TokenBucket::new(0, Window::SECOND, 0);
        assert_eq!((never.per_nano, never.per_unit), (0, 1_000_000_000));
    }
}
