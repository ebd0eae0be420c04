//! From rules to checks, and what came of them.

mod asking;
mod ruling;
mod serving;
mod several;

pub use ruling::{Asked, Pending, Refusal, Ruling};

use std::ops::Range;

use dashpot::{Check, Cost, Decision, Key, KeyBuf, Policy, PolicyStatus};
use smallvec::SmallVec;

use crate::capacity::Gates;
use crate::rule::{Cut, OnStoreError, Priority, Rule};
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
            statuses.get(own.clone()).is_some_and(|own| own.iter().any(PolicyStatus::is_denied))
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
}
