//! Capacity: which gates a request has to pass, and as whom.

use dashpot::GateStatus;
use dashpot_rules::{Facts, Gates, RuleSet};

use super::{World, at};

const RULES: &str = "
[allow]
user = 'monitoring'
[block]
user = 'mallory'
[[priority]]
name = 'pay'
match.path = '/pay'
class = 'critical'
[[priority]]
name = 'reports'
match.path = '/reports'
class = 'background'
[[priority]]
name = 'hook'
match.path = '/hook'
weight = 'unlimited'
[[rule]]
name = 'all'
capacity = { limit = 4, places = 0 }
classes = { normal = '75%', background = '50%' }
[[rule]]
name = 'some'
match.path = '/some/*'
capacity = { limit = 1, places = 0 }
[[rule]]
name = 'rate'
limits = '100/h'
";

fn gates<'r>(rules: &'r RuleSet, request: &Facts) -> Gates<'r> {
    rules.select(request).plan(request).take_gates()
}

fn status(world: &World, rule: &str) -> GateStatus {
    world.rule(rule).gate().expect("a gate").status()
}

/// Who comes in, until nobody does.
fn fill(world: &World, path: &str) -> (usize, Vec<dashpot::Pass>) {
    let mut passes = Vec::new();
    let enter = || gates(&world.rules, &at(path)).try_enter().ok();
    let count = std::iter::from_fn(enter).take(20).map(|more| passes.extend(more)).count();
    (count, passes)
}

#[test]
fn only_rules_that_match_are_gates() {
    let world = World::new(RULES);
    let _in = gates(&world.rules, &at("/some/where")).try_enter().ok().unwrap();
    assert_eq!((status(&world, "all").in_flight, status(&world, "some").in_flight), (1, 1));
    let _more = gates(&world.rules, &at("/")).try_enter().ok().unwrap();
    assert_eq!((status(&world, "all").in_flight, status(&world, "some").in_flight), (2, 1));
    assert!(world.rule("rate").gate().is_none());
}

#[test]
fn each_class_may_fill_its_part() {
    let world = World::new(RULES);
    let (count, _background) = fill(&world, "/reports");
    assert_eq!(count, 2);
    let (count, _normal) = fill(&world, "/");
    assert_eq!(count, 1);
    let (count, _critical) = fill(&world, "/pay");
    assert_eq!(count, 1);
    assert_eq!(fill(&world, "/reports").0, 0);
}

#[test]
fn all_gates_are_entered_or_none() {
    let world = World::new(RULES);
    let first = gates(&world.rules, &at("/some/where")).try_enter().ok();
    for _ in 0..10 {
        assert!(gates(&world.rules, &at("/some/where")).try_enter().is_err());
    }
    assert_eq!(status(&world, "all").in_flight, 1, "who does not come in holds no place");
    assert_eq!(gates(&world.rules, &at("/some/where")).closed().unwrap().name(), "some");
    assert!(gates(&world.rules, &at("/")).closed().is_none());
    drop(first);
    assert_eq!(status(&world, "all").in_flight, 0);
}

#[test]
fn who_is_never_limited_comes_in_and_takes_up_room() {
    for request in [at("/hook"), at("/").user("monitoring")] {
        let world = World::new(RULES);
        let enter = || gates(&world.rules, &request).try_enter().expect("it is never full");
        let inside: Vec<_> = (0..10).map(|_| enter()).collect();
        assert_eq!(status(&world, "all").in_flight, 10);
        assert!(gates(&world.rules, &at("/pay")).try_enter().is_err());
        drop(inside);
        assert_eq!(status(&world, "all").in_flight, 0);
    }
}

/// A service that answers questions serves nothing itself: it leaves capacities out.
#[test]
fn who_only_asks_is_not_held_up() {
    let world = World::new(RULES);
    let counts = || (world.rule("all").tally().allowed(), world.rule("all").tally().denied());
    let (_, _inside) = fill(&world, "/pay");
    let before = counts();
    assert_eq!(world.passes(&at("/")), 100);
    assert_eq!(counts(), before);
    assert_eq!(status(&world, "all").in_flight, 4);
}

#[test]
fn a_shadow_lets_everybody_in() {
    let world = World::new("[[rule]]\nname = 'all'\nshadow = true\ncapacity = { limit = 2 }\n");
    let (count, inside) = fill(&world, "/");
    assert_eq!((count, status(&world, "all").in_flight), (20, 20));
    assert!(gates(&world.rules, &at("/")).closed().is_none());
    drop(inside);
    assert_eq!(status(&world, "all").in_flight, 0);
}

/// Blocked, denied or let in: each request is counted once, under the first priority that matches.
#[test]
fn priorities_are_counted() {
    let world = World::new(&RULES.replace("100/h", "3/h"));
    for path in ["/pay", "/pay", "/reports", "/reports", "/reports", "/hook", "/"] {
        let _ = world.ask(&at(path));
    }
    let counts =
        world.rules.priorities().map(|(name, tally)| (name, tally.allowed(), tally.denied()));
    assert_eq!(counts.collect::<Vec<_>>(), [("pay", 2, 0), ("reports", 1, 2), ("hook", 1, 0)]);
}
