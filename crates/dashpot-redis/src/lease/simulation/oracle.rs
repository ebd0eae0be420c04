//! What a policy grants at most, told slowly and from its definition alone.

use std::collections::BTreeMap;

use dashpot::{Algorithm, Policy};

/// Hears of every admission in order, in nanoseconds since the epoch, and says whether it was too much.
pub(super) enum Oracle {
    /// In any interval no more than the capacity and what the rate brings.
    Bucket { full_at: u128, unit: u128, per_nano: u128, capacity: u64 },
    /// In any window no more than the limit.
    Fixed { length: u64, limit: u64, counts: BTreeMap<u64, u64> },
    /// Of the window and what weighs of the one before no more than the limit.
    Sliding { length: u64, limit: u64, counts: BTreeMap<u64, u64> },
}

impl Oracle {
    pub(super) fn new(policy: &Policy) -> Self {
        let window = policy.quota().window().unwrap().length();
        let length = u64::try_from(window.as_nanos()).unwrap();
        let (count, limit) = (policy.quota().count().unwrap(), policy.limit());
        match policy.algorithm() {
            Algorithm::FixedWindow => Self::Fixed { length, limit, counts: BTreeMap::new() },
            Algorithm::SlidingWindow => Self::Sliding { length, limit, counts: BTreeMap::new() },
            _ => Self::Bucket {
                full_at: 0,
                unit: length.into(),
                per_nano: count.into(),
                capacity: limit,
            },
        }
    }

    /// Counts an admission. Says by how much it is too much, if it is.
    pub(super) fn admit(&mut self, now: u64, cost: u64) -> Option<String> {
        match self {
            Self::Bucket { full_at, unit, per_nano, capacity } => {
                let at = u128::from(now) * *per_nano;
                *full_at = at.max(*full_at) + u128::from(cost) * *unit;
                let room = u128::from(*capacity) * *unit;
                let over = (*full_at - at).saturating_sub(room);
                (over > 0).then(|| format!("{} units too many", over as f64 / *unit as f64))
            }
            Self::Fixed { length, limit, counts } => {
                let count = counts.entry(now / *length).or_default();
                *count += cost;
                (*count > *limit).then(|| format!("{count} of {limit}"))
            }
            Self::Sliding { length, limit, counts } => {
                let window = now / *length;
                *counts.entry(window).or_default() += cost;
                let of = |window: u64| u128::from(counts.get(&window).copied().unwrap_or(0));
                let left = u128::from(*length - now % *length);
                let weighed = of(window.wrapping_sub(1)) * left + of(window) * u128::from(*length);
                let most = u128::from(*limit) * u128::from(*length);
                (weighed > most).then(|| format!("{} of {limit}", weighed as f64 / *length as f64))
            }
        }
    }

    /// What was counted in the window of this moment.
    pub(super) fn counted(&self, now: u64) -> u64 {
        match self {
            Self::Bucket { .. } => 0,
            Self::Fixed { length, counts, .. } | Self::Sliding { length, counts, .. } => {
                counts.get(&(now / *length)).copied().unwrap_or(0)
            }
        }
    }
}
