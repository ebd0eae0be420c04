//! Several rules on one request: all or nothing.

use std::time::Duration;

use dashpot_rules::{Fact, Facts};
use dashpot_testkit::block_on;

use super::{Answer, World, ip, limited};

const RULES: &str = "
[[rule]]
name = 'second'
by = 'ip'
limits = '1/s'
[[rule]]
name = 'day'
by = 'ip'
limits = '5/day'
[[rule]]
name = 'path'
match.path = '/slow'
limits = '1/h'
";

#[test]
fn a_denial_burns_no_other_quota() {
    let world = World::new(RULES);
    for _ in 0..5 {
        assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
        for _ in 0..50 {
            assert_ne!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
        }
        world.wait(1);
    }
    assert_eq!(world.ask(&ip("1.1.1.1")), limited("day"));
    assert_eq!(world.denied("second"), 250);
    assert_eq!(world.denied("day"), 51, "only when the day's five were used");
}

#[test]
fn a_refusal_names_the_rule_to_wait_for() {
    let world = World::new(RULES);
    let request = ip("1.1.1.1").with(Fact::Path, "/slow");
    assert_eq!(world.ask(&request), Answer::Allowed);
    // Both deny; waiting for `second` would not be enough.
    assert_eq!(world.ask(&request), limited("path"));
    assert_eq!((world.denied("second"), world.denied("path"), world.denied("day")), (1, 1, 0));

    let plan = world.rules.select(&request).plan(&request);
    let ruling = block_on(plan.decide(&world.store, &world.local));
    let decision = ruling.decision().unwrap();
    let first = decision.denier().unwrap();
    assert_eq!(first.policy().name(), "path");
    assert_eq!(decision.retry_after(), first.retry_after());
    assert_eq!(first.retry_after(), Some(Duration::from_secs(3600)));
}

#[test]
fn a_limit_that_never_allows_is_the_one_to_name() {
    let world = World::new(
        "[[rule]]\nname = 'slow'\nlimits = '1/year'\n[[rule]]\nname = 'never'\nlimits = '0/s'",
    );
    assert_eq!(world.ask(&Facts::new()), limited("never"));
}

#[test]
fn each_limit_of_a_rule_counts() {
    let world = World::new("[[rule]]\nname = 'api'\nby = 'ip'\nlimits = ['2/s', '3/day']");
    assert_eq!(world.passes(&ip("1.1.1.1")), 2);
    world.wait(2);
    assert_eq!(world.passes(&ip("1.1.1.1")), 1);
    assert_eq!(world.denied("api"), 2, "once for each request, not for each limit");
}

#[test]
fn a_cost_is_taken_whole() {
    let world = World::new("[[rule]]\nname = 'api'\nlimits = '10/min'\ncost = 3");
    assert_eq!(world.passes(&Facts::new()), 3);
}

#[test]
fn nothing_is_asked_where_nothing_matches() {
    let world = World::new("[[rule]]\nname = 'api'\nmatch.path = '/api/*'\nlimits = '0/s'");
    assert_eq!(world.passes(&Facts::new().with(Fact::Path, "/")), 100);
    let request = Facts::new().with(Fact::Path, "/");
    let plan = world.rules.select(&request).plan(&request);
    assert!(block_on(plan.decide(&world.store, &world.local)).decision().is_none());
}

#[test]
fn what_is_to_be_settled_is_handed_out_once() {
    let world = World::new(
        "[[rule]]\nname = 'tokens'\nlimits = '100/min'\ncost = 10\nsettle = 'header:x-cost'\n\
         [[rule]]\nname = 'uploads'\nlimits = '2 concurrent'\n\
         [[rule]]\nname = 'plain'\nlimits = '50/min'",
    );
    let request = Facts::new();
    let plan = world.rules.select(&request).plan(&request);
    let mut ruling = block_on(plan.decide(&world.store, &world.local));
    let pending = ruling.take_pending();
    let names: Vec<_> = pending.iter().map(|pending| pending.rule.name()).collect();
    assert_eq!(names, ["tokens", "uploads"]);
    assert!(ruling.take_pending().is_empty());
    assert_eq!(world.passes(&request), 1, "two may be in flight, one is");
    for pending in pending {
        assert!(!pending.local);
        world.store.settle_now(&pending.reservation, 0.into());
    }
    assert_eq!(world.ask(&request), Answer::Allowed, "it was given back");
}
