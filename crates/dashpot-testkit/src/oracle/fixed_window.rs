//! Fixed windows: a count for every window there ever was.

use std::collections::BTreeMap;

use dashpot::{Policy, Window};

use super::calendar::window_start;
use super::meter::{Meter, Time};

#[derive(Clone, Debug)]
pub(super) struct FixedWindow {
    window: Window,
    /// What was counted, by the start of its window.
    counts: BTreeMap<Time, u128>,
}

impl FixedWindow {
    pub(super) fn new(policy: &Policy) -> Self {
        let window = policy.quota().window().expect("a rate has a window");
        Self { window, counts: BTreeMap::new() }
    }

    /// The window that counts at this moment. It never goes back, whatever the clock does: an
    /// older moment counts into the newest window charged.
    fn current(&self, at: Time) -> Time {
        let start = window_start(self.window, at);
        let newest = self.counts.last_key_value().map(|(&newest, _)| newest);
        newest.map_or(start, |newest| newest.max(start))
    }

    fn count(&self, at: Time) -> u128 {
        self.counts.get(&self.current(at)).copied().unwrap_or(0)
    }
}

impl Meter for FixedWindow {
    fn passes(&self, policy: &Policy, at: Time, cost: u64) -> bool {
        self.count(at) + u128::from(cost) <= u128::from(policy.limit())
    }

    fn is_fresh(&self, at: Time) -> bool {
        self.count(at) == 0
    }

    fn charge(&mut self, at: Time, units: u64) {
        let count = self.counts.entry(self.current(at)).or_default();
        // A count stops at the largest there is; only debt gets there.
        *count = (*count + u128::from(units)).min(u64::MAX.into());
    }

    fn give_back(&mut self, _at: Time, charged_at: Time, units: u64) {
        let charged = window_start(self.window, charged_at);
        if let Some(count) = self.counts.get_mut(&charged) {
            *count = count.saturating_sub(units.into());
        }
    }
}
