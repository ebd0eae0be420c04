//! How closely instances are to keep to limits, written wrongly.

use insta::assert_snapshot;

use super::errors;

#[test]
fn words_that_are_no_consistency_are_told_with_those_that_are() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "near"
        limits = ["5/s"]
        consistency = "lease"
        [[rule]]
        name = "shouted"
        limits = ["5/s"]
        consistency = "Approximate"
        [[rule]]
        name = "like-none"
        limits = ["5/s"]
        consistency = "zzz"
        [[rule]]
        name = "empty"
        limits = ["5/s"]
        consistency = ""
    "#), @r#"
    dashpot.toml:4:16: error: `lease` is not a consistency; use exact, leased, approximate
      |
    4 | consistency = "lease"
      |                ^^^^^
      = did you mean `leased`?

    dashpot.toml:8:16: error: `Approximate` is not a consistency; use exact, leased, approximate
      |
    8 | consistency = "Approximate"
      |                ^^^^^^^^^^^
      = did you mean `approximate`?

    dashpot.toml:12:16: error: `zzz` is not a consistency; use exact, leased, approximate
       |
    12 | consistency = "zzz"
       |                ^^^

    dashpot.toml:16:16: error: `` is not a consistency; use exact, leased, approximate
       |
    16 | consistency = ""
       |                ^
    "#);
}

#[test]
fn other_types_than_a_word_or_a_time_are_told() {
    assert_snapshot!(errors(r#"
        [store]
        lease = 2
        reconcile = ["100ms"]
        [[rule]]
        name = "number"
        limits = ["5/s"]
        consistency = 1
        [[rule]]
        name = "list"
        limits = ["5/s"]
        consistency = ["leased"]
    "#), @r#"
    dashpot.toml:2:9: error: expected a time, as in "20ms", found a number
      |
    2 | lease = 2
      |         ^

    dashpot.toml:3:13: error: expected a time, as in "20ms", found a list
      |
    3 | reconcile = ["100ms"]
      |             ^^^^^^^^^

    dashpot.toml:7:15: error: expected one of exact, leased, approximate, found a number
      |
    7 | consistency = 1
      |               ^

    dashpot.toml:11:15: error: expected one of exact, leased, approximate, found a list
       |
    11 | consistency = ["leased"]
       |               ^^^^^^^^^^
    "#);
}

#[test]
fn keys_that_are_nearly_right_are_told_with_what_was_meant() {
    assert_snapshot!(errors(r#"
        [store]
        leases = "2s"
        reconsile = "100ms"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        consistancy = "leased"
    "#), @r#"
    dashpot.toml:2:1: error: unknown key `leases`
      |
    2 | leases = "2s"
      | ^^^^^^
      = did you mean `lease`?

    dashpot.toml:3:1: error: unknown key `reconsile`
      |
    3 | reconsile = "100ms"
      | ^^^^^^^^^
      = did you mean `reconcile`?

    dashpot.toml:7:1: error: unknown key `consistancy`
      |
    7 | consistancy = "leased"
      | ^^^^^^^^^^^
      = did you mean `consistency`?
    "#);
}

#[test]
fn times_out_of_range_are_told_with_the_range() {
    assert_snapshot!(errors(r#"
        [store]
        lease = "99ms"
        reconcile = "9ms"
    "#), @r#"
    dashpot.toml:2:10: error: a lease is between 100ms and 60s long
      |
    2 | lease = "99ms"
      |          ^^^^

    dashpot.toml:3:14: error: an interval is between 10ms and 60s long
      |
    3 | reconcile = "9ms"
      |              ^^^
    "#);
    assert_snapshot!(errors(r#"
        [store]
        lease = "61s"
        reconcile = "2min"
    "#), @r#"
    dashpot.toml:2:10: error: a lease is between 100ms and 60s long
      |
    2 | lease = "61s"
      |          ^^^

    dashpot.toml:3:14: error: an interval is between 10ms and 60s long
      |
    3 | reconcile = "2min"
      |              ^^^^
    "#);
}

#[test]
fn times_that_are_none_are_told() {
    for (time, told) in [
        ("", "a number is missing"),
        ("2", "a unit of time is missing"),
        ("soon", "a number is missing"),
        ("0s", "a time is longer than nothing"),
        ("2 sacks", "is not a unit of time"),
        ("2h", "more than an hour"),
    ] {
        for key in ["lease", "reconcile"] {
            let errors = errors(&format!("[store]\n{key} = '{time}'\n"));
            assert!(errors.starts_with("dashpot.toml:2:"), "{key} {time}: {errors}");
            assert!(errors.contains(told), "{key} {time}: {errors}");
        }
    }
}

#[test]
fn a_reload_with_it_leaves_the_last_rules() {
    let dir = crate::common::temp_dir::TempDir::new();
    let file = dir.write("rules.toml", "[[rule]]\nname = 'r'\nlimits = '5/s'\n");
    let rules = dashpot_rules::LiveRules::new(dashpot_rules::RuleSet::load(&file).unwrap());
    dir.write("rules.toml", "[[rule]]\nname = 'r'\nlimits = '5/s'\nconsistency = 'laesed'\n");
    let told = rules.reload(&file).expect_err("there is no such word").to_string();
    assert!(told.contains("rules.toml:4:16: error: `laesed`"), "{told}");
    assert!(told.contains("did you mean `leased`?"), "{told}");
    assert_eq!(rules.generation(), 1);
}
