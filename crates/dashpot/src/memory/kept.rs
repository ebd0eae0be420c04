//! What is remembered of one key: the algorithm's state, whether it is blocked, and under which
//! definition.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::{State, Verdict};
use crate::policy::Definition;
use crate::{Policy, Rate, Retry, Standing, Timestamp};

/// How often a wait is made longer, because units of one definition do not come out even as those of another.
const ROUNDED: u32 = 4;

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

    /// The rates of another definition and of its own, if it drains at another than that one would: as it does where keys are
    /// counted together.
    fn rates(&self, definition: &Definition) -> Option<(Rate, Rate)> {
        // Under any window it is time that stays the same, and that is everybody's.
        let rates = definition.engine.rate().zip(self.definition.engine.rate());
        rates.filter(|(other, own)| !definition.written.any_window && other != own)
    }

    /// Drains no faster than another definition from now on, since nobody may get more for others being there; unless that
    /// grants nothing, ever, which others would wait for in vain. Where there is nothing to drain, nobody has to be waited for.
    fn slow_down_to(&mut self, definition: &Arc<Definition>, now: Timestamp) {
        let grants = definition.engine.rate().is_none_or(|rate| rate.units > 0);
        let rates = self.rates(definition);
        let is_slower = rates.is_some_and(|(other, own)| other.slowness(own).is_gt());
        if grants && (!is_slower || self.definition.engine.is_idle(&self.state, now)) {
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
        if units == 0 {
            return; // Who only looks slows nobody down.
        }
        self.slow_down_to(definition, now);
        if self.definition.same(definition) {
            return self.charge(now, units);
        }
        let mut charged = self.under(definition, now);
        charged.charge(now, units);
        charged.redefine(&self.definition, now);
        *self = charged;
    }

    /// Takes what another has used, too.
    pub(crate) fn join(&mut self, other: &Self, now: Timestamp) {
        self.slow_down_to(&other.definition, now);
        // By the same definition: a unit may take longer under one than under the other.
        let used = other.state_under(&self.definition, now);
        self.definition.engine.join(&mut self.state, &used, now);
        self.blocked_until = self.blocked_until.max(other.blocked_until);
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

    /// The same in little room; stricter, if that is not all there is to it.
    pub(crate) fn coarse(&self) -> Self {
        let (definition, blocked_until) = (self.definition.clone(), self.blocked_until);
        Self { definition, state: self.state.coarse(), blocked_until }
    }

    pub(crate) fn verdict(&self, now: Timestamp, cost: u64) -> Verdict {
        self.unless_blocked(self.definition.engine.verdict(&self.state, now, cost), now, cost)
    }

    fn unless_blocked(&self, verdict: Verdict, now: Timestamp, cost: u64) -> Verdict {
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

    /// The state as another definition would have it.
    fn state_under(&self, definition: &Definition, now: Timestamp) -> Cow<'_, State> {
        let mut state = Cow::Borrowed(&self.state);
        // Those of buckets are short; all others are alike.
        if definition.engine.rate().is_some() && !self.definition.same(definition) {
            definition.engine.adopt(&self.definition.engine, state.to_mut(), now);
        }
        state
    }

    /// What another definition says of it, which drains as its own says.
    pub(crate) fn verdict_under(
        &self,
        definition: &Definition,
        now: Timestamp,
        cost: u64,
    ) -> Verdict {
        self.unless_blocked(self.drained_verdict(definition, now, cost), now, cost)
    }

    fn drained_verdict(&self, definition: &Definition, now: Timestamp, cost: u64) -> Verdict {
        let verdict = |at| definition.engine.verdict(&self.state_under(definition, at), at, cost);
        let Some((other, own)) = self.rates(definition) else { return verdict(now) };
        // Where units come out even, it passes after the first wait; else it may lack a little.
        let mut waited = 0;
        for _ in 0..ROUNDED {
            match verdict(now.after(Duration::from_nanos(waited))) {
                Verdict::Deny(Retry::After(wait)) => {
                    let Some(wait) = other.stretch(wait, own) else {
                        return Verdict::Deny(Retry::Unknown);
                    };
                    waited = waited.saturating_add(wait);
                }
                verdict if waited == 0 => return verdict,
                _ => break,
            }
        }
        Verdict::Deny(Retry::After(waited))
    }

    /// How it stands under another definition.
    fn standing_under(&self, definition: &Definition, now: Timestamp) -> Standing {
        let mut standing = definition.engine.standing(&self.state_under(definition, now), now);
        if self.rates(definition).is_some() {
            standing.available_after_nanos = match self.drained_verdict(definition, now, 1) {
                Verdict::Allow { .. } => Some(0),
                Verdict::Deny(Retry::After(wait)) => Some(wait),
                Verdict::Deny(_) => None,
            };
            let own = self.definition.engine.standing(&self.state, now);
            standing.reset_after_nanos = own.reset_after_nanos;
        }
        self.or_blocked(standing, now)
    }

    /// What a definition says of it, and those that are to agree with that.
    pub(crate) fn verdict_of_all(
        &self,
        own: &Definition,
        others: &[Arc<Definition>],
        now: Timestamp,
        cost: u64,
    ) -> Verdict {
        let others = others.iter().map(|other| self.verdict_under(other, now, cost));
        others.fold(self.verdict_under(own, now, cost), Verdict::and)
    }

    /// How it stands under a definition, and at best under the others.
    pub(crate) fn standing_of_all<'d>(
        &self,
        own: &Definition,
        others: impl IntoIterator<Item = &'d Arc<Definition>>,
        now: Timestamp,
    ) -> Standing {
        let others = others.into_iter().map(|other| self.standing_under(other, now));
        others.fold(self.standing_under(own, now), |one, other| Standing {
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
        self.or_blocked(self.definition.engine.standing(&self.state, now), now)
    }

    fn or_blocked(&self, standing: Standing, now: Timestamp) -> Standing {
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
