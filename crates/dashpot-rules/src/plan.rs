//! From rules to checks, and what came of them.

use std::num::NonZeroU64;
use std::ops::Range;

use dashpot::{
    Check, Cost, Decision, Key, KeyBuf, MemoryStore, Policy, PolicyStatus, Reservation, Store,
    StoreError,
};
use smallvec::SmallVec;

use crate::rule::{Cut, OnStoreError, Rule, Settle};
use crate::set::Selection;
use crate::share::Policies;
use crate::weight::Weight;
use crate::{Descriptor, Fact};

/// What to ask a store about one request.
#[derive(Clone, Debug)]
pub struct Plan<'r> {
    refusal: Option<Refusal<'r>>,
    pub(crate) asks: SmallVec<[Ask<'r>; 2]>,
    /// All keys, one after another.
    keys: KeyBuf,
    /// What costs are multiplied by.
    times: u64,
    /// Rules that only count, and would refuse a request that lacks what this one does.
    lacking: Vec<&'r Rule>,
}

/// What one rule asks.
#[derive(Clone, Debug)]
pub(crate) struct Ask<'r> {
    pub(crate) rule: &'r Rule,
    pub(crate) policies: &'r Policies,
    key: Range<usize>,
    pub(crate) enforced: bool,
}

impl Ask<'_> {
    /// Whether this is one of its policies, or a part of one.
    fn owns(&self, policy: &Policy) -> bool {
        self.policies.iter().any(|own| own.same_counters(policy))
    }
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
pub enum Refusal<'r> {
    /// A limit is reached; this rule's is the one to wait for.
    Limited(&'r Rule),
    /// The caller is on the block list, by this fact.
    Blocked(&'r Fact),
    /// A fact is missing that this rule insists on.
    Absent(&'r Rule),
    /// The store cannot answer, and this rule does not let pass what was not counted.
    Unavailable(&'r Rule),
}

impl<'r> Plan<'r> {
    pub(crate) fn new(selection: &Selection<'r>, request: &impl Descriptor) -> Self {
        let set = selection.set;
        let mut plan = Self {
            refusal: None,
            asks: SmallVec::new(),
            keys: KeyBuf::new(),
            times: 1,
            lacking: Vec::new(),
        };
        let path = selection.path.as_deref().unwrap_or_else(|| request.path());
        if let Some(fact) = set.block.find(request, path) {
            plan.refusal = Some(Refusal::Blocked(fact));
            return plan;
        }
        let unlimited = selection.priority.is_some_and(|first| first.weight == Weight::Unlimited);
        if selection.rules.is_empty() || unlimited || set.allow.find(request, path).is_some() {
            return plan;
        }
        let wants_tier = selection.rules.iter().any(|rule| rule.has_tiers());
        let tier = if wants_tier { request.fact(&Fact::Tier) } else { None };
        let default_tier = set.identity.default_tier.as_deref();
        for &rule in &selection.rules {
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
            let policies = limits.policies(selection.priority);
            plan.asks.push(Ask { rule, policies, key, enforced });
        }
        plan
    }

    /// The same for so many requests at once; 0 only looks.
    #[must_use]
    pub const fn times(mut self, times: u64) -> Self {
        self.times = times;
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
        let denied = |ask: &&Ask<'r>| {
            let mut statuses = ruling.decision.iter().flat_map(Decision::denied);
            ask.enforced && statuses.any(|status| ask.owns(status.policy()))
        };
        self.asks.iter().filter(denied).map(|ask| (ask.rule, self.key(ask)))
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
        let (key, cost) = (self.key(ask), self.cost(ask));
        ask.policies.iter().map(move |policy| Check::new(policy, key).cost(cost))
    }

    fn cost(&self, ask: &Ask<'r>) -> Cost {
        Cost::new(ask.rule.cost.units().saturating_mul(self.times))
    }

    /// Asks: all that are enforced pass together, or none is charged; then those that only count.
    /// `local` stands in for a store that cannot answer, where a rule says so.
    pub async fn decide<S: Store>(&self, store: &S, local: &MemoryStore) -> Ruling<'r> {
        let mut ruling = self.enforce(store, local).await;
        let mut pending = Vec::new();
        self.rehearse(store, &ruling, |one| pending.push(one)).await;
        ruling.pending.append(&mut pending);
        ruling
    }

    /// Asks those that are enforced: the first half of [`decide`](Self::decide), for who has to hold
    /// what was charged while the second is waited for.
    pub async fn enforce<S: Store>(&self, store: &S, local: &MemoryStore) -> Ruling<'r> {
        let mut ruling = Ruling::default();
        if self.is_refused(&mut ruling) {
            return ruling;
        }
        let checks = self.gather();
        if !checks.is_empty() {
            let answer = store.decide(&checks).await;
            self.take(answer, &checks, (local, store.instances()), &mut ruling);
        }
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
        if self.is_refused(ruling) || self.asks.is_empty() {
            return true;
        }
        let checks = self.gather();
        let Some(answer) = store.decide_at_once(&checks) else { return false };
        self.take(answer, &checks, (local, store.instances()), ruling);
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
        if decision.is_allowed() {
            // Who only looks is not counted.
            if self.times > 0 {
                self.count_allowed(checks, decision);
            }
            // Mostly there is nothing to remember.
            if self.asks.iter().any(|ask| ask.rule.settle != Settle::Never) {
                for check in checks {
                    self.remember(check, decision, local, &mut ruling.pending);
                }
            }
            return;
        }
        let denier = decision.denier().map(PolicyStatus::policy);
        for ask in self.asks.iter().filter(|ask| ask.enforced) {
            let mine = |policy: &Policy| ask.owns(policy);
            if decision.denied().any(|status| mine(status.policy())) {
                ask.rule.tally.deny();
            }
            // A denial is one, whatever policy the store says it is about.
            if ruling.refusal.is_none() || denier.is_some_and(mine) {
                ruling.refusal = Some(Refusal::Limited(ask.rule));
            }
        }
    }

    /// Counts for each rule that it let pass: statuses come as the checks do, rule by rule.
    fn count_allowed(&self, checks: &[Check<'r, '_>], decision: &Decision<'_>) {
        let mut rest = decision.statuses();
        let mut checks = checks.iter().peekable();
        for ask in self.asks.iter().filter(|ask| ask.enforced) {
            let mut own = 0;
            while own < ask.policies.len()
                && checks.next_if(|check| ask.owns(check.policy)).is_some()
            {
                own += 1;
            }
            let Some((mine, others)) = rest.split_at_checked(own) else { return };
            if own > 0 {
                ask.rule.tally.allow(mine);
            }
            rest = others;
        }
    }

    /// Notes what is to be settled later.
    fn remember(
        &self,
        check: &Check<'r, '_>,
        decision: &Decision<'_>,
        local: bool,
        pending: &mut Vec<Pending<'r>>,
    ) {
        let owner = self.asks.iter().find(|ask| ask.owns(check.policy));
        if let Some(Ask { rule, .. }) = owner
            && *rule.settle() != Settle::Never
            && let Some(reservation) = check.reservation(decision)
        {
            pending.push(Pending { reservation, rule, local });
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
            checks.extend(parts.map(|part| Check::new(part, key).cost(self.cost(ask))));
        }
        if checks.is_empty() {
            return;
        }
        let decided = local.decide_now(&checks);
        let asked = checks.iter().zip(wholes).zip(decided.statuses());
        let statuses =
            asked.map(
                |((check, whole), status)| {
                    if check.cost.units() <= whole.limit() { status.for_now() } else { *status }
                },
            );
        ruling.decision = Some(Decision::new(decided.at(), statuses).degraded());
        self.conclude(&checks, true, ruling);
    }

    /// Asks the rules that only count: the second half of [`decide`](Self::decide). They are charged
    /// if everything enforced passed and they do; what of that is to be settled is handed over as it is
    /// taken, so that it is known of if nobody waits for the rest.
    pub async fn rehearse<S: Store>(
        &self,
        store: &S,
        ruling: &Ruling<'r>,
        mut hand_over: impl FnMut(Pending<'r>),
    ) {
        // A store that did not answer would take its time again.
        if ruling.refusal.is_some() || ruling.is_failed {
            return;
        }
        for rule in &self.lacking {
            rule.tally.would_deny();
        }
        for ask in self.asks.iter().filter(|ask| !ask.enforced) {
            let checks: SmallVec<[Check<'r, '_>; 4]> = self.checks_of(ask).collect();
            match store.decide(&checks).await {
                Ok(decision) if decision.is_allowed() => {
                    if self.times > 0 {
                        ask.rule.tally.allow(decision.statuses());
                    }
                    let mut pending = Vec::new();
                    for check in &checks {
                        self.remember(check, &decision, false, &mut pending);
                    }
                    pending.into_iter().for_each(&mut hand_over);
                }
                Ok(_) => ask.rule.tally.would_deny(),
                Err(error) => {
                    tracing::debug!(%error, "the store did not answer");
                    break;
                }
            }
        }
    }
}

/// What came of a request.
#[derive(Debug, Default)]
#[must_use = "a ruling that nobody looks at limits nothing"]
pub struct Ruling<'r> {
    refusal: Option<Refusal<'r>>,
    decision: Option<Decision<'r>>,
    pending: Vec<Pending<'r>>,
    /// Whether the store could not answer.
    is_failed: bool,
}

/// Something that was charged and is to be settled.
#[derive(Debug)]
pub struct Pending<'r> {
    /// What was charged.
    pub reservation: Reservation,
    /// By which rule.
    pub rule: &'r Rule,
    /// Whether to the store that stood in.
    pub local: bool,
}

impl<'r> Ruling<'r> {
    /// Why the request is refused, if it is.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal<'r>> {
        self.refusal
    }

    /// What the store said about the rules that are enforced, if it was asked.
    #[must_use]
    pub const fn decision(&self) -> Option<&Decision<'r>> {
        self.decision.as_ref()
    }

    /// Whether the store could not answer, and each rule's `on_store_error` was followed.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.is_failed
    }

    /// Takes what is to be settled.
    pub fn take_pending(&mut self) -> Vec<Pending<'r>> {
        std::mem::take(&mut self.pending)
    }
}
