//! Concurrency: what is in flight. No clock, so no wait to tell.

use super::{Enforce, Packed, Verdict};
use crate::Retry;

#[derive(Debug)]
pub(super) struct Concurrency {
    pub(super) limit: u64,
}

/// Permits taken and not yet given back.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    permits: u64,
    /// When the last of them came back, or they were all forgotten. One taken before that and given
    /// back later must not stand for another that was taken since.
    since: u64,
}

impl InFlight {
    pub(super) fn new(permits: u64) -> Self {
        Self { permits, since: 0 }
    }

    /// None in flight, and none taken before this moment comes back.
    pub(super) fn forgotten_at(now: u64) -> Self {
        Self { permits: 0, since: now }
    }
}

impl Enforce for Concurrency {
    type State = InFlight;

    fn verdict(&self, state: &InFlight, _now: u64, cost: u64) -> Verdict {
        if cost <= self.limit.saturating_sub(state.permits) {
            Verdict::ALLOW
        } else {
            Verdict::Deny(Retry::Unknown)
        }
    }

    fn charge(&self, state: &mut InFlight, now: u64, units: u64) {
        // If the clock went back, what is taken now must be able to come back.
        state.since = state.since.min(now);
        state.permits = state.permits.saturating_add(units);
    }

    fn credit(&self, state: &mut InFlight, now: u64, charged_at: u64, units: u64) {
        if charged_at >= state.since {
            state.permits = state.permits.saturating_sub(units);
            if state.permits == 0 {
                state.since = now;
            }
        }
    }

    fn remaining(&self, state: &InFlight, _now: u64) -> u64 {
        self.limit.saturating_sub(state.permits)
    }

    fn reset_after(&self, _state: &InFlight, _now: u64) -> u64 {
        0
    }

    fn is_idle(&self, state: &InFlight, now: u64) -> bool {
        state.permits == 0 && state.since <= now
    }
}

impl Packed for InFlight {
    fn pack(&self, words: &mut [u64]) -> bool {
        match words {
            [since, permits, ..] => {
                [*since, *permits] = [self.since, self.permits];
                true
            }
            _ => false,
        }
    }

    fn unpack(words: &[u64]) -> Self {
        match *words {
            [since, permits, ..] => Self { permits, since },
            _ => Self::default(),
        }
    }
}
