//! From rules to checks, and what came of them.

mod ruling;
mod serving;
mod several;

pub use ruling::{Asked, Pending, Refusal, Ruling};

use std::num::NonZeroU64;
use std::ops::Range;
use std::ptr;

use dashpot::{
    Check, Cost, Decision, Key, KeyBuf, MemoryStore, Outcome, Policy, PolicyStatus, Reservation,
    Store, StoreError,
};
use smallvec::SmallVec;

use crate::capacity::Gates;
use crate::rule::{Cut, OnStoreError, Priority, Rule, Settle};
use crate::set::Selection;
use crate::share::Policies;
use crate::{Descriptor, Fact};

/// What to ask a store about one request.
#[derive(Clone, Debug)]
pub struct Plan<'r> {
    refusal: Option<Refusal<'r>>,
    pub(crate) asks: SmallVec<[Ask<'r>; 2]>,
    /// All keys, one after another.
    keys: KeyBuf,
    /// Rules that only count, and would refuse a request that lacks what this one does.
    lacking: Vec<&'r Rule>,
    /// The gates of this process, which a decision alone does not pass.
    gates: Gates<'r>,
    /// Whether somebody else counts what came of it for its priority: who knows what came at the gates.
    is_counted_elsewhere: bool,
}

/// What one rule asks.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) policies: &'r Policies,
    key: Range<usize>,
    pub(crate) enforced: bool,
    /// What its cost is multiplied by.
    times: u64,
}

impl Ask<'_> {
    /// Whether a decision is about it: of those that are enforced; when the store could not answer, those that go on
    /// without.
    fn is_decided(&self, without_store: bool) -> bool {
        self.enforced && (!without_store || self.rule.on_store_error == OnStoreError::Local)
    }

    fn cost(&self) -> Cost {
        Cost::new(self.rule.cost.units().saturating_mul(self.times))
    }
}

impl<'r> Plan<'r> {
    /// Asks nothing yet.
    #[must_use]
    pub fn empty() -> Self {
        Self {
            refusal: None,
            asks: SmallVec::new(),
            keys: KeyBuf::new(),
            lacking: Vec::new(),
            gates: Gates::default(),
            is_counted_elsewhere: false,
        }
    }

    pub(crate) fn new(selection: &Selection<'r>, request: &impl Descriptor) -> Self {
        let set = selection.set;
        let mut plan = Self::empty();
        plan.gates.priority = selection.priority;
        let path = selection.path.as_deref().unwrap_or_else(|| request.path());
        if let Some(fact) = set.block.find(request, path) {
            plan.refusal = Some(Refusal::Blocked(fact));
            return plan;
        }
        if selection.rules.is_empty() {
            return plan;
        }
        let unlimited = selection.priority.is_some_and(Priority::is_unlimited);
        plan.gates.is_exempt = unlimited || set.allow.find(request, path).is_some();
        plan.gates.class = selection.priority.map(|first| first.class).unwrap_or_default();
        if set.has_gates {
            let gates = selection.rules.iter().copied().filter(|rule| rule.capacity.is_some());
            plan.gates.rules.extend(gates);
        }
        if plan.gates.is_exempt {
            return plan;
        }
        let wants_tier = selection.rules.iter().any(|rule| rule.has_tiers());
        let tier = if wants_tier { request.fact(&Fact::Tier) } else { None };
        let default_tier = set.identity.default_tier.as_deref();
        for &rule in selection.rules.iter().filter(|rule| rule.capacity.is_none()) {
            let start = plan.keys.as_key().as_bytes().len();
            let Some(limits) = rule.tier(tier.as_deref(), default_tier) else { continue };
            match rule.cut(request, path, &mut plan.keys) {
                Cut::Whole(true) | Cut::Shared(true) => {}
                // Who is known goes on with what was used in another tier. Those who share a key
                // because nobody knows them are not one caller that changes its tier all the time.
                Cut::Whole(false) | Cut::Shared(false) => {
                    if let Some(tier) = &limits.name {
                        plan.keys.push("tier").push(tier);
                    }
                }
                Cut::Skip => continue,
                Cut::Deny => {
                    if rule.is_enforced(&[]) {
                        plan.refusal = plan.refusal.or(Some(Refusal::Absent(rule)));
                    } else {
                        plan.lacking.push(rule);
                    }
                    continue;
                }
            }
            let all = plan.keys.as_key().as_bytes();
            let key = start..all.len();
            let enforced = rule.is_enforced(all.get(key.clone()).unwrap_or_default());
            // Classes share a limit, whatever they weigh.
            let weighed = selection.priority.filter(|_| rule.classes.is_none());
            let policies = limits.policies(weighed).reduced_to(rule.percent(plan.gates.class));
            plan.asks.push(Ask { rule, policies, key, enforced, times: 1 });
        }
        plan
    }

    /// The same for so many requests at once; 0 only looks.
    #[must_use]
    pub fn times(mut self, times: u64) -> Self {
        self.asks.iter_mut().for_each(|ask| ask.times = times);
        self
    }

    /// What each rule that is asked counts by, and its policies.
    pub fn keys(&self) -> impl Iterator<Item = (&'r Rule, &'r [Policy], Key<'_>)> {
        self.asks.iter().map(|ask| (ask.rule, &**ask.policies, self.key(ask)))
    }

    /// Whose limits were reached, and who it was, by their keys.
    pub fn denied<'p>(
        &'p self,
        ruling: &'p Ruling<'_>,
    ) -> impl Iterator<Item = (&'r Rule, Key<'p>)> {
        let statuses = ruling.decision.as_ref().map_or(&[][..], Decision::statuses);
        let denied = move |(_, own): &(&Ask<'r>, Range<usize>)| {
            statuses.get(own.clone()).is_some_and(|own| own.iter().any(is_denial))
        };
        let decided = self.decided(ruling.is_failed).filter(denied);
        decided.map(|(ask, _)| (ask.rule, self.key(ask)))
    }

    /// Whether some of what is asked has a queue, in which requests wait for their turn.
    #[must_use]
    pub fn has_queue(&self) -> bool {
        let enforced = self.asks.iter().filter(|ask| ask.enforced);
        { enforced }.any(|ask| ask.policies.iter().any(|policy| policy.queue().is_some()))
    }

    /// In which queues a request that passed is to wait, and how long. Not in those of a store that stood in.
    pub fn queued<'p>(
        &'p self,
        ruling: &'p Ruling<'r>,
    ) -> impl Iterator<Item = (Check<'r, 'p>, &'p PolicyStatus<'r>)> {
        let passed = { ruling.decision.as_ref() }
            .filter(|decision| decision.is_allowed() && !ruling.is_failed);
        let statuses = passed.map_or(&[][..], Decision::statuses);
        let asked = self.checks().zip(statuses);
        asked.filter(|(check, status)| check.policy.queue().is_some() && !status.delay().is_zero())
    }

    /// The key a rule counts by.
    pub(crate) fn key(&self, ask: &Ask<'r>) -> Key<'_> {
        Key::new(self.keys.as_key().as_bytes().get(ask.key.clone()).unwrap_or_default())
    }

    /// Why the request is refused whatever was counted, if it is.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal<'r>> {
        self.refusal
    }

    /// The questions of the rules that are enforced.
    pub fn checks(&self) -> impl Iterator<Item = Check<'r, '_>> {
        self.asks.iter().filter(|ask| ask.enforced).flat_map(|ask| self.checks_of(ask))
    }

    /// The questions of the rules that only count.
    pub fn shadow_checks(&self) -> impl Iterator<Item = Check<'r, '_>> {
        self.asks.iter().filter(|ask| !ask.enforced).flat_map(|ask| self.checks_of(ask))
    }

    /// The questions of those that are enforced.
    fn gather(&self) -> SmallVec<[Check<'r, '_>; 4]> {
        let mut checks = SmallVec::new();
        for ask in self.asks.iter().filter(|ask| ask.enforced) {
            for check in self.checks_of(ask) {
                checks.push(check);
            }
        }
        checks
    }

    fn checks_of(&self, ask: &Ask<'r>) -> impl Iterator<Item = Check<'r, '_>> + use<'r, '_> {
        let (key, cost) = (self.key(ask), ask.cost());
        ask.policies.iter().map(move |policy| Check::new(policy, key).cost(cost))
    }

    /// Those that a decision is about, and which of its statuses are theirs: they come as the checks do, rule by rule.
    fn decided(&self, without_store: bool) -> impl Iterator<Item = (&Ask<'r>, Range<usize>)> {
        let mut start = 0;
        self.asks.iter().filter(move |ask| ask.is_decided(without_store)).map(move |ask| {
            let own = start..start + ask.policies.len();
            start = own.end;
            (ask, own)
        })
    }

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
                self.take(answer, &checks, (local, store.instances()), &mut ruling);
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
            self.take(answer, &checks, (local, store.instances()), ruling);
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
    fn take(
        &self,
        answer: Result<Decision<'r>, StoreError>,
        checks: &[Check<'r, '_>],
        instead: (&MemoryStore, NonZeroU64),
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
                self.go_without(instead, ruling);
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
            if own.iter().any(is_denial) {
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
        // Others go without, too: each may grant its part.
        let is_local = |ask: &&Ask<'r>| ask.rule.on_store_error == OnStoreError::Local;
        let mut wholes: SmallVec<[&Policy; 4]> = SmallVec::new();
        let mut checks: SmallVec<[Check<'r, '_>; 4]> = SmallVec::new();
        for ask in enforced().filter(is_local) {
            wholes.extend(ask.policies.iter());
            let key = self.key(ask);
            let parts = ask.policies.part(instances).iter();
            checks.extend(parts.map(|part| Check::new(part, key).cost(ask.cost())));
        }
        if checks.is_empty() {
            return;
        }
        let decided = local.decide_now(&checks);
        let asked = checks.iter().zip(wholes).zip(decided.statuses());
        let statuses = asked.map(|((check, whole), status)| {
            if check.cost.units() <= whole.whole_limit() { status.for_now() } else { *status }
        });
        ruling.decision = Some(Decision::new(decided.at(), statuses).degraded());
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

fn is_denial(status: &PolicyStatus<'_>) -> bool {
    status.outcome() == Outcome::Deny
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
