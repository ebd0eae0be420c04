//! What a policy grants at most, told slowly and from its definition alone.

use std::collections::BTreeMap;

use dashpot::{Algorithm, Policy};

/// Hears of every admission in order, in nanoseconds since the epoch, and says whether it was too much.
pub(super) struct Oracle {
    bound: Bound,
    /// Units at once.
    limit: u64,
    /// What may be granted besides.
    pub(super) spare: u64,
}

enum Bound {
    /// In any interval no more than the capacity and what the rate brings.
    Bucket { full_at: u128, unit: u128, per_nano: u128 },
    /// In any window no more than the limit.
    Fixed { length: u64, counts: BTreeMap<u64, u64> },
    /// Of the window and what weighs of the one before no more than the limit.
    Sliding { length: u64, counts: BTreeMap<u64, u64> },
}

impl Oracle {
    pub(super) fn new(policy: &Policy) -> Self {
        let window = policy.quota().window().unwrap().length();
        let length = u64::try_from(window.as_nanos()).unwrap();
        let (count, counts) = (policy.quota().count().unwrap(), BTreeMap::new());
        let bound = match policy.algorithm() {
            Algorithm::FixedWindow => Bound::Fixed { length, counts },
            Algorithm::SlidingWindow => Bound::Sliding { length, counts },
            _ => Bound::Bucket { full_at: 0, unit: length.into(), per_nano: count.into() },
        };
        Self { bound, limit: policy.limit(), spare: 0 }
    }

    /// What was admitted then was not needed after all.
    pub(super) fn take_back(&mut self, charged_at: u64, now: u64, cost: u64) {
        match &mut self.bound {
            Bound::Bucket { full_at, unit, per_nano } => {
                let least = u128::from(now) * *per_nano;
                if *full_at > least {
                    *full_at = least.max(full_at.saturating_sub(u128::from(cost) * *unit));
                }
            }
            Bound::Fixed { length, counts } | Bound::Sliding { length, counts } => {
                if let Some(count) = counts.get_mut(&(charged_at / *length)) {
                    *count -= cost;
                }
            }
        }
    }

    /// Counts an admission. Says how much was granted, if that is too much.
    pub(super) fn admit(&mut self, now: u64, cost: u64) -> Option<String> {
        // In parts of a unit, of which there are so many to one.
        let (used, parts) = match &mut self.bound {
            Bound::Bucket { full_at, unit, per_nano } => {
                let at = u128::from(now) * *per_nano;
                *full_at = at.max(*full_at) + u128::from(cost) * *unit;
                (*full_at - at, *unit)
            }
            Bound::Fixed { length, counts } => {
                let count = counts.entry(now / *length).or_default();
                *count += cost;
                (u128::from(*count), 1)
            }
            Bound::Sliding { length, counts } => {
                let window = now / *length;
                *counts.entry(window).or_default() += cost;
                let of = |window: u64| u128::from(counts.get(&window).copied().unwrap_or(0));
                let (whole, left) = (u128::from(*length), u128::from(*length - now % *length));
                (of(window.wrapping_sub(1)) * left + of(window) * whole, whole)
            }
        };
        let most = self.limit + self.spare;
        (used > u128::from(most) * parts)
            .then(|| format!("{} of {most}", used as f64 / parts as f64))
    }
}
