//! What those who serve a request need besides a decision.

use std::mem;
use std::num::NonZeroU64;
use std::sync::Arc;

use dashpot::Check;

use super::{Pending, Plan, Ruling};
use crate::Adaptive;
use crate::capacity::Gates;
use crate::rule::Settle;

impl<'r> Plan<'r> {
    /// Takes the gates that the request has to pass besides: for who serves it, and [counts](Gates::count) then what came of it.
    pub fn take_gates(&mut self) -> Gates<'r> {
        self.is_counted_elsewhere = true;
        mem::take(&mut self.gates)
    }

    /// What the rules adapt by that it is asked about: to be told how the request fared.
    pub fn adaptive(&self) -> impl Iterator<Item = &'r Arc<Adaptive>> {
        self.asks.iter().filter_map(|ask| ask.rule.adaptive())
    }

    /// What was taken and is otherwise never settled: for who gives it back, because the request was not served after all. `instances` is
    /// the store's.
    pub fn taken(&self, ruling: &Ruling<'r>, instances: NonZeroU64) -> Vec<Pending<'r>> {
        let mut taken = Vec::new();
        let local = ruling.is_failed;
        let enforced = { ruling.decision.iter() }
            .flat_map(|decision| self.decided(local).map(move |(ask, _)| (ask, decision)));
        let rehearsed = { ruling.rehearsed.iter() }
            .filter_map(|(place, decision)| Some((self.asks.get(*place)?, decision)));
        let all = enforced.chain(rehearsed);
        for (ask, decision) in all.filter(|(ask, _)| ask.rule.settle == Settle::Never) {
            let policies = if local { ask.policies.share(instances) } else { &**ask.policies };
            for policy in policies {
                let check = Check::new(policy, self.key(ask)).cost(ask.cost());
                // None if it was denied.
                let reservation = check.reservation(decision);
                taken.extend(reservation.map(|reservation| Pending {
                    reservation,
                    rule: ask.rule,
                    local,
                }));
            }
        }
        taken
    }

    /// Counts what came of it for its priority.
    pub(super) fn count(&self, ruling: &Ruling<'r>) {
        let only_looks = !self.asks.is_empty() && self.asks.iter().all(|ask| ask.times == 0);
        if !self.is_counted_elsewhere && !only_looks {
            self.gates.count(ruling.refusal.is_none());
        }
    }
}
