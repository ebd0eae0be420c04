//! What is asked of a store, and what is made of its answer.

use std::num::NonZeroU64;
use std::ptr;

use dashpot::{
    Check, Cost, Decision, MemoryStore, Policy, PolicyStatus, Reservation, Store, StoreError,
};
use smallvec::SmallVec;

use super::{Ask, Pending, Plan, Refusal, Ruling};
use crate::rule::{OnStoreError, Rule, Settle};
use crate::share::decide_by_share;

impl<'r> Plan<'r> {
    /// Asks: all that are enforced pass together, or none is charged; then those that only count.
    /// `local` stands in for a store that cannot answer, where a rule says so.
    pub async fn decide<S: Store>(&self, store: &S, local: &MemoryStore) -> Ruling<'r> {
        let mut ruling = self.enforce(store, local).await;
        let mut pending = Vec::new();
        self.rehearse(store, &mut ruling, |one| pending.push(one)).await;
        ruling.pending.append(&mut pending);
        ruling
    }

    /// Asks those that are enforced: the first half of [`decide`](Self::decide), for who has to hold
    /// what was charged while the second is waited for.
    pub async fn enforce<S: Store>(&self, store: &S, local: &MemoryStore) -> Ruling<'r> {
        let mut ruling = Ruling::default();
        if !self.is_refused(&mut ruling) {
            let checks = self.gather();
            if !checks.is_empty() {
                let answer = store.decide(&checks).await;
                self.take(answer, &checks, (local, store), &mut ruling);
            }
        }
        self.count(&ruling);
        ruling
    }

    /// [`decide`](Self::decide), if that takes no waiting. `false` if it does, and then nothing was
    /// asked.
    pub fn decide_at_once<S: Store>(
        &self,
        store: &S,
        local: &MemoryStore,
        // Not returned, because it is long: to move it takes longer than to decide.
        ruling: &mut Ruling<'r>,
    ) -> bool {
        // Those that only count are asked one after another: they can take their time.
        if !self.lacking.is_empty() || self.asks.iter().any(|ask| !ask.enforced) {
            return false;
        }
        if !self.is_refused(ruling) && !self.asks.is_empty() {
            let checks = self.gather();
            let Some(answer) = store.decide_at_once(&checks) else { return false };
            self.take(answer, &checks, (local, store), ruling);
        }
        self.count(ruling);
        true
    }

    /// The refusal, if there is going to be one: nothing is charged. For who wants to know before
    /// something expensive is done to find out what else to ask. What is `taken` all the same is to be given
    /// back.
    pub async fn refuse_early<S: Store>(
        &self,
        store: &S,
        taken: impl FnMut(Reservation),
    ) -> Option<Ruling<'r>> {
        let mut ruling = Ruling::default();
        if self.is_refused(&mut ruling) {
            self.count(&ruling);
            return Some(ruling);
        }
        let checks = self.gather();
        let peeks = checks.iter().map(|check| check.cost(Cost::PEEK));
        let peeks: SmallVec<[Check<'r, '_>; 4]> = peeks.collect();
        if peeks.is_empty() {
            return None;
        }
        let known = store.decide(&peeks).await.ok()?;
        let mut both = known.statuses().iter().zip(&checks);
        if both.all(|(status, check)| status.remaining() >= check.cost.units()) {
            return None;
        }
        // Now in earnest, for what a denial is to say.
        let decision = store.decide(&checks).await.ok()?;
        if decision.is_allowed() {
            // Somebody gave something back meanwhile; so does this.
            checks.iter().filter_map(|check| check.reservation(&decision)).for_each(taken);
            return None;
        }
        ruling.decision = Some(decision);
        self.conclude(&checks, false, &mut ruling);
        self.count(&ruling);
        Some(ruling)
    }

    /// Whether it is refused whatever was counted.
    fn is_refused(&self, ruling: &mut Ruling<'r>) -> bool {
        ruling.refusal = self.refusal;
        if let Some(Refusal::Absent(rule)) = self.refusal {
            rule.tally.deny();
        }
        self.refusal.is_some()
    }

    /// Takes the store's answer on these checks, or does without.
    // Where it is called, so that a decision, which is long, is moved once and not twice.
    #[inline(always)]
    fn take<S: Store>(
        &self,
        answer: Result<Decision<'r>, StoreError>,
        checks: &[Check<'r, '_>],
        (local, store): (&MemoryStore, &S),
        ruling: &mut Ruling<'r>,
    ) {
        match answer {
            Ok(decision) => {
                ruling.decision = Some(decision);
                self.conclude(checks, false, ruling);
            }
            Err(error) => {
                tracing::debug!(%error, "the store did not answer");
                ruling.is_failed = true;
                self.go_without((local, store.instances()), ruling);
            }
        }
    }

    /// Draws the conclusions of the decision on these checks.
    fn conclude(&self, checks: &[Check<'r, '_>], local: bool, ruling: &mut Ruling<'r>) {
        let Some(decision) = &ruling.decision else { return };
        let statuses = decision.statuses();
        if decision.is_allowed() {
            for (ask, own) in self.decided(ruling.is_failed) {
                // Who only looks is not counted.
                if ask.times > 0
                    && let Some(statuses) = statuses.get(own.clone())
                {
                    ask.rule.tally.allow(statuses);
                }
                // Mostly there is nothing to remember.
                if ask.rule.settle != Settle::Never
                    && let Some(checks) = checks.get(own)
                {
                    remember(ask.rule, checks, decision, local, &mut ruling.pending);
                }
            }
            return;
        }
        let denier = decision.denier();
        for (ask, own) in self.decided(ruling.is_failed) {
            let own = statuses.get(own).unwrap_or_default();
            if own.iter().any(PolicyStatus::is_denied) {
                ask.rule.tally.deny();
            }
            // A denial is one, whatever policy the store says it is about.
            let is_mine = |denier: &PolicyStatus<'_>| own.iter().any(|one| ptr::eq(one, denier));
            if ruling.refusal.is_none() || denier.is_some_and(is_mine) {
                ruling.refusal = Some(Refusal::Limited(ask.rule));
            }
        }
    }

    /// What each rule says should be done when the store cannot answer.
    fn go_without(&self, (local, instances): (&MemoryStore, NonZeroU64), ruling: &mut Ruling<'r>) {
        let enforced = || self.asks.iter().filter(|ask| ask.enforced);
        enforced().for_each(|ask| ask.rule.tally.go_without());
        let strict = enforced().find(|ask| ask.rule.on_store_error == OnStoreError::Deny);
        if let Some(ask) = strict {
            ruling.refusal = Some(Refusal::Unavailable(ask.rule));
            return;
        }
        // Others go without, too: each may grant its share.
        let is_local = |ask: &&Ask<'r>| ask.rule.on_store_error == OnStoreError::Local;
        let mut wholes: SmallVec<[&Policy; 4]> = SmallVec::new();
        let mut checks: SmallVec<[Check<'r, '_>; 4]> = SmallVec::new();
        for ask in enforced().filter(is_local) {
            wholes.extend(ask.policies.iter());
            let key = self.key(ask);
            let shares = ask.policies.share(instances).iter();
            checks.extend(shares.map(|share| Check::new(share, key).cost(ask.cost())));
        }
        if checks.is_empty() {
            return;
        }
        ruling.decision = Some(decide_by_share(local, &checks, wholes));
        self.conclude(&checks, true, ruling);
    }

    /// Asks the rules that only count: the second half of [`decide`](Self::decide). They are charged
    /// if everything enforced passed and they do; what of that is to be settled is handed over as it is
    /// taken, so that it is known of if nobody waits for the rest.
    pub async fn rehearse<S: Store>(
        &self,
        store: &S,
        ruling: &mut Ruling<'r>,
        mut hand_over: impl FnMut(Pending<'r>),
    ) {
        // A store that did not answer would take its time again.
        if ruling.refusal.is_some() || ruling.is_failed {
            return;
        }
        for rule in &self.lacking {
            rule.tally.would_deny();
        }
        for (place, ask) in self.asks.iter().enumerate().filter(|(_, ask)| !ask.enforced) {
            let checks: SmallVec<[Check<'r, '_>; 4]> = self.checks_of(ask).collect();
            let decision = match store.decide(&checks).await {
                Ok(decision) => decision,
                Err(error) => {
                    tracing::debug!(%error, "the store did not answer");
                    break;
                }
            };
            if !decision.is_allowed() {
                ask.rule.tally.would_deny();
            } else {
                if ask.times > 0 {
                    ask.rule.tally.allow(decision.statuses());
                }
                let mut pending = Vec::new();
                remember(ask.rule, &checks, &decision, false, &mut pending);
                pending.into_iter().for_each(&mut hand_over);
            }
            ruling.rehearsed.push((place, decision));
        }
    }
}

/// Notes what a rule is to settle later.
fn remember<'r>(
    rule: &'r Rule,
    checks: &[Check<'r, '_>],
    decision: &Decision<'_>,
    local: bool,
    pending: &mut Vec<Pending<'r>>,
) {
    if rule.settle == Settle::Never {
        return;
    }
    let taken = checks.iter().filter_map(|check| check.reservation(decision));
    pending.extend(taken.map(|reservation| Pending { reservation, rule, local }));
}
