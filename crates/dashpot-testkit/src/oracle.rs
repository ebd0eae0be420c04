//! The oracle: what every decision should be, worked out slowly from the definitions.
//!
//! It shares nothing with the algorithms it judges. A bucket is a level that drains, not a
//! theoretical arrival time; a window is a map of all counts there ever were; a log keeps
//! everything. Each algorithm only says whether a cost *would pass* at a moment and whether a key
//! is *as good as new* then; every wait is searched for, nanosecond by nanosecond if need be, and
//! not computed.

mod bucket;
mod calendar;
mod concurrency;
mod counter;
mod fixed_window;
mod meter;
mod sliding_log;
mod sliding_window;
mod store;

use std::collections::HashMap;
use std::time::Duration;

use dashpot::{Algorithm, Check, Key, KeyOperation, Outcome, Policy, Timestamp, Window, Zone};
use num_bigint::BigInt;

pub use bucket::Slack;
pub(crate) use calendar::same_window;
use counter::{Counter, Refusal};
pub use store::OracleStore;

/// What a right store answers to one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// Whether this check passes.
    pub outcome: Outcome,
    /// Whether it could never pass.
    pub never: bool,
    /// The most the policy grants at one instant.
    pub limit: u64,
    /// What could be taken at this instant, after the decision.
    pub remaining: u64,
    /// Until the key is as good as new.
    pub reset_after: Duration,
    /// On a denial, the smallest wait after which the check would pass, if there is one.
    pub retry_after: Option<Duration>,
    /// Until one unit can be taken, if that is known.
    pub available_after: Option<Duration>,
    /// How long the request is held before it proceeds.
    pub delay: Duration,
    /// How much stricter than all this a store may be, because the key was carried over from one
    /// rate to another. Nothing for keys whose rate never changed.
    pub slack: Slack,
}

impl Expected {
    /// How a key stands that stands like this by one definition, and like that by another.
    fn least(self, other: Self) -> Self {
        let available = self.available_after.zip(other.available_after);
        Self {
            limit: self.limit.min(other.limit),
            remaining: self.remaining.min(other.remaining),
            reset_after: self.reset_after.max(other.reset_after),
            available_after: available.map(|(one, other)| one.max(other)),
            slack: Slack {
                nanos: self.slack.nanos.max(other.slack.nanos),
                units: self.slack.units.max(other.slack.units),
            },
            ..self
        }
    }

    /// What a store answers whose clock ticks like this: a wait that ends between two ticks is over with the
    /// second.
    pub(crate) fn round_up(&mut self, tick: Duration) {
        let tick = tick.as_nanos() as u64;
        let up = |nanos: u64| nanos.checked_next_multiple_of(tick).unwrap_or(u64::MAX);
        let wait = |wait: Duration| Duration::from_nanos(up(wait.as_nanos() as u64));
        self.reset_after = wait(self.reset_after);
        self.retry_after = self.retry_after.map(wait);
        self.available_after = self.available_after.map(wait);
        self.delay = wait(self.delay);
        self.slack.nanos = up(self.slack.nanos);
    }
}

/// Every counter there is, each with all it needs to remember.
///
/// Time zones other than UTC are not supported.
#[derive(Clone, Debug, Default)]
pub struct Oracle {
    counters: HashMap<Identity, Counter>,
}

/// What a counter belongs to: two policies of one identity are two definitions of the same thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Identity {
    name: String,
    algorithm: Algorithm,
    limited: bool,
    /// None if any will do.
    window: Option<Window>,
    zone: Zone,
    key: Vec<u8>,
}

impl Identity {
    fn of(policy: &Policy, key: Key<'_>) -> Self {
        assert!(*policy.zone() == Zone::UTC, "the oracle knows no time zone but UTC");
        Self {
            name: policy.name().to_owned(),
            algorithm: policy.algorithm(),
            limited: !policy.quota().is_unlimited(),
            window: policy.quota().window().filter(|_| !policy.is_any_window()),
            zone: policy.zone().clone(),
            key: key.as_bytes().to_owned(),
        }
    }
}

/// The checks of one call on the same counter.
struct Group<'p> {
    identity: Identity,
    policy: &'p Policy,
    /// Those that have to agree.
    others: Vec<&'p Policy>,
    cost: u64,
}

impl Oracle {
    /// Answers each check in order, and takes every cost or none.
    pub fn decide(&mut self, at: Timestamp, checks: &[Check<'_, '_>]) -> Vec<Expected> {
        let groups = merge(checks);
        let mut refusals = Vec::new();
        for Group { identity, policy, others, cost } in &groups {
            let counter = self.counter(identity);
            counter.adopt(at, policy);
            let own = counter.refusal(at, policy, *cost);
            let others = each(counter, at, others)
                .filter_map(|(counter, policy)| counter.refusal(at, policy, *cost));
            refusals.push(own.into_iter().chain(others).reduce(Refusal::and));
        }

        let passed = refusals.iter().all(Option::is_none);
        let mut answers = HashMap::new();
        for (Group { identity, policy, others, cost }, refusal) in groups.into_iter().zip(refusals)
        {
            let counter = self.counter(&identity);
            let mut delay = Duration::ZERO;
            if passed && cost > 0 {
                let others = each(counter, at, &others);
                delay = others
                    .map(|(counter, policy)| counter.delay(at, policy))
                    .fold(counter.delay(at, policy), Duration::max);
                counter.charge(at, policy, cost);
            }
            let others = each(counter, at, &others);
            let standing = others
                .map(|(counter, policy)| counter.standing(at, policy))
                .fold(counter.standing(at, policy), Expected::least);
            answers.insert(identity, Expected { delay, ..refused(standing, refusal) });
        }
        let answer = |check: &Check<'_, '_>| answers[&Identity::of(check.policy, check.key)];
        checks.iter().map(answer).collect()
    }

    /// Charges what was really used of a reservation.
    pub fn settle(
        &mut self,
        at: Timestamp,
        policy: &Policy,
        key: Key<'_>,
        cost: u64,
        charged_at: Timestamp,
        used: u64,
    ) {
        let counter = self.counter(&Identity::of(policy, key));
        counter.settle(at, policy, cost, charged_at, used);
    }

    /// Gives back what is left of a reservation that was not used.
    pub fn undo(
        &mut self,
        at: Timestamp,
        policy: &Policy,
        key: Key<'_>,
        cost: u64,
        charged_at: Timestamp,
    ) {
        self.counter(&Identity::of(policy, key)).undo(at, policy, cost, charged_at);
    }

    /// Carries out an operator's wish, and answers as a peek would.
    pub fn manage(
        &mut self,
        at: Timestamp,
        policy: &Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Expected {
        let counter = self.counter(&Identity::of(policy, key));
        counter.adopt(at, policy);
        match operation {
            KeyOperation::Peek => {}
            KeyOperation::Reset => counter.reset(),
            KeyOperation::Block(until) if until > at => counter.blocked_until = until,
            // A block that is over from the start ends the one there was.
            KeyOperation::Block(_) | KeyOperation::Unblock => {
                counter.blocked_until = Timestamp::EPOCH;
            }
        }
        counter.standing(at, policy)
    }

    /// Whether anything was ever charged to this key, since it was last reset.
    #[must_use]
    pub fn holds(&self, policy: &Policy, key: Key<'_>) -> bool {
        let counter = self.counters.get(&Identity::of(policy, key));
        counter.is_some_and(Counter::holds)
    }

    fn counter(&mut self, identity: &Identity) -> &mut Counter {
        self.counters.entry(identity.clone()).or_default()
    }
}

/// Sums the costs that fall on one counter. If its checks disagree about the definition, the
/// strictest governs; if their windows may differ, all of them have to agree, and the slowest is charged.
fn merge<'p>(checks: &[Check<'p, '_>]) -> Vec<Group<'p>> {
    let mut groups: Vec<Group<'p>> = Vec::new();
    for check in checks {
        let identity = Identity::of(check.policy, check.key);
        let cost = check.cost.units();
        match groups.iter_mut().find(|group| group.identity == identity) {
            None => {
                groups.push(Group { identity, policy: check.policy, others: Vec::new(), cost });
            }
            Some(group) => {
                group.cost = group.cost.saturating_add(cost);
                let any_window = group.policy.is_any_window();
                let (one, other) = (group.policy, check.policy);
                let governs =
                    if any_window { is_slower(other, one) } else { is_stricter(other, one) };
                group.policy = if governs { other } else { one };
                group
                    .others
                    .extend([one, other].into_iter().filter(|_| any_window && one != other));
            }
        }
    }
    groups
}

/// Whether one grants less than the other at one instant, or as much and then less in a window.
fn is_stricter(one: &Policy, other: &Policy) -> bool {
    let strictness = |policy: &Policy| {
        (policy.limit(), policy.quota().count().unwrap_or(u64::MAX), policy.percent())
    };
    strictness(one) < strictness(other)
}

/// Whether one grants less than the other in the long run, or as much and less at one instant.
fn is_slower(one: &Policy, other: &Policy) -> bool {
    let in_both_windows = |policy: &Policy, other: &Policy| {
        let window = other.quota().window().expect("a rate has one").length().as_nanos();
        (BigInt::from(policy.quota().count().expect("a rate has one")) * window, policy.limit())
    };
    in_both_windows(one, other) < in_both_windows(other, one)
}

/// What a counter would say if it had been asked under each of these.
fn each<'p>(
    counter: &Counter,
    at: Timestamp,
    others: &[&'p Policy],
) -> impl Iterator<Item = (Counter, &'p Policy)> {
    others.iter().map(move |policy| {
        let mut counter = counter.clone();
        counter.adopt(at, policy);
        (counter, *policy)
    })
}

fn refused(standing: Expected, refusal: Option<Refusal>) -> Expected {
    match refusal {
        None => standing,
        Some(Refusal { never, retry_after }) => {
            Expected { outcome: Outcome::Deny, never, retry_after, ..standing }
        }
    }
}
