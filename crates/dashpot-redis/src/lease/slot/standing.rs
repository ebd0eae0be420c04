//! How a key stands, and how who is refused is told.

use std::time::Duration;

use dashpot::{Cost, Outcome, Policy, PolicyStatus, Retry, Standing};

use super::{Nanos, Refused, Slot, Terms, Ways, nanos};
use crate::question::Question;

impl Slot {
    /// Whether Redis would not give so many, by what it said a moment ago.
    pub(crate) fn refuses(&self, now: Nanos, units: u64, ways: &Ways) -> bool {
        self.would_not_get(&self.terms(), now, units, ways)
    }

    pub(super) fn would_not_get(&self, terms: &Terms, now: Nanos, units: u64, ways: &Ways) -> bool {
        let age = now.saturating_sub(terms.heard);
        if terms.heard == 0 || u128::from(age) >= ways.denial_memory.as_nanos() {
            return false;
        }
        let missing = units.saturating_sub(self.at_hand(terms, now));
        let (at, refused) = (terms.now(now), self.refused(terms));
        // There was hardly anything left, and what has come back since is let gather for a while.
        let was_left = refused.map_or(0, |refused| refused.remaining);
        let floor = if units == 1 { terms.floor } else { 0 };
        if now < terms.refuses_until && was_left < missing.max(floor) {
            return true;
        }
        if let (1, Some(refused)) = (missing, refused) {
            return at.as_nanos() < refused.room_at;
        }
        missing > 0
            && !terms.recalled.state(&self.question(missing), at).allows(at, Cost::new(missing))
    }

    /// How a unit is refused that is not at hand: others have it, or are to.
    fn refused(&self, terms: &Terms) -> Option<Refused> {
        *terms.refused.get_or_init(|| {
            let status = terms.recalled.answer(&self.question(1), &self.policy, terms.at, false);
            let after = |wait: Duration| terms.at.after(wait).as_nanos();
            let room_at = match status.outcome() {
                Outcome::Allow => terms.at.as_nanos(),
                Outcome::Deny => after(status.retry_after()?),
            };
            let (new_at, remaining) = (after(status.reset_after()), status.remaining());
            Some(Refused { room_at, new_at, remaining })
        })
    }

    pub(super) fn at_hand(&self, terms: &Terms, now: Nanos) -> u64 {
        if now < terms.ends { self.purse.content().left } else { 0 }
    }

    /// How it stands, of which so many units are left at hand.
    pub(crate) fn standing(&self, terms: &Terms, now: Nanos, left: u64) -> Standing {
        let at = terms.now(now);
        let mut standing = terms.recalled.glance(&self.policy, at, left);
        if standing.remaining == 0
            && let Some(refused) = self.refused(terms)
        {
            let wait = refused.room_at.saturating_sub(at.as_nanos());
            standing.available_after_nanos = Some(wait);
        }
        standing
    }

    /// How a check that passes is answered.
    pub(crate) fn passing<'p>(&self, policy: &'p Policy, now: Nanos) -> PolicyStatus<'p> {
        let (terms, content) = (self.terms(), self.purse.content());
        PolicyStatus::allow(policy, self.standing(&terms, now, content.left), 0)
    }

    /// How a check that is refused is answered.
    pub(crate) fn refusal<'p>(
        &self,
        policy: &'p Policy,
        terms: &Terms,
        now: Nanos,
        units: u64,
    ) -> PolicyStatus<'p> {
        let left = self.at_hand(terms, now);
        let missing = units.saturating_sub(left).max(1);
        let (at, asks_in) = (terms.now(now), terms.refuses_until.saturating_sub(now));
        if let (0, 1, Some(refused)) = (left, units, self.refused(terms)) {
            // Nearly all refusals are like this one.
            let wait = |until: u64| until.saturating_sub(at.as_nanos());
            let standing = Standing {
                limit: policy.limit(),
                remaining: 0,
                reset_after_nanos: wait(refused.new_at),
                available_after_nanos: Some(wait(refused.room_at).max(asks_in)),
            };
            let retry = Retry::After(wait(refused.room_at).max(asks_in));
            return PolicyStatus::deny(policy, standing, retry);
        }
        let question = Question { policy, ..self.question(missing) };
        let status = terms.recalled.answer(&question, policy, at, false);
        let mut standing = status.standing();
        // Less than was asked for, though some may have come back by now.
        standing.remaining = standing.remaining.saturating_add(left).min(units.saturating_sub(1));
        if left > 0 {
            standing.available_after_nanos = Some(0);
        }
        if units > policy.limit() {
            return PolicyStatus::deny(policy, standing, Retry::Never);
        }
        PolicyStatus::deny(
            policy,
            standing,
            match status.retry_after() {
                Some(wait) => Retry::After(nanos(wait).max(asks_in)),
                None => Retry::After(asks_in),
            },
        )
    }
}
