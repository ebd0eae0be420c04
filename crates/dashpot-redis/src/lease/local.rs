//! Decisions that are made here, from what is at hand.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{
    Check, Consistency, Cost, Decision, Key, Policy, PolicyStatus, Receipt, StoreError, Timestamp,
};
use smallvec::SmallVec;
use tokio::time::{Instant, timeout_at};

use super::purse::Aside;
use super::slot::{Nanos, Slot, Taken, share};
use crate::failure::Failure;
use crate::key::state_key;
use crate::question::{Question, Questions};
use crate::store::Inner;

/// A key whose part in a limit is smaller is not worth leasing.
const LEAST: u64 = 4;

/// How many answers are waited for, if others spend what came of them.
const ROUNDS: usize = 8;

/// Whether a policy is asked about every time.
pub(crate) fn is_exact(policy: &Policy) -> bool {
    policy.consistency() == Consistency::Exact
}

/// What is at hand for a question.
enum AtHand {
    /// Set aside.
    Aside(Arc<Slot>, Aside),
    /// Not to be had.
    Refused(Arc<Slot>),
    /// Redis is to be asked about it.
    Ask,
}

impl Inner {
    /// The decision about one check, if it can be made from what is at hand.
    #[inline]
    pub(crate) fn decide_locally<'p>(
        self: &Arc<Self>,
        checks: &[Check<'p, '_>],
    ) -> Option<Decision<'p>> {
        let leases = &self.leases;
        if leases.table.is_empty() {
            return None;
        }
        let [check] = checks else { return self.grant_locally(checks) };
        let (policy, units) = (check.policy, check.cost.units());
        if is_exact(policy) || units == 0 {
            return None;
        }
        let hash = leases.table.hash(policy, check.key);
        let decide = |slot: &Arc<Slot>| {
            let terms = slot.terms();
            let (now, taken) = slot.spend(&terms, units, || leases.now(), &leases.ways);
            match taken {
                Taken::Spent { left, is_low } => {
                    if is_low && slot.claim() {
                        self.begin_to_ask(slot, 0);
                    }
                    let status = PolicyStatus::allow(policy, slot.standing(&terms, now, left), 0);
                    Some(Decision::new(terms.now(now), [status]))
                }
                Taken::Refused => {
                    let at = terms.now(now);
                    Some(Decision::new(at, [slot.refusal(policy, &terms, now, units)]))
                }
                Taken::Dry => None,
            }
        };
        leases.table.with(hash, policy, check.key, decide).flatten()
    }

    /// The decision about several checks, if what all of them cost is at hand.
    fn grant_locally<'p>(self: &Arc<Self>, checks: &[Check<'p, '_>]) -> Option<Decision<'p>> {
        let now = self.leases.now();
        let mut hand = Hand { all: SmallVec::new() };
        let mut spot = None;
        for check in checks {
            let units = check.cost.units();
            if is_exact(check.policy) || units == 0 {
                return None;
            }
            let slot = self.leases.table.find(check.policy, check.key)?;
            // Each server goes by its own clock, and one moment is told of the decision.
            if *spot.get_or_insert(slot.spot) != slot.spot {
                return None;
            }
            let aside = slot.set_aside(now, now, units)?;
            hand.all.push(AtHand::Aside(slot, aside));
        }
        let now = self.leases.now();
        if hand.has_ended(now) {
            return None;
        }
        hand.spend(self, now);
        let mut at = Timestamp::EPOCH;
        let mut statuses: SmallVec<[PolicyStatus<'p>; 4]> = SmallVec::new();
        for (check, one) in checks.iter().zip(&hand.all) {
            if let AtHand::Aside(slot, _) = one {
                at = at.max(slot.terms().now(now));
                statuses.push(slot.passing(check.policy, now));
            }
        }
        Some(Decision::new(at, statuses))
    }

    /// The decision about checks some of which are not exact.
    pub(crate) async fn decide_with_leases<'p>(
        self: &Arc<Self>,
        checks: &[Check<'p, '_>],
    ) -> Result<Decision<'p>, StoreError> {
        let has_slot = |check: &Check<'_, '_>| {
            let is_counted = !is_exact(check.policy) && check.cost != Cost::PEEK;
            is_counted && self.leases.table.find(check.policy, check.key).is_some()
        };
        if !checks.iter().any(has_slot) {
            let decided = self.decide_exactly(checks).await?;
            if decided.is_allowed() {
                self.note_demands(checks);
            }
            return Ok(decided);
        }
        let questions = Questions::new(&self.settings.prefix, checks)?;
        if questions.all.iter().any(Question::is_never) {
            return self.decide_exactly(checks).await;
        }
        let deadline = self.deadline();
        let is_alone = checks.iter().all(has_slot);
        let mut hand = Hand { all: SmallVec::new() };
        for (index, question) in questions.all.iter().enumerate() {
            let key = checks.iter().zip(&questions.members).find(|&(_, &member)| member == index);
            let key = key.map_or(Key::new(b""), |(check, _)| check.key);
            let at_hand = self.at_hand(question, key, is_alone, deadline).await?;
            hand.all.push(at_hand);
        }
        let is_refused = hand.all.iter().any(|one| matches!(one, AtHand::Refused(_)));
        let asked = |member: usize| matches!(hand.all.get(member), Some(AtHand::Ask));
        let those = checks.iter().zip(&questions.members).filter(|&(_, &member)| asked(member));
        // If somebody has refused already, the others are only looked at.
        let cost = |check: Cost| if is_refused { Cost::PEEK } else { check };
        let rest: SmallVec<[Check<'p, '_>; 4]> =
            those.map(|(check, _)| check.cost(cost(check.cost))).collect();
        let rest_decided = match rest.is_empty() {
            true => None,
            false => Some(self.decide_exactly(&rest).await?),
        };
        let allowed = !is_refused && rest_decided.as_ref().is_none_or(Decision::is_allowed);
        let now = self.leases.now();
        if allowed && hand.has_ended(now) {
            // It took longer than anything may. What was taken of the others is lost, as it is when no answer comes.
            return Err(Failure::Late(self.settings.deadline).into());
        }
        if allowed {
            hand.spend(self, now);
            self.note_demands(&rest);
        } else {
            hand.put_back();
        }
        Ok(self.told(checks, &questions, &hand, (rest.as_slice(), rest_decided), allowed, now))
    }

    /// What is at hand for a question. If Redis need not be asked about any other, an answer is waited for.
    async fn at_hand(
        self: &Arc<Self>,
        question: &Question<'_>,
        key: Key<'_>,
        waits: bool,
        deadline: Instant,
    ) -> Result<AtHand, StoreError> {
        let units = question.cost;
        if is_exact(question.policy) || units == 0 {
            return Ok(AtHand::Ask);
        }
        let Some(slot) = self.leases.table.find(question.policy, key) else {
            return Ok(AtHand::Ask);
        };
        let ways = &self.leases.ways;
        if !slot.can_hold(units, ways) {
            return Ok(AtHand::Ask);
        }
        for _ in 0..ROUNDS {
            let answered = slot.answered.notified();
            tokio::pin!(answered);
            answered.as_mut().enable();
            let now = self.leases.now();
            // If Redis is asked about others, they are not spent before it has answered.
            let span = if waits {
                Duration::ZERO
            } else {
                deadline.saturating_duration_since(Instant::now())
            };
            let until = now.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(Nanos::MAX));
            if let Some(aside) = slot.set_aside(now, until, units) {
                return Ok(AtHand::Aside(slot.clone(), aside));
            }
            if slot.refuses(now, units, ways) {
                return Ok(AtHand::Refused(slot.clone()));
            }
            if slot.is_gone() || slot.is_closing(now, until) {
                return Ok(AtHand::Ask);
            }
            if let Some(trouble) = slot.trouble(now) {
                return if waits { Err(trouble.into()) } else { Ok(AtHand::Ask) };
            }
            if slot.claim() {
                self.begin_to_ask(&slot, units);
            }
            // Redis is asked about others anyhow, which takes as long.
            if !waits {
                return Ok(AtHand::Ask);
            }
            let waiting = slot.wait_for(units);
            let is_late = timeout_at(deadline, answered).await.is_err();
            drop(waiting);
            if is_late {
                return Err(Failure::Late(self.settings.deadline).into());
            }
        }
        // Others were quicker, again and again.
        Ok(AtHand::Ask)
    }

    /// Notes that Redis was asked for units, and gave them.
    fn note_demands(self: &Arc<Self>, checks: &[Check<'_, '_>]) {
        let now = self.leases.now();
        let asked = checks.iter().filter(|check| check.cost != Cost::PEEK);
        asked.for_each(|check| self.note_demand(check.policy, check.key, now));
    }

    /// Notes that a key was asked about exactly; if it often is, it is leased from now on.
    fn note_demand(self: &Arc<Self>, policy: &Policy, key: Key<'_>, now: Nanos) {
        let leases = &self.leases;
        if is_exact(policy)
            || policy.quota().is_unlimited()
            || !leases.demand.note(leases.table.hash(policy, key), now)
        {
            return;
        }
        let instances = self.instances.count().get();
        if policy.consistency() == Consistency::Leased && share(policy, instances) < LEAST {
            return;
        }
        let slot = || {
            let name = state_key(&self.settings.prefix, policy, key);
            let spot = self.topology.spot(&name);
            Slot::new(policy.clone(), key.as_bytes(), (name, spot), fastrand::u64(..), now)
        };
        if let Some(slot) = leases.table.make(policy, key, slot)
            && slot.claim()
        {
            self.begin_to_ask(&slot, 0);
        }
    }

    /// The whole decision, from its parts.
    fn told<'p>(
        &self,
        checks: &[Check<'p, '_>],
        questions: &Questions<'p>,
        hand: &Hand,
        (rest, decided): (&[Check<'p, '_>], Option<Decision<'p>>),
        allowed: bool,
        now: Nanos,
    ) -> Decision<'p> {
        let mut at = decided.as_ref().map_or(Timestamp::EPOCH, Decision::at);
        let mut others = decided.iter().flat_map(|decided| decided.statuses());
        let mut statuses: SmallVec<[PolicyStatus<'p>; 4]> = SmallVec::new();
        let mut receipts = Vec::new();
        let mut asked = rest.iter();
        for (check, &member) in checks.iter().zip(&questions.members) {
            let cost = questions.all.get(member).map_or(0, |question| question.cost);
            let mut locally = |slot: &Slot| {
                let then = slot.terms().now(now);
                at = at.max(then);
                then
            };
            let (status, charged) = match hand.all.get(member) {
                Some(AtHand::Aside(slot, _)) => {
                    let then = locally(slot);
                    (Some(slot.passing(check.policy, now)), (then, 0))
                }
                Some(AtHand::Refused(slot)) => {
                    let then = locally(slot);
                    (Some(slot.refusal(check.policy, &slot.terms(), now, cost)), (then, 0))
                }
                _ => {
                    let charged = asked.next().zip(decided.as_ref());
                    let charged = charged.map(|(check, decided)| decided.charged(check));
                    (others.next().copied(), charged.unwrap_or((at, 0)))
                }
            };
            statuses.extend(status);
            let (at, permit) = charged;
            receipts.push(Receipt {
                policy: check.policy.clone(),
                key: check.key.as_bytes().into(),
                at,
                permit,
            });
        }
        let decision = Decision::new(at, statuses);
        if !allowed {
            return decision;
        }
        receipts.retain(|receipt| receipt.permit != 0 || receipt.at != at);
        if receipts.is_empty() { decision } else { decision.with_receipts(receipts) }
    }
}

/// What is at hand for each question of a call. What is set aside and not spent is put back, also if nobody waits for
/// the decision any more.
struct Hand {
    all: SmallVec<[AtHand; 4]>,
}

impl Hand {
    fn put_back(&mut self) {
        for one in &mut self.all {
            if let AtHand::Aside(slot, aside) = one {
                slot.put_back(aside);
                aside.spent();
            }
        }
    }

    /// Whether something was set aside of what may not be spent any more.
    fn has_ended(&self, now: Nanos) -> bool {
        let has_ended = |one: &AtHand| match one {
            AtHand::Aside(slot, aside) => slot.has_ended(now, aside),
            AtHand::Refused(_) | AtHand::Ask => false,
        };
        self.all.iter().any(has_ended)
    }

    fn spend(&mut self, store: &Arc<Inner>, now: Nanos) {
        for one in &mut self.all {
            if let AtHand::Aside(slot, aside) = one {
                let is_low = slot.spend_aside(now, aside);
                aside.spent();
                if is_low && slot.claim() {
                    store.begin_to_ask(slot, 0);
                }
            }
        }
    }
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.put_back();
    }
}
