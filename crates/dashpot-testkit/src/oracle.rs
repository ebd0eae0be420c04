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

use std::cmp::Ordering;
use std::collections::HashMap;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Key, KeyOperation, Outcome, Policy, Quota, Timestamp, Window, Zone,
};
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
struct Group {
    identity: Identity,
    policy: Policy,
    cost: u64,
}

impl Oracle {
    /// Answers each check in order, and takes every cost or none.
    pub fn decide(&mut self, at: Timestamp, checks: &[Check<'_, '_>]) -> Vec<Expected> {
        let groups = merge(checks);
        let mut refusals = Vec::new();
        for group in &groups {
            let counter = self.counter(&group.identity);
            counter.adopt(at, &group.policy);
            refusals.push(counter.refusal(at, &group.policy, group.cost));
        }

        let passed = refusals.iter().all(Option::is_none);
        let mut answers = HashMap::new();
        for (group, refusal) in groups.into_iter().zip(refusals) {
            let counter = self.counter(&group.identity);
            let mut delay = Duration::ZERO;
            if passed && group.cost > 0 {
                delay = counter.delay(at, &group.policy);
                counter.charge(at, &group.policy, group.cost);
            }
            let standing = counter.standing(at, &group.policy);
            answers.insert(group.identity, Expected { delay, ..refused(standing, refusal) });
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
/// strictest governs.
fn merge(checks: &[Check<'_, '_>]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for check in checks {
        let identity = Identity::of(check.policy, check.key);
        let cost = check.cost.units();
        match groups.iter_mut().find(|group| group.identity == identity) {
            None => groups.push(Group { identity, policy: check.policy.clone(), cost }),
            Some(group) => {
                group.cost = group.cost.saturating_add(cost);
                group.policy = strictest(&group.policy, check.policy);
            }
        }
    }
    groups
}

/// The policy that grants less at an instant, or as much and less in the long run. If their windows may differ,
/// one that grants as little at an instant as either and in the long run as the slower, so that whoever asks by
/// either gets no more than by it alone.
fn strictest(one: &Policy, other: &Policy) -> Policy {
    let in_the_long_run = |policy: &Policy, window_of: &Policy| {
        let window = window_of.quota().window().map_or(1, |window| window.length().as_nanos());
        BigInt::from(policy.quota().count().unwrap_or(u64::MAX)) * window
    };
    let (ours, theirs) = (in_the_long_run(one, other), in_the_long_run(other, one));
    let limit = one.limit().min(other.limit());
    if !one.is_any_window() {
        let is_stricter = (other.limit(), theirs) < (one.limit(), ours);
        return if is_stricter { other.clone() } else { one.clone() };
    }
    let slower = match theirs.cmp(&ours) {
        Ordering::Less => other,
        Ordering::Greater => one,
        Ordering::Equal if other.limit() < one.limit() => other,
        Ordering::Equal => one,
    };
    let quota = slower.quota();
    let (count, window) = (quota.count().expect("a rate"), quota.window().expect("a rate"));
    let build = |quota| Policy::builder(slower.name(), quota).algorithm(slower.algorithm());
    let builder = match slower.queue() {
        Some(_) => {
            let undelayed = slower.undelayed().min(limit - 1);
            build(Quota::new(count, window)).queue(limit - 1).undelayed(undelayed)
        }
        None => build(Quota::new(count, window).burst(limit)),
    };
    builder.any_window().build().expect("what one of them is, up to another limit")
}

fn refused(standing: Expected, refusal: Option<Refusal>) -> Expected {
    match refusal {
        None => standing,
        Some(Refusal { never, retry_after }) => {
            Expected { outcome: Outcome::Deny, never, retry_after, ..standing }
        }
    }
}
