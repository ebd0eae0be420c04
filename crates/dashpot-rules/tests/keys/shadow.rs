//! Rules that only count.

use dashpot_rules::{Fact, Facts};

use super::{Answer, World, ip, limited};

const SHADOW: &str = "
[[rule]]
name = 'shadow'
by = 'ip'
limits = '2/min'
shadow = true
[[rule]]
name = 'real'
by = 'ip'
limits = '4/min'
";

#[test]
fn a_shadow_never_decides_and_says_what_it_would_have_denied() {
    let world = World::new(SHADOW);
    assert_eq!(world.passes(&ip("1.1.1.1")), 4);
    assert_eq!(world.would_have_denied("shadow"), 2);
    assert_eq!(world.denied("shadow"), 0);
    assert_eq!(world.denied("real"), 1);
    assert_eq!(world.would_have_denied("real"), 0);
}

#[test]
fn a_shadow_is_charged_only_if_everything_enforced_passes() {
    let world = World::new(&SHADOW.replace("2/min", "5/h").replace("4/min", "1/s"));
    // Refused by the other rule again and again: the shadow is not charged.
    assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    for _ in 0..20 {
        assert_eq!(world.ask(&ip("1.1.1.1")), limited("real"));
    }
    for _ in 0..4 {
        world.wait(1);
        assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    }
    assert_eq!(world.would_have_denied("shadow"), 0);
    world.wait(1);
    assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    assert_eq!(world.would_have_denied("shadow"), 1);
}

#[test]
fn a_shadow_that_would_deny_keeps_no_other_shadow_from_counting() {
    let world = World::new(
        "[[rule]]\nname = 'one'\nlimits = '1/h'\nshadow = true\n\
         [[rule]]\nname = 'two'\nlimits = '3/h'\nshadow = true",
    );
    assert_eq!(world.passes(&Facts::new()), 100);
    assert_eq!(world.would_have_denied("one"), 99);
    assert_eq!(world.would_have_denied("two"), 97);
}

#[test]
fn shadows_ask_nothing_of_a_plan_that_is_enforced() {
    let world = World::new(SHADOW);
    let request = ip("1.1.1.1");
    let plan = world.rules.select(&request).plan(&request);
    let asked: Vec<_> = plan.checks().map(|check| check.policy.name()).collect();
    assert_eq!(asked, ["real"]);
    let explained = world.rules.explain(&request);
    assert!(!explained.rules[0].enforced && explained.rules[1].enforced);
}

/// The users a rule is enforced for.
fn enforced(file: &str) -> Vec<usize> {
    let world = World::new(file);
    let is_enforced = |number: &usize| {
        let request = Facts::new().user(format!("user-{number}")).with(Fact::Path, "/");
        world.rules.explain(&request).rules[0].enforced
    };
    (0..10_000).filter(is_enforced).collect()
}

#[test]
fn a_share_of_the_keys_is_enforced_and_always_the_same() {
    let file = |name: &str, percent: u32| {
        format!(
            "[[rule]]\nname = '{name}'\nby = 'user'\nlimits = '5/s'\nenforce_percent = {percent}"
        )
    };
    for percent in [0, 1, 20, 50, 99, 100] {
        let chosen = enforced(&file("r", percent));
        let (expected, slack) = (percent as usize * 100, 200);
        assert!(chosen.len().abs_diff(expected) <= slack, "{percent}: {}", chosen.len());
        assert_eq!(chosen, enforced(&file("r", percent)), "{percent}");
        if percent == 0 || percent == 100 {
            assert_eq!(chosen.len(), expected);
        }
    }
    // Who was in stays in when there are more.
    let (few, many) = (enforced(&file("r", 20)), enforced(&file("r", 50)));
    assert!(few.iter().all(|number| many.contains(number)));
    // Another rule chooses others, so that not everything happens to the same people.
    let others = enforced(&file("other", 20));
    let both = few.iter().filter(|number| others.contains(number)).count();
    assert!(both < few.len() / 2, "{both} of {}", few.len());
}

#[test]
fn keys_that_are_not_enforced_are_counted() {
    let world =
        World::new("[[rule]]\nname = 'r'\nby = 'user'\nlimits = '1/min'\nenforce_percent = 50");
    let mut refused = 0;
    for number in 0..200 {
        let request = Facts::new().user(format!("user-{number}"));
        assert_eq!(world.ask(&request), Answer::Allowed);
        refused += u64::from(world.ask(&request) != Answer::Allowed);
    }
    assert!((60..140).contains(&refused), "{refused}");
    assert_eq!(world.denied("r"), refused);
    assert_eq!(world.would_have_denied("r"), 200 - refused);
}

/// What would be refused for lack of a fact shows before it is enforced, and after.
#[test]
fn refusals_for_a_missing_fact_are_counted() {
    let text = "[[rule]]\nname = 'r'\nby = 'user'\nabsent = 'deny'\nlimits = ['9/h']\n";
    let world = World::new(&format!("{text}shadow = true"));
    assert_eq!(world.ask(&Facts::new()), Answer::Allowed);
    assert_eq!(world.rules.rules()[0].tally().would_have_denied(), 1);
    let world = World::new(text);
    assert_eq!(world.ask(&Facts::new()), Answer::Absent("r".into()));
    assert_eq!(world.rules.rules()[0].tally().denied(), 1);
}
