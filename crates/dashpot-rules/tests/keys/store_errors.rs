//! A store that cannot answer.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use dashpot::{
    Check, Cost, Decision, Key, KeyOperation, MemoryStore, Percent, Policy, PolicyStatus,
    Reservation, Retry, Standing, Store, StoreError, Timestamp, Vitals,
};
use dashpot_rules::{Facts, RuleSet};
use dashpot_testkit::block_on;

use super::{Answer, World, limited};

/// Fails, and counts how often it was asked; so many instances share it.
pub(super) struct Dead(AtomicU32, NonZeroU64);

impl Default for Dead {
    fn default() -> Self {
        Self::shared_by(1)
    }
}

impl Dead {
    pub(super) fn shared_by(instances: u64) -> Self {
        Self(AtomicU32::new(0), NonZeroU64::new(instances).unwrap())
    }

    fn fail<T>(&self) -> Result<T, StoreError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Err(StoreError::Unavailable("it is dead".into()))
    }
}

impl Store for Dead {
    async fn decide<'p>(&self, _: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        self.fail()
    }

    async fn settle(&self, _: &Reservation, _: Cost) -> Result<Timestamp, StoreError> {
        self.fail()
    }

    async fn undo(&self, _: &Reservation) -> Result<Timestamp, StoreError> {
        self.fail()
    }

    async fn manage<'p>(
        &self,
        _: &'p Policy,
        _: Key<'_>,
        _: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        self.fail()
    }

    fn instances(&self) -> NonZeroU64 {
        self.1
    }
}

fn ask(world: &World, request: &Facts) -> Answer {
    ask_shared(world, request, 1)
}

fn ask_shared(world: &World, request: &Facts, instances: u64) -> Answer {
    let plan = world.rules.select(request).plan(request);
    let ruling = block_on(plan.decide(&Dead::shared_by(instances), &world.local));
    assert!(ruling.decision().is_none_or(Decision::is_degraded));
    Answer::of(ruling.refusal())
}

fn rule(name: &str, on_error: &str) -> String {
    format!("[[rule]]\nname = '{name}'\nlimits = '2/min'\non_store_error = '{on_error}'\n")
}

#[test]
fn a_rule_may_let_pass_what_was_not_counted() {
    let world = World::new(&rule("r", "allow"));
    for _ in 0..10 {
        assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
    }
}

#[test]
fn a_rule_may_refuse_what_was_not_counted() {
    let world = World::new(&rule("r", "deny"));
    assert_eq!(ask(&world, &Facts::new()), Answer::Unavailable("r".into()));
    assert_eq!(world.denied("r"), 0, "an error is no denial");
}

#[test]
fn a_rule_may_go_on_with_what_this_process_counts() {
    let world = World::new(&rule("r", "local"));
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
    assert_eq!(ask(&world, &Facts::new()), limited("r"));
    assert_eq!(world.denied("r"), 1);
}

#[test]
fn local_is_what_happens_if_nothing_is_said() {
    let world = World::new("[[rule]]\nname = 'r'\nlimits = '1/min'");
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
    assert_eq!(ask(&world, &Facts::new()), limited("r"));
}

#[test]
fn the_store_says_for_all_and_a_rule_for_itself() {
    let file = format!(
        "[store]\non_error = 'allow'\n[[rule]]\nname = 'all'\nlimits = '1/min'\n{}",
        rule("own", "local")
    );
    let world = World::new(&file);
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed, "`all` does not count");
    assert_eq!(ask(&world, &Facts::new()), limited("own"));
}

#[test]
fn one_that_refuses_is_enough_and_charges_nobody() {
    let world = World::new(&(rule("local", "local") + &rule("strict", "deny")));
    for _ in 0..5 {
        assert_eq!(ask(&world, &Facts::new()), Answer::Unavailable("strict".into()));
    }
    assert!(world.local.is_empty());
}

#[test]
fn a_shadow_refuses_nothing_when_the_store_is_dead() {
    let world = World::new(&(rule("r", "deny") + "shadow = true\n"));
    assert_eq!(ask(&world, &Facts::new()), Answer::Allowed);
}

#[test]
fn a_dead_store_is_asked_once_for_a_request() {
    // Each question may take as long as the deadline allows.
    let shadows: String =
        (0..5).map(|n| rule(&format!("s{n}"), "local") + "shadow = true\n").collect();
    let world = World::new(&(rule("r", "allow") + &shadows));
    let (request, dead) = (Facts::new(), Dead::default());
    let plan = world.rules.select(&request).plan(&request);
    assert!(block_on(plan.decide(&dead, &world.local)).refusal().is_none());
    assert_eq!(dead.0.load(Ordering::SeqCst), 1);
}

#[test]
fn what_was_taken_from_the_stand_in_is_settled_there() {
    let world = World::new("[[rule]]\nname = 'r'\nlimits = '1 concurrent'");
    let request = Facts::new();
    let plan = world.rules.select(&request).plan(&request);
    let mut ruling = block_on(plan.decide(&Dead::default(), &world.local));
    let pending = ruling.take_pending();
    assert!(pending[0].local);
    assert_eq!(ask(&world, &request), limited("r"));
    world.local.settle_now(&pending[0].reservation, Cost::ONE);
    assert_eq!(ask(&world, &request), Answer::Allowed);
}

/// How many of a hundred pass while so many instances go without their store.
fn passing(limit: &str, instances: u64) -> usize {
    let world = World::new(&format!("[[rule]]\nname = 'r'\n{limit}"));
    let passes = |_: &i32| ask_shared(&world, &Facts::new(), instances) == Answer::Allowed;
    (0..100).filter(passes).count()
}

#[test]
fn each_instance_grants_its_part() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-window", "sliding-log"] {
        let limit = format!("limits = '50/day'\nalgorithm = '{algorithm}'");
        assert_eq!(passing(&limit, 1), 50, "{algorithm}");
        assert_eq!(passing(&limit, 4), 12, "{algorithm}");
        assert_eq!(passing(&limit, 50), 1, "{algorithm}");
        assert_eq!(passing(&limit, 1000), 1, "{algorithm}");
    }
    assert_eq!(passing("limits = '50/day burst 20'", 4), 5);
    assert_eq!(passing("limits = '9 concurrent'", 4), 2);
    assert_eq!(passing("limits = '0/day'", 4), 0);
    assert_eq!(passing("limits = 'unlimited'", 4), 100);
}

/// The queue's places are shared out, the one in service among them.
#[test]
fn a_queue_has_its_part_of_the_places() {
    let queue = "limits = '1/day'\nalgorithm = 'leaky-bucket'\nqueue = 7";
    assert_eq!(passing(queue, 1), 8);
    assert_eq!(passing(queue, 4), 2);
    assert_eq!(passing(queue, 100), 1);
}

#[test]
fn more_or_fewer_instances_go_on_with_what_was_used() {
    let world = World::new("[[rule]]\nname = 'r'\nlimits = '40/day'");
    let request = Facts::new();
    let allowed = |instances, asks: u32| {
        let passes = |_: &u32| ask_shared(&world, &request, instances) == Answer::Allowed;
        (0..asks).filter(passes).count()
    };
    assert_eq!(allowed(4, 20), 10);
    assert_eq!(allowed(2, 20), 10, "of twenty, ten are used");
    assert_eq!(allowed(8, 20), 0);
    assert_eq!(world.rules.rules()[0].tally().degraded(), 60);
}

/// A part may be too small for a cost that the whole could grant: that is no `never`.
#[test]
fn a_cost_that_the_whole_could_grant_is_told_without_a_wait() {
    let world = World::new("[[rule]]\nname = 'r'\nlimits = '40/day'\ncost = 20");
    let request = Facts::new();
    let plan = world.rules.select(&request).plan(&request);
    let ruling = block_on(plan.decide(&Dead::shared_by(4), &world.local));
    assert!(ruling.is_degraded());
    let decision = ruling.decision().unwrap();
    assert!(!decision.is_allowed() && !decision.is_never());
    assert_eq!(decision.retry_after(), None);
    assert_eq!(decision.statuses()[0].limit(), 10);
}

#[test]
fn a_dead_store_is_not_asked_about_who_is_blocked() {
    let world = World::new(&("[block]\nuser = 'mallory'\n".to_owned() + &rule("r", "allow")));
    let (request, dead) = (Facts::new().user("mallory"), Dead::default());
    let plan = world.rules.select(&request).plan(&request);
    assert!(block_on(plan.decide(&dead, &world.local)).refusal().is_some());
    assert_eq!(dead.0.load(Ordering::SeqCst), 0);
}

/// A store that answers about equal policies instead of the same.
struct Foreign;

impl Store for Foreign {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        let deny = |check: &Check<'p, '_>| {
            let policy: &'static Policy = Box::leak(Box::new(check.policy.clone()));
            let standing = Standing {
                limit: 1,
                remaining: 0,
                reset_after_nanos: 1,
                available_after_nanos: Some(1),
            };
            PolicyStatus::deny(policy, standing, Retry::After(1))
        };
        Ok(Decision::new(Timestamp::EPOCH, checks.iter().map(deny)))
    }

    async fn settle(&self, _: &Reservation, _: Cost) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::EPOCH)
    }

    async fn undo(&self, _: &Reservation) -> Result<Timestamp, StoreError> {
        Ok(Timestamp::EPOCH)
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        _: Key<'_>,
        _: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        self.decide(&[Check::new(policy, "")]).await
    }
}

#[test]
fn a_denial_is_one_whatever_it_is_about() {
    let rules = RuleSet::parse("[[rule]]\nname = 'r'\nlimits = ['9/h']").unwrap();
    let request = Facts::new();
    let plan = rules.select(&request).plan(&request);
    let ruling = block_on(plan.decide(&Foreign, &MemoryStore::new()));
    assert_eq!(Answer::of(ruling.refusal()), limited("r"));
}

/// What the whole limit grants is not never to be granted, though there is less of it for now and a part of that here.
#[test]
fn a_cost_that_a_lowered_part_does_not_grant_is_not_never_granted() {
    let mut world = World::new(
        "[[rule]]\nname = 'r'\nlimits = '10/min'\ncost = 8\non_store_error = 'local'\n\
         adaptive = { cpu = 'off', down = '50%' }",
    );
    world.rules = world.rules.with_clock(world.clock.clone());
    let adaptive = world.rules.rules()[0].adaptive().unwrap().clone();
    let vitals = Vitals { errors: Some(Percent::new(90)), ..Vitals::default() };
    adaptive.push(vitals, Duration::from_secs(3600));
    world.wait(1);
    assert_eq!(adaptive.percent(), 50);
    let request = Facts::new();
    let plan = world.rules.select(&request).plan(&request);
    let ruling = block_on(plan.decide(&Dead::shared_by(2), &world.local));
    let decision = ruling.decision().unwrap();
    assert!(!decision.is_allowed() && !decision.is_never(), "{decision:?}");
}
