//! Keys: different callers have different ones, whatever they send.

use dashpot_rules::{Fact, Facts, RuleSet};
use proptest::prelude::*;

use super::{Answer, World, ip, keys};

fn header(name: &str) -> Fact {
    Fact::Header(name.to_owned())
}

/// Values that try to look like several.
fn value() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        1 => Just(None),
        4 => "[a|:=,\\x00\\x01]{0,4}".prop_map(Some),
        1 => "a{126,131}".prop_map(Some),
    ]
}

fn three(values: &[Option<String>]) -> Facts {
    let names = ["x-a", "x-b", "x-c"];
    names.iter().zip(values).fold(Facts::new(), |facts, (name, value)| match value {
        Some(value) => facts.with(header(name), value.as_str()),
        None => facts,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn two_combinations_never_have_one_key(
        one in prop::collection::vec(value(), 3),
        two in prop::collection::vec(value(), 3),
    ) {
        let rules = RuleSet::parse(
            "[[rule]]\nname = 'r'\nby = ['header:x-a', 'header:x-b', 'header:x-c']\nlimits = '5/s'"
        ).unwrap();
        let same = keys(&rules, &three(&one)) == keys(&rules, &three(&two));
        prop_assert_eq!(same, one == two);
    }

    #[test]
    fn alternatives_never_have_one_key_if_different_facts_counted(
        one in prop::collection::vec(value(), 3),
        two in prop::collection::vec(value(), 3),
    ) {
        let rules = RuleSet::parse(
            "[[rule]]\nname = 'r'\nby = ['header:x-a | header:x-b | header:x-c']\nlimits = '5/s'"
        ).unwrap();
        let first = |values: &[Option<String>]| {
            values.iter().enumerate().find_map(|(at, value)| value.clone().map(|v| (at, v)))
        };
        let same = keys(&rules, &three(&one)) == keys(&rules, &three(&two));
        prop_assert_eq!(same, first(&one) == first(&two));
    }
}

#[test]
fn a_user_called_like_an_address_is_not_that_address() {
    let rules = "[[rule]]\nname = 'r'\nby = 'user | ip'\nlimits = '1/min'";
    let world = World::new(rules);
    assert_eq!(world.ask(&ip("1.2.3.4")), Answer::Allowed);
    assert_eq!(world.ask(&Facts::new().user("1.2.3.4")), Answer::Allowed);
    assert_eq!(world.ask(&ip("1.2.3.4").user("bob")), Answer::Allowed);
    // The address counts for those of whom nothing else is known.
    assert_ne!(world.ask(&ip("1.2.3.4")), Answer::Allowed);
}

#[test]
fn a_value_of_any_length_makes_a_short_key() {
    let file = "[[rule]]\nname = 'r'\nby = ['header:x-a', 'path', 'user']\nlimits = '5/s'";
    let rules = RuleSet::parse(file).unwrap();
    let long = "a".repeat(100_000);
    let facts = |end: &str| {
        let long = format!("{long}{end}");
        Facts::new()
            .with(header("x-a"), long.as_str())
            .with(Fact::Path, format!("/{long}"))
            .user(long.as_str())
    };
    let one = keys(&rules, &facts("1"));
    assert!(one[0].len() < 500, "{}", one[0].len());
    assert_ne!(one, keys(&rules, &facts("2")), "what is cut short is still told apart");
}

#[test]
fn a_short_value_cannot_stand_for_a_long_one() {
    let file = "[[rule]]\nname = 'r'\nby = 'header:x-a'\nlimits = '5/s'";
    let rules = RuleSet::parse(file).unwrap();
    let long = Facts::new().with(header("x-a"), "a".repeat(200));
    // What the long one is known by is no secret; somebody may send just that.
    let shown = rules.explain(&long).facts[0].value.clone().unwrap();
    let short = Facts::new().with(header("x-a"), shown);
    assert_ne!(keys(&rules, &long), keys(&rules, &short));
}

#[test]
fn a_missing_fact_opens_no_hole() {
    let world = World::new("[[rule]]\nname = 'r'\nby = 'user'\nlimits = '2/min'");
    // Without a user, all share one counter, whatever else they say.
    assert_eq!(world.ask(&Facts::new()), Answer::Allowed);
    assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    assert_eq!(world.ask(&ip("2.2.2.2")), super::limited("r"));
    assert_eq!(world.ask(&Facts::new().user("alice")), Answer::Allowed);
}

#[test]
fn an_empty_value_is_not_an_absent_one() {
    let world = World::new("[[rule]]\nname = 'r'\nby = 'user'\nlimits = '1/min'");
    assert_eq!(world.ask(&Facts::new()), Answer::Allowed);
    assert_eq!(world.ask(&Facts::new().user("")), Answer::Allowed);
}

#[test]
fn who_lacks_one_of_two_facts_shares_with_those_who_have_the_other() {
    let world = World::new("[[rule]]\nname = 'r'\nby = ['user', 'ip']\nlimits = '1/min'");
    assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    assert_eq!(world.ask(&ip("2.2.2.2")), Answer::Allowed);
    assert_eq!(world.ask(&ip("1.1.1.1")), super::limited("r"));
    assert_eq!(world.ask(&Facts::new().user("alice")), Answer::Allowed);
    assert_eq!(world.ask(&Facts::new()), Answer::Allowed);
}

#[test]
fn a_rule_may_do_without_those_who_lack_a_fact() {
    let file = "[[rule]]\nname = 'r'\nby = 'user'\nlimits = '1/min'\nabsent = 'skip'\n\
                [[rule]]\nname = 'all'\nby = 'ip'\nlimits = '3/min'";
    let world = World::new(file);
    assert_eq!(world.passes(&ip("1.1.1.1")), 3);
    assert_eq!(world.passes(&ip("2.2.2.2").user("alice")), 1);
}

#[test]
fn a_rule_may_refuse_those_who_lack_a_fact_and_charge_nobody() {
    let file = "[[rule]]\nname = 'all'\nby = 'ip'\nlimits = '2/min'\n\
                [[rule]]\nname = 'r'\nby = 'user'\nlimits = '5/min'\nabsent = 'deny'";
    let world = World::new(file);
    for _ in 0..5 {
        assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Absent("r".into()));
    }
    assert_eq!(world.passes(&ip("1.1.1.1").user("alice")), 2);
}

#[test]
fn a_shadow_refuses_nobody_who_lacks_a_fact() {
    let file =
        "[[rule]]\nname = 'r'\nby = 'user'\nlimits = '1/min'\nabsent = 'deny'\nshadow = true";
    let world = World::new(file);
    assert_eq!(world.passes(&Facts::new()), 100);
}

#[test]
fn a_rule_without_by_has_one_counter() {
    let world = World::new("[[rule]]\nname = 'r'\nlimits = '2/min'");
    assert_eq!(world.ask(&Facts::new().user("alice")), Answer::Allowed);
    assert_eq!(world.ask(&ip("1.1.1.1")), Answer::Allowed);
    assert_eq!(world.ask(&Facts::new().user("bob")), super::limited("r"));
}

#[test]
fn a_parameter_of_the_path_is_a_fact() {
    let file = "[[rule]]\nname = 'r'\nmatch.path = ['/users/{id}', '/u/{id}/*']\n\
                by = 'param:id'\nlimits = '1/min'";
    let world = World::new(file);
    let at = |path: &str| Facts::new().with(Fact::Path, path);
    assert_eq!(world.ask(&at("/users/7")), Answer::Allowed);
    assert_eq!(world.ask(&at("/u/7/posts/1")), super::limited("r"));
    assert_eq!(world.ask(&at("/users/8")), Answer::Allowed);
    // Nor does another way to write it help.
    assert_eq!(world.ask(&at("//users/%38/")), super::limited("r"));
    // A fact of that name that somebody sets is another one.
    assert_eq!(world.ask(&at("/users/8").with(Fact::Param("id".into()), "9")), super::limited("r"),);
}

#[test]
fn rules_do_not_share_counters() {
    let file = "[[rule]]\nname = 'a'\nby = 'ip'\nmatch.path = '/a'\nlimits = '1/min'\n\
                [[rule]]\nname = 'b'\nby = 'ip'\nmatch.path = '/b'\nlimits = '1/min'";
    let world = World::new(file);
    assert_eq!(world.passes(&ip("1.1.1.1").with(Fact::Path, "/a")), 1);
    assert_eq!(world.passes(&ip("1.1.1.1").with(Fact::Path, "/b")), 1);
}
