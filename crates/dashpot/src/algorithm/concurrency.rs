//! Concurrency: what is in flight. No clock, so no wait to tell.

use super::{Enforce, Verdict};
use crate::Retry;

#[derive(Debug)]
pub(super) struct Concurrency {
    pub(super) limit: u64,
}

/// Permits taken and not yet given back.
#[derive(Debug, Default)]
pub(crate) struct InFlight(u64);

impl Enforce for Concurrency {
    type State = InFlight;

    fn verdict(&self, state: &InFlight, _now: u64, cost: u64) -> Verdict {
        if cost <= self.limit.saturating_sub(state.0) {
            Verdict::ALLOW
        } else {
            Verdict::Deny(Retry::Unknown)
        }
    }

    fn charge(&self, state: &mut InFlight, _now: u64, units: u64) {
        state.0 = state.0.saturating_add(units);
    }

    fn credit(&self, state: &mut InFlight, _now: u64, _charged_at: u64, units: u64) {
        state.0 = state.0.saturating_sub(units);
    }

    fn remaining(&self, state: &InFlight, _now: u64) -> u64 {
        self.limit.saturating_sub(state.0)
    }

    fn reset_after(&self, _state: &InFlight, _now: u64) -> u64 {
        0
    }

    fn is_idle(&self, state: &InFlight, _now: u64) -> bool {
        state.0 == 0
    }
}
