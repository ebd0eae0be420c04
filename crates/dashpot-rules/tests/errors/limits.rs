//! Limits, and what goes with them.

use insta::assert_snapshot;

use super::errors;

#[test]
fn a_rule_without_limits_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        by = ["ip"]
    "#), @r#"
    dashpot.toml:2:9: error: this rule has no limits
      |
    2 | name = "api"
      |         ^^^
      = write limits = ["100/min"], or tiers.free = ["60/min"]
    "#);
}

#[test]
fn an_empty_list_of_limits_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = []
    "#), @r#"
    dashpot.toml:3:10: error: no limits
      |
    3 | limits = []
      |          ^^
      = write "unlimited" if there should be none
    "#);
}

#[test]
fn limits_that_are_none_are_told_to_the_letter() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = [
            "10/fortnight",
            "ten/s",
            "10",
            "10 per second",
            "10/s bust 20",
            "10/s burst 0",
            "10/0s",
            "99999999999999999999/s",
            "",
        ]
    "#), @r#"
    dashpot.toml:4:9: error: `fortnight` is not a unit of time; use s, min, h, day, week, month or year
      |
    4 |     "10/fortnight",
      |         ^^^^^^^^^

    dashpot.toml:5:6: error: expected a whole number, as in 100/min
      |
    5 |     "ten/s",
      |      ^^^

    dashpot.toml:6:8: error: expected `/` and a window, as in 100/min
      |
    6 |     "10",
      |        ^

    dashpot.toml:7:9: error: expected `/` and a window, as in 100/min
      |
    7 |     "10 per second",
      |         ^^^

    dashpot.toml:8:11: error: expected nothing more, or `burst N` after the window
      |
    8 |     "10/s bust 20",
      |           ^^^^^^^

    dashpot.toml:9:17: error: a burst of 0 never allows anything; write a count of 0 instead
      |
    9 |     "10/s burst 0",
      |                 ^

    dashpot.toml:10:9: error: a window must be longer than nothing
       |
    10 |     "10/0s",
       |         ^^

    dashpot.toml:11:6: error: more than 18446744073709551615
       |
    11 |     "99999999999999999999/s",
       |      ^^^^^^^^^^^^^^^^^^^^

    dashpot.toml:12:6: error: expected a whole number, as in 100/min
       |
    12 |     "",
       |      ^
    "#);
}

#[test]
fn two_limits_on_one_window_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["60/min", "1000/day", "100/60s"]
    "#), @r#"
    dashpot.toml:3:34: error: two limits on one window, `min`; the stricter is enough
      |
    3 | limits = ["60/min", "1000/day", "100/60s"]
      |                                  ^^^^^^^
    "#);
}

#[test]
fn two_rules_of_one_name_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["60/min"]
        [[rule]]
        name = "api"
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:5:9: error: there is a rule `api` already (line 2)
      |
    5 | name = "api"
      |         ^^^
    "#);
}

#[test]
fn two_rules_whose_counters_would_be_one_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["60/min", "1000/day"]
        [[rule]]
        name = "api-min"
        limits = ["5/s"]
    "#), @r#"
    dashpot.toml:5:9: error: the rules `api-min` and `api` would both count as `api-min`; rename one
      |
    5 | name = "api-min"
      |         ^^^^^^^
    "#);
}

#[test]
fn a_burst_on_a_window_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s burst 20"]
        algorithm = "fixed-window"
    "#), @r#"
    dashpot.toml:3:12: error: `burst` is the capacity of a bucket; windows have none, and a queue sets its own
      |
    3 | limits = ["10/s burst 20"]
      |            ^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_burst_beside_a_queue_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s burst 20"]
        algorithm = "leaky-bucket"
        queue = 5
    "#), @r#"
    dashpot.toml:3:12: error: `burst` is the capacity of a bucket; windows have none, and a queue sets its own
      |
    3 | limits = ["10/s burst 20"]
      |            ^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_queue_on_a_token_bucket_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s"]
        queue = 5
    "#), @"
    dashpot.toml:4:9: error: only a leaky-bucket has a queue
      |
    4 | queue = 5
      |         ^
    ");
}

#[test]
fn more_undelayed_than_there_are_places_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s"]
        algorithm = "leaky-bucket"
        queue = 5
        undelayed = 6
    "#), @"
    dashpot.toml:6:13: error: `undelayed` is at most the number of places in the queue
      |
    6 | undelayed = 6
      |             ^
    ");
}

#[test]
fn a_time_zone_without_a_calendar_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s"]
        zone = "Europe/Berlin"
    "#), @r#"
    dashpot.toml:4:9: error: a time zone goes with a fixed-window of whole days, weeks, months or years
      |
    4 | zone = "Europe/Berlin"
      |         ^^^^^^^^^^^^^
    "#);
}

#[test]
fn a_time_zone_nobody_knows_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/day"]
        algorithm = "fixed-window"
        zone = "Europe/Belin"
    "#), @r#"
    dashpot.toml:5:9: error: `Europe/Belin` is not a time zone; use a name such as Europe/Berlin, America/New_York or UTC
      |
    5 | zone = "Europe/Belin"
      |         ^^^^^^^^^^^^
    "#);
}

#[test]
fn a_rate_is_no_number_of_permits() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["10/s"]
        algorithm = "concurrency"
        [[rule]]
        name = "uploads"
        limits = ["5 concurrent"]
        algorithm = "sliding-log"
    "#), @r#"
    dashpot.toml:3:12: error: `10/s` does not fit concurrency: concurrency takes `N concurrent`, all others `N/WINDOW`
      |
    3 | limits = ["10/s"]
      |            ^^^^

    dashpot.toml:7:12: error: `5 concurrent` does not fit sliding-log: concurrency takes `N concurrent`, all others `N/WINDOW`
      |
    7 | limits = ["5 concurrent"]
      |            ^^^^^^^^^^^^
    "#);
}

#[test]
fn a_log_that_would_remember_too_much_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["20k/day"]
        algorithm = "sliding-log"
    "#), @r#"
    dashpot.toml:3:12: error: a sliding-log remembers each of its units, so it counts at most 10000; use sliding-window
      |
    3 | limits = ["20k/day"]
      |            ^^^^^^^
    "#);
}

#[test]
fn a_log_that_would_remember_too_much_by_its_weight_is_told() {
    assert_snapshot!(errors(r#"
        [[priority]]
        name = "critical"
        weight = 10
        match = { path = "/pay" }
        [[rule]]
        name = "api"
        limits = ["2k/day"]
        algorithm = "sliding-log"
    "#), @r#"
    dashpot.toml:7:12: error: with priority `critical` this is `20000/day`: a sliding-log remembers each of its units, so it counts at most 10000; use sliding-window
      |
    7 | limits = ["2k/day"]
      |            ^^^^^^
    "#);
}

#[test]
fn tiers_without_a_default_are_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        tiers.basic = ["60/min"]
        tiers.pro = ["600/min"]
    "#), @r#"
    dashpot.toml:2:9: error: who is on no tier gets which limits here?
      |
    2 | name = "api"
      |         ^^^
      = write default_tier = "basic" under [identity]
    "#);
}

#[test]
fn a_rule_without_the_default_tier_is_told() {
    assert_snapshot!(errors(r#"
        [identity]
        default_tier = "free"
        [[rule]]
        name = "api"
        tiers.free = ["60/min"]
        tiers.pro = ["600/min"]
        [[rule]]
        name = "uploads"
        tiers.basic = ["6/min"]
        tiers.pro = ["60/min"]
    "#), @r#"
    dashpot.toml:8:9: error: this rule has no limits for the default tier `free`, only for basic, pro
      |
    8 | name = "uploads"
      |         ^^^^^^^
    "#);
}

#[test]
fn limits_beside_tiers_are_told() {
    assert_snapshot!(errors(r#"
        [identity]
        default_tier = "free"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        tiers.free = ["60/min"]
    "#), @r#"
    dashpot.toml:6:1: error: `tiers` goes instead of `limits`, not with it
      |
    6 | tiers.free = ["60/min"]
      | ^^^^^
    "#);
}

#[test]
fn a_cost_of_nothing_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        cost = 0
    "#), @"
    dashpot.toml:4:8: error: a cost of 0 limits nothing; leave the rule out instead
      |
    4 | cost = 0
      |        ^
    ");
}

#[test]
fn a_cost_that_can_never_pass_is_told() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s", "100/day"]
        cost = 6
    "#), @"
    dashpot.toml:4:8: error: a cost of 6 can never pass `5/s`: nothing would
      |
    4 | cost = 6
      |        ^
    ");
}

/// What Redis cannot keep exactly is an error where it is written, if counts are kept there.
#[test]
fn limits_that_redis_cannot_keep_are_told() {
    let rule = "[[rule]]\nname = 'r'\nlimits = ['10000000000000000/s']\n";
    assert!(dashpot_rules::RuleSet::parse(rule).is_ok());
    let told = errors(&format!("[store]\nurl = 'redis://127.0.0.1'\n{rule}"));
    assert!(
        told.contains("dashpot.toml:5:12: error: 10000000000000000 is more than Redis"),
        "{told}"
    );
    let odd = "[[rule]]\nname = 'r'\nlimits = ['4611686018427387847/year']\n";
    let told = errors(&format!("[store]\nurl = 'redis://127.0.0.1'\n{odd}"));
    assert!(told.contains("5:12: error"), "{told}");
    let deep = "[[rule]]\nname = 'r'\nlimits = ['1/year burst 200']\n";
    let told = errors(&format!("[store]\nurl = 'redis://127.0.0.1'\n{deep}"));
    assert!(told.contains("more than 100 years"), "{told}");
    let weighed = "[[priority]]\nname = 'w'\nweight = 1000000\n";
    let fits = "[[rule]]\nname = 'r'\nlimits = ['100000000000/s']\n";
    let told = errors(&format!("[store]\nurl = 'redis://127.0.0.1'\n{weighed}{fits}"));
    assert!(told.contains("with priority `w`"), "{told}");
}

#[test]
fn prefixes_and_deadlines_that_are_none_are_told() {
    for wrong in ["prefix = ''", "prefix = 'a{b'", "prefix = 'a b'", "deadline = '0s'"] {
        let told = errors(&format!("[store]\nurl = 'redis://127.0.0.1'\n{wrong}\n"));
        assert!(told.contains("dashpot.toml:3:"), "{wrong}: {told}");
    }
}
