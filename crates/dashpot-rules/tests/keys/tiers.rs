//! Tiers.

use dashpot_rules::Facts;

use super::{Answer, World, limited};

const RULES: &str = "
[identity]
default_tier = 'free'
[[rule]]
name = 'api'
by = 'user'
tiers.pro = ['10/min', '100/day']
tiers.free = ['3/min', '50/day']
";

fn alice(tier: &str) -> Facts {
    Facts::new().user("alice").tier(tier)
}

#[test]
fn each_tier_has_its_limits() {
    let world = World::new(RULES);
    assert_eq!(world.passes(&Facts::new().user("bob").tier("free")), 3);
    assert_eq!(world.passes(&alice("pro")), 10);
}

#[test]
fn who_has_no_tier_or_an_unknown_one_gets_the_default() {
    let world = World::new(RULES);
    assert_eq!(world.passes(&Facts::new().user("alice")), 3);
    assert_eq!(world.passes(&Facts::new().user("bob").tier("platinum")), 3);
    assert_eq!(world.passes(&Facts::new().user("carol").tier("PRO")), 3);
    assert_eq!(world.passes(&Facts::new().user("dave").tier("")), 3);
}

#[test]
fn an_upgrade_keeps_what_was_used() {
    let world = World::new(RULES);
    assert_eq!(world.passes(&alice("free")), 3);
    assert_eq!(world.passes(&alice("pro")), 7, "three of the ten are used");
    // And back: more is used than there was.
    assert_eq!(world.ask(&alice("free")), limited("api"));
    world.wait(200);
    assert_eq!(world.passes(&alice("free")), 3);
}

#[test]
fn an_upgrade_keeps_what_was_used_with_one_limit_each() {
    let world = World::new(
        "[identity]\ndefault_tier = 'free'\n\
         [[rule]]\nname = 'api'\nby = 'user'\nalgorithm = 'sliding-window'\n\
         tiers.free = '3/h'\ntiers.pro = '10/h'",
    );
    assert_eq!(world.passes(&alice("free")), 3);
    assert_eq!(world.passes(&alice("pro")), 7);
}

#[test]
fn an_unlimited_tier_is_not_limited() {
    let world = World::new(
        "[identity]\ndefault_tier = 'free'\n\
         [[rule]]\nname = 'api'\nby = 'user'\ntiers.free = '1/h'\ntiers.staff = 'unlimited'",
    );
    assert_eq!(world.passes(&alice("staff")), 100);
    assert_eq!(world.passes(&alice("free")), 1);
    assert_eq!(world.ask(&alice("staff")), Answer::Allowed);
}

/// Callers that share a key are not one caller that changes its plan all the time.
#[test]
fn those_nobody_knows_are_counted_apart_by_tier() {
    let world = World::new(&RULES.replace("by = 'user'", "by = 'ip'"));
    let caller = |tier: &str| Facts::new().ip("192.0.2.1".parse().unwrap()).tier(tier);
    assert_eq!(world.passes(&caller("free")), 3);
    assert_eq!(world.passes(&caller("pro")), 10);
    assert_eq!(world.passes(&caller("free")), 0);
    // And with nothing to count by, too.
    let world = World::new(&RULES.replace("by = 'user'", ""));
    assert_eq!(world.passes(&caller("free")), 3);
    assert_eq!(world.passes(&caller("pro")), 10);
    assert_eq!(world.passes(&caller("free")), 0);
}
