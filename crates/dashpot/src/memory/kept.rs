//! What is remembered of one key: the algorithm's state, whether it is blocked, and under which
//! definition.

use std::sync::Arc;

use crate::algorithm::{State, Verdict};
use crate::policy::Definition;
use crate::{Policy, Retry, Standing, Timestamp};

#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) definition: Arc<Definition>,
    pub(crate) state: State,
    /// A moment in the past if it is not blocked.
    pub(crate) blocked_until: Timestamp,
}

impl Kept {
    pub(crate) fn fresh(definition: Arc<Definition>) -> Self {
        let state = definition.engine.fresh();
        Self { definition, state, blocked_until: Timestamp::EPOCH }
    }

    /// Writes it as a few words, to be read under its definition; false if it does not fit.
    pub(crate) fn pack(&self, words: &mut [u64]) -> bool {
        self.blocked_until == Timestamp::EPOCH && self.definition.engine.pack(&self.state, words)
    }

    /// Reads what was written.
    pub(crate) fn unpack(definition: Arc<Definition>, words: &[u64]) -> Self {
        let state = definition.engine.unpack(words);
        Self { definition, state, blocked_until: Timestamp::EPOCH }
    }

    /// Nanoseconds left of a block.
    pub(crate) fn blocked_for(&self, now: Timestamp) -> u64 {
        self.blocked_until.as_nanos().saturating_sub(now.as_nanos())
    }

    /// Keeps the state under another definition from now on; the units used stay used, or under any window
    /// the time it takes until none are. Says whether that changed anything.
    pub(crate) fn redefine(&mut self, definition: &Arc<Definition>, now: Timestamp) -> bool {
        if self.definition.same(definition) {
            return false;
        }
        definition.engine.adopt(&self.definition.engine, &mut self.state, now);
        self.definition = definition.clone();
        true
    }

    /// Keeps the state under another definition from now on, unless it would drain faster under that: for keys of
    /// several definitions that are counted together, none of which may get more for the others being there.
    pub(crate) fn slow_down_to(&mut self, definition: &Arc<Definition>, now: Timestamp) {
        let rates = self.definition.engine.rate().zip(definition.engine.rate());
        // Under any window it is time that stays the same, and that is everybody's.
        let is_faster = !definition.written.any_window
            && rates.is_some_and(|(own, other)| other.slowness(own).is_gt());
        if !is_faster {
            self.redefine(definition, now);
        }
    }

    /// Takes units as another definition would, of those that are counted together.
    pub(crate) fn charge_under(
        &mut self,
        definition: &Arc<Definition>,
        now: Timestamp,
        units: u64,
    ) {
        self.slow_down_to(definition, now);
        if units == 0 || self.definition.same(definition) {
            return self.charge(now, units);
        }
        let mut charged = self.under(definition, now);
        charged.charge(now, units);
        charged.redefine(&self.definition, now);
        *self = charged;
    }

    /// Keeps the state as it must be for units that were taken under a policy to be settled. Says whether time has drained it at
    /// one rate since then, so far as that can be told.
    pub(crate) fn settle_under(&mut self, policy: &Policy, now: Timestamp) -> bool {
        let (kept, taken) = (&self.definition, policy.definition());
        let is_one_rate = policy.is_any_window() || kept.engine.rate() == taken.engine.rate();
        // The definition under which it was reserved may be an old one; the state goes on under
        // its own, under which units are the same. Under any window they are not, nor under a part of the
        // policy: there it is the time they took that is given back.
        if policy.is_any_window() || kept.is_other_part(taken) {
            self.redefine(taken, now);
        } else if !kept.same(taken) {
            // At what price they were taken nobody knows any more: at least at that of the whole.
            let whole = Policy::whole_definition(kept);
            self.redefine(&whole, now);
        }
        is_one_rate
    }

    pub(crate) fn verdict(&self, now: Timestamp, cost: u64) -> Verdict {
        let verdict = self.definition.engine.verdict(&self.state, now, cost);
        match (self.blocked_for(now), cost) {
            (0, _) | (_, 0) => verdict,
            (blocked, _) => Verdict::Deny(match verdict {
                Verdict::Allow { .. } => Retry::After(blocked),
                Verdict::Deny(retry) => retry.longest(Retry::After(blocked)),
            }),
        }
    }

    /// The same as another definition would have it.
    pub(crate) fn under(&self, definition: &Arc<Definition>, now: Timestamp) -> Self {
        let mut copy = self.clone();
        copy.redefine(definition, now);
        copy
    }

    /// What its definition says, and those that are to agree with it.
    pub(crate) fn verdict_of_all(
        &self,
        others: &[Arc<Definition>],
        now: Timestamp,
        cost: u64,
    ) -> Verdict {
        let others = others.iter().map(|other| self.under(other, now));
        others.fold(self.verdict(now, cost), |verdict, other| verdict.and(other.verdict(now, cost)))
    }

    /// How it stands under its definition, and at best under the others.
    pub(crate) fn standing_of_all(&self, others: &[Arc<Definition>], now: Timestamp) -> Standing {
        let others = others.iter().map(|other| self.under(other, now));
        others.map(|other| other.standing(now)).fold(self.standing(now), |one, other| Standing {
            limit: one.limit.min(other.limit),
            remaining: one.remaining.min(other.remaining),
            reset_after_nanos: one.reset_after_nanos.max(other.reset_after_nanos),
            available_after_nanos: one
                .available_after_nanos
                .zip(other.available_after_nanos)
                .map(|(one, other)| one.max(other)),
        })
    }

    /// Takes units, whether they fit or not.
    pub(crate) fn charge(&mut self, now: Timestamp, units: u64) {
        self.definition.engine.charge(&mut self.state, now, units);
    }

    pub(crate) fn standing(&self, now: Timestamp) -> Standing {
        let standing = self.definition.engine.standing(&self.state, now);
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
    pub(crate) fn is_idle(&self, now: Timestamp) -> bool {
        self.blocked_for(now) == 0 && self.definition.engine.is_idle(&self.state, now)
    }
}
