//! What is remembered of one key: the algorithm's state, and whether it is blocked.

use crate::algorithm::{Engine, State, Verdict};
use crate::{Retry, Standing, Timestamp};

#[derive(Debug)]
pub(super) struct Record {
    pub(super) state: State,
    /// A moment in the past if it is not blocked.
    pub(super) blocked_until: Timestamp,
}

impl Record {
    pub(super) fn fresh(engine: &Engine) -> Self {
        Self { state: engine.fresh(), blocked_until: Timestamp::EPOCH }
    }

    /// Nanoseconds left of a block.
    fn blocked_for(&self, now: Timestamp) -> u64 {
        self.blocked_until.as_nanos().saturating_sub(now.as_nanos())
    }

    pub(super) fn verdict(&self, engine: &Engine, now: Timestamp, cost: u64) -> Verdict {
        let verdict = engine.verdict(&self.state, now, cost);
        match (self.blocked_for(now), cost) {
            (0, _) | (_, 0) => verdict,
            (blocked, _) => Verdict::Deny(match verdict {
                Verdict::Allow { .. } => Retry::After(blocked),
                Verdict::Deny(retry) => retry.longest(Retry::After(blocked)),
            }),
        }
    }

    pub(super) fn standing(&self, engine: &Engine, now: Timestamp) -> Standing {
        let standing = engine.standing(&self.state, now);
        match self.blocked_for(now) {
            0 => standing,
            blocked => Standing {
                limit: standing.limit,
                remaining: 0,
                reset_after_nanos: standing.reset_after_nanos.max(blocked),
                available_after_nanos: standing
                    .available_after_nanos
                    .map(|available| available.max(blocked)),
            },
        }
    }

    /// Whether it can be forgotten without anybody noticing.
    pub(super) fn is_idle(&self, engine: &Engine, now: Timestamp) -> bool {
        self.blocked_for(now) == 0 && engine.is_idle(&self.state, now)
    }
}
