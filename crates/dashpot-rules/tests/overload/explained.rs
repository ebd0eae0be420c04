//! What is explained: classes, lower limits and capacities, as they are now.

use insta::assert_snapshot;

use super::{World, at};

const RULES: &str = "
[[priority]]
name = 'pay'
match.path = '/pay'
weight = 2
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
name = 'rate'
limits = '100/s'
adaptive = { cpu = 'off' }
[[rule]]
name = 'fleet'
limits = '10 concurrent'
classes = { normal = '80%', background = '50%' }
[[rule]]
name = 'worker'
capacity = { limit = 20, latency = '250ms', places = 3, wait = '2s' }
[[rule]]
name = 'shadow'
capacity = { limit = 5 }
shadow = true
";

#[test]
fn a_request_of_no_priority() {
    let world = World::new(RULES);
    world.suffer(81);
    assert_snapshot!(world.rules.explain(&at("/")), @"
    rule `rate` (all requests): key one for all
        rate: 100/s, token-bucket, at 81 %
    rule `fleet` (all requests): key one for all
        fleet: 10 concurrent, concurrency, at 80 %
    rule `worker` (all requests): key one for all
        20 at once, adapting to 250ms and 5% of errors between 1 and 200, every 100ms, 3 may wait for 2s
    rule `shadow` (all requests), only counted: key one for all
        5 at once, 5 may wait for 1s
    ");
}

#[test]
fn a_request_of_a_class() {
    let world = World::new(RULES);
    assert_snapshot!(world.rules.explain(&at("/reports")), @"
    priority `reports`, class background
    rule `rate` (all requests): key one for all
        rate: 100/s, token-bucket
    rule `fleet` (all requests): key one for all
        fleet: 10 concurrent, concurrency, at 50 %
    rule `worker` (all requests): key one for all
        20 at once, adapting to 250ms and 5% of errors between 1 and 200, every 100ms, 3 may wait for 2s
    rule `shadow` (all requests), only counted: key one for all
        5 at once, 5 may wait for 1s
    ");
    let explained = world.rules.explain(&at("/pay"));
    let priority = explained.priority.expect("a priority");
    assert_eq!(priority, ("pay".to_owned(), "weight 2, class critical".to_owned()));
}

#[test]
fn a_request_that_is_never_limited() {
    assert_snapshot!(World::new(RULES).rules.explain(&at("/hook")), @"
    allowed: priority `hook` is unlimited
    priority `hook`, weight unlimited
    rule `worker` (all requests): key one for all
        20 at once, adapting to 250ms and 5% of errors between 1 and 200, every 100ms, 3 may wait for 2s
    rule `shadow` (all requests), only counted: key one for all
        5 at once, 5 may wait for 1s
    ");
}

#[test]
fn whether_a_capacity_can_deny() {
    let explained = World::new(RULES).rules.explain(&at("/"));
    let enforced = |name: &str| {
        explained.rules.iter().find(|rule| rule.name == name).expect("it matches").enforced
    };
    assert!(enforced("worker") && !enforced("shadow"));
}
