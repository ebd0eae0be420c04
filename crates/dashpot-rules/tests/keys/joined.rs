//! Several requests in one question: all of them pass, or none is counted.

use std::sync::Arc;

use dashpot::{Policy, Quota};
use dashpot_rules::{Asked, Facts, OnStoreError, Plan, Rule, Tally};
use dashpot_testkit::block_on;

use super::store_errors::Dead;
use super::{Answer, World, limited};

const RULES: &str = "
[[rule]]
name = 'each'
by = 'fact:who'
limits = '3/h'
[[rule]]
name = 'all'
limits = ['10/h', '20/day']
[[rule]]
name = 'tried'
by = 'fact:who'
limits = '2/h'
shadow = true
";

fn who(name: &str) -> Facts {
    Facts::new().set("who", name)
}

/// A plan of several, each so many times, and where each one's rules are.
fn joined<'r>(world: &'r World, asked: &[(&str, u64)]) -> (Plan<'r>, Vec<Vec<usize>>) {
    let mut plan = Plan::empty();
    let places = asked.iter().map(|(name, times)| {
        let request = who(name);
        plan.join(&world.rules.select(&request).plan(&request).times(*times))
    });
    let places = places.collect();
    (plan, places)
}

fn ask(world: &World, asked: &[(&str, u64)]) -> Answer {
    let (plan, _) = joined(world, asked);
    Answer::of(block_on(plan.decide(&world.store, &world.local)).refusal())
}

/// What remains of each policy of each rule, and whether it is enforced.
fn remaining(asked: &[Asked<'_, '_>]) -> Vec<(String, bool, Vec<u64>)> {
    let each = asked.iter().map(|one| {
        let left = one.statuses.iter().map(|status| status.remaining()).collect();
        (one.rule.name().to_owned(), one.enforced, left)
    });
    each.collect()
}

fn is(name: &str, enforced: bool, left: &[u64]) -> (String, bool, Vec<u64>) {
    (name.to_owned(), enforced, left.to_vec())
}

#[test]
fn what_both_ask_is_asked_once_at_the_higher_cost() {
    let world = World::new(RULES);
    let (plan, places) = joined(&world, &[("ann", 1), ("ben", 2), ("ann", 1)]);
    assert_eq!(places, [[0, 1, 2], [3, 1, 4], [0, 1, 2]]);
    let ruling = block_on(plan.decide(&world.store, &world.local));
    assert!(ruling.refusal().is_none());
    assert_eq!(
        remaining(&plan.asked(&ruling)),
        [
            is("each", true, &[2]),
            is("all", true, &[8, 18]),
            is("tried", false, &[1]),
            is("each", true, &[1]),
            is("tried", false, &[0]),
        ]
    );
}

#[test]
fn one_denial_leaves_all_as_they_were() {
    let world = World::new(RULES);
    assert_eq!(ask(&world, &[("ann", 3)]), Answer::Allowed);
    assert_eq!(ask(&world, &[("ben", 1), ("ann", 1)]), limited("each"));
    assert_eq!(ask(&world, &[("ben", 3)]), Answer::Allowed);
    let (plan, places) = joined(&world, &[("ben", 1), ("cat", 1)]);
    let ruling = block_on(plan.decide(&world.store, &world.local));
    let denied: Vec<_> = plan.denied(&ruling).map(|(rule, _)| rule.name()).collect();
    // By the one key that has nothing left, though another of the same rule has.
    assert_eq!(denied, ["each"]);
    let asked = plan.asked(&ruling);
    let left = |place: usize| remaining(&asked)[place].clone();
    assert_eq!(left(places[0][0]), is("each", true, &[0]));
    assert_eq!(left(places[1][0]), is("each", true, &[3]));
    assert_eq!(left(places[0][1]), is("all", true, &[4, 14]));
    // Those that only count are not asked then.
    assert_eq!(left(places[0][2]), is("tried", false, &[]));
}

#[test]
fn each_rule_is_counted_by_what_came_of_it() {
    let world = World::new(RULES);
    let tally = |name: &str| {
        let rule = world.rules.rules().iter().find(|rule| rule.name() == name).unwrap();
        (rule.tally().allowed(), rule.tally().denied(), rule.tally().would_have_denied())
    };
    assert_eq!(ask(&world, &[("ann", 3), ("ben", 1)]), Answer::Allowed);
    assert_eq!((tally("each"), tally("all")), ((2, 0, 0), (1, 0, 0)));
    assert_eq!(tally("tried"), (1, 0, 1));
    assert_eq!(ask(&world, &[("ann", 1), ("ben", 1)]), limited("each"));
    assert_eq!((tally("each"), tally("all")), ((2, 1, 0), (1, 0, 0)));
    // Who only looks is not counted.
    assert_eq!(ask(&world, &[("ann", 0), ("ben", 1)]), Answer::Allowed);
    assert_eq!((tally("each"), tally("all")), ((3, 1, 0), (2, 0, 0)));
}

#[test]
fn without_a_store_each_finds_its_own() {
    let world = World::new(
        "[[rule]]\nname = 'allow'\nlimits = '1/h'\non_store_error = 'allow'\n\
         [[rule]]\nname = 'local'\nby = 'fact:who'\nlimits = '4/h'\non_store_error = 'local'",
    );
    let (plan, places) = joined(&world, &[("ann", 1), ("ben", 3)]);
    let ruling = block_on(plan.decide(&Dead::shared_by(1), &world.local));
    assert!(ruling.refusal().is_none());
    let asked = remaining(&plan.asked(&ruling));
    assert_eq!(asked[places[0][0]], is("allow", true, &[]));
    assert_eq!(asked[places[0][1]], is("local", true, &[3]));
    assert_eq!(asked[places[1][1]], is("local", true, &[1]));
    let ruling = block_on(plan.decide(&Dead::shared_by(1), &world.local));
    let denied: Vec<_> = plan.denied(&ruling).map(|(_, key)| key.as_bytes().to_vec()).collect();
    assert_eq!(denied.len(), 1);
    assert!(denied[0].ends_with(b"ben"));
}

#[test]
fn a_rule_of_no_file_is_asked_as_often_as_it_is_named() {
    let world = World::new("");
    let policy = Policy::new("own", Quota::per_hour(5)).unwrap();
    let tally = Arc::new(Tally::default());
    let rule = Rule::detached("own", policy, false, OnStoreError::Local, tally.clone());
    let mut plan = Plan::empty();
    assert!(plan.is_empty());
    plan.ask(&rule, ["k", "v"], 2);
    plan.ask(&rule, ["k", "v"], 2);
    plan.ask(&rule, ["k", "w"], 1);
    assert_eq!(plan.len(), 3);
    let ruling = block_on(plan.decide(&world.store, &world.local));
    assert!(ruling.refusal().is_none());
    let left: Vec<_> = plan.asked(&ruling).iter().map(|one| one.statuses[0].remaining()).collect();
    assert_eq!(left, [1, 1, 4]);
    assert_eq!(tally.allowed(), 3);
    assert_eq!(
        Answer::of(block_on(plan.decide(&world.store, &world.local)).refusal()),
        limited("own")
    );
}
