//! Requests that weigh more or less than others.

use dashpot_rules::{Fact, Facts, RuleSet};

use super::{Answer, World, limited};

const RULES: &str = "
[[priority]]
name = 'health'
match.path = '/health'
weight = 'unlimited'
[[priority]]
name = 'critical'
match.path = ['/pay', '/both']
weight = 10.0
[[priority]]
name = 'background'
match.path = ['/batch', '/both', '/health']
weight = 0.5
[[priority]]
name = 'least'
match.path = '/least'
weight = 0.000000001
[[rule]]
name = 'api'
by = 'user'
limits = '5/min'
";

fn at(path: &str) -> Facts {
    Facts::new().user("alice").with(Fact::Path, path)
}

#[test]
fn health_checks_are_never_limited() {
    assert_eq!(World::new(RULES).passes(&at("/health")), 100);
}

#[test]
fn limits_are_multiplied_and_at_least_one_is_left() {
    let world = World::new(RULES);
    assert_eq!(world.passes(&at("/pay")), 50);
    assert_eq!(world.passes(&at("/batch")), 2);
    assert_eq!(world.passes(&at("/least")), 1);
    assert_eq!(world.passes(&at("/")), 5, "each has counters of its own");
}

#[test]
fn the_first_that_matches_counts() {
    assert_eq!(World::new(RULES).passes(&at("/both")), 50);
}

#[test]
fn a_burst_has_the_same_weight() {
    let file = RULES.replace("5/min", "6/min burst 2");
    let world = World::new(&file);
    assert_eq!(world.passes(&at("/pay")), 20);
    assert_eq!(world.passes(&at("/batch")), 1);
}

#[test]
fn who_is_refused_with_one_weight_is_named_by_the_rule() {
    let world = World::new(RULES);
    world.passes(&at("/batch"));
    assert_eq!(world.ask(&at("/batch")), limited("api"));
    assert_eq!(world.denied("api"), 2);
    assert_eq!(world.ask(&at("/pay")), Answer::Allowed);
}

#[test]
fn a_cost_that_can_never_pass_with_a_weight_is_advised_on() {
    let file = RULES.replace("limits = '5/min'", "limits = '5/min'\ncost = 3");
    let rules = RuleSet::parse(&file).unwrap();
    let told: Vec<_> = rules.advice().iter().map(|problem| problem.message()).collect();
    let about = |priority: &str| told.iter().any(|message| message.contains(priority));
    assert!(about("`background`, which makes `2/min` of `5/min`"), "{told:?}");
    assert!(about("`least`") && !about("`critical`"), "{told:?}");
    assert_eq!(World::new(&file).passes(&at("/batch")), 0);
}
