//! `capacity`.

use insta::assert_snapshot;

use super::{each_is_fine, each_is_told, errors};

const RULE: &str = "[[rule]]\nname = 'worker'\n";

#[test]
fn mistakes_are_shown_with_a_hint() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "worker"
        by = ["ip"]
        capacity = { limits = 20, latency = "250" }

        [[rule]]
        name = "other"
        capacity = { limit = 0 }
    "#), @r#"
    dashpot.toml:3:6: error: `by` does not go with `capacity`, which is this process's and not a caller's
      |
    3 | by = ["ip"]
      |      ^^^^^^
      = write a rule of its own for it

    dashpot.toml:4:12: error: `limit` is missing here
      |
    4 | capacity = { limits = 20, latency = "250" }
      |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

    dashpot.toml:4:14: error: unknown key `limits`
      |
    4 | capacity = { limits = 20, latency = "250" }
      |              ^^^^^^
      = did you mean `limit`?

    dashpot.toml:4:41: error: a unit of time is missing here; use ms, s, min or h
      |
    4 | capacity = { limits = 20, latency = "250" }
      |                                         ^

    dashpot.toml:8:22: error: a capacity of 0 serves nobody
      |
    8 | capacity = { limit = 0 }
      |                      ^
    "#);
}

#[test]
fn it_is_a_table_with_a_limit() {
    each_is_told(
        RULE,
        &[
            ("capacity = 5", 12, "expected a table, found a number"),
            ("capacity = '5'", 13, "expected a table, found a text"),
            ("capacity = {}", 12, "`limit` is missing here"),
            ("capacity = { latency = '1s' }", 12, "`limit` is missing here"),
            ("capacity = { limit = 5, place = 1 }", 25, "unknown key `place`"),
        ],
    );
    each_is_fine(RULE, &["capacity.limit = 5", "[rule.capacity]\nlimit = 5\nlatency = '1s'"]);
}

const MOST: &str = "at most 1000000: they are all in the memory of this process";

#[test]
fn numbers_that_are_none_are_told() {
    each_is_told(
        RULE,
        &[
            ("capacity = { limit = 0 }", 22, "a capacity of 0 serves nobody"),
            ("capacity = { limit = -1 }", 22, "-1 is negative"),
            ("capacity = { limit = 1.5 }", 22, "expected a whole number, found a fraction"),
            ("capacity = { limit = '5' }", 23, "expected a whole number, found a text"),
            ("capacity = { limit = 5, places = -1 }", 34, "-1 is negative"),
            (
                "capacity = { limit = 5, places = 'all' }",
                35,
                "expected a whole number, found a text",
            ),
            ("capacity = { limit = 1_000_001 }", 22, MOST),
            ("capacity = { limit = 5, places = 1_000_001 }", 34, MOST),
            ("capacity = { limit = 5, latency = '1s', max = 1_000_001 }", 47, MOST),
        ],
    );
    each_is_fine(
        RULE,
        &[
            "capacity = { limit = 1, places = 0 }",
            "capacity = { limit = 1_000_000, latency = '1s' }",
            "capacity = { limit = 1_000_000, latency = '1s', places = 1_000_000 }",
        ],
    );
}

#[test]
fn bounds_that_leave_out_the_limit_are_told() {
    each_is_told(
        RULE,
        &[
            (
                "capacity = { limit = 5, latency = '1s', min = 0 }",
                47,
                "the least is between 1 and `limit`",
            ),
            (
                "capacity = { limit = 5, latency = '1s', min = 6 }",
                47,
                "the least is between 1 and `limit`",
            ),
            (
                "capacity = { limit = 5, latency = '1s', max = 4 }",
                47,
                "the most is no less than `limit`",
            ),
        ],
    );
    each_is_fine(RULE, &["capacity = { limit = 5, latency = '1s', min = 5, max = 5 }"]);
}

#[test]
fn what_is_for_a_limit_that_adapts_is_told_if_it_does_not() {
    for (key, value, column) in
        [("min", "2", 31), ("max", "9", 31), ("errors", "'5%'", 35), ("tick", "'1s'", 33)]
    {
        let line = format!("capacity = {{ limit = 5, {key} = {value} }}");
        each_is_told(RULE, &[(&line, column, &format!("`{key}` is for a limit that adapts"))]);
    }
    let told = errors(&format!("{RULE}capacity = {{ limit = 5, min = 2 }}\n"));
    assert!(told.contains("= say `latency`, as in latency = \"250ms\""), "{told}");
}

#[test]
fn parts_that_are_none_are_told() {
    each_is_told(
        RULE,
        &[
            (
                "capacity = { limit = 5, latency = '1s', errors = '101%' }",
                51,
                "a part is between 0% and 100%",
            ),
            ("capacity = { limit = 5, latency = '1s', errors = 'off' }", 51, "`off` is not a part"),
            (
                "capacity = { limit = 5, latency = '1s', errors = '1%..5%' }",
                51,
                "`1%..5%` is not a part",
            ),
            (
                "capacity = { limit = 5, latency = '1s', errors = 5 }",
                50,
                "expected a part, as in \"80%\", found a number",
            ),
        ],
    );
}

#[test]
fn times_out_of_range_are_told() {
    each_is_told(
        RULE,
        &[
            ("capacity = { limit = 5, latency = '0s' }", 36, "a time is longer than nothing"),
            ("capacity = { limit = 5, wait = '0s' }", 33, "a time is longer than nothing"),
            (
                "capacity = { limit = 5, wait = 1 }",
                32,
                "expected a time, as in \"20ms\", found a number",
            ),
            (
                "capacity = { limit = 5, latency = '1s', tick = '9ms' }",
                49,
                "a tick is between 10ms and 60s long",
            ),
            (
                "capacity = { limit = 5, latency = '1s', tick = '61s' }",
                49,
                "a tick is between 10ms and 60s long",
            ),
        ],
    );
    each_is_fine(
        RULE,
        &[
            "capacity = { limit = 5, latency = '1s', tick = '10ms' }",
            "capacity = { limit = 5, latency = '1s', tick = '1min', wait = '1h' }",
        ],
    );
}

/// It goes with a name, a match, classes, shadow and an answer; each of the others is told where it is.
#[test]
fn what_is_about_callers_does_not_go_with_it() {
    for (key, line, column) in [
        ("by", "by = ['ip']", 6),
        ("limits", "limits = ['5/s']", 10),
        ("tiers", "tiers.free = ['5/s']", 1),
        ("algorithm", "algorithm = 'concurrency'", 14),
        ("adaptive", "adaptive = {}", 12),
        ("consistency", "consistency = 'exact'", 16),
        ("queue", "queue = 1", 9),
        ("undelayed", "undelayed = 1", 13),
        ("zone", "zone = 'UTC'", 9),
        ("cost", "cost = 1", 8),
        ("settle", "settle = 'bytes'", 11),
        ("charge_on", "charge_on = [401]", 13),
        ("enforce_percent", "enforce_percent = 50", 19),
        ("on_store_error", "on_store_error = 'deny'", 19),
        ("absent", "absent = 'deny'", 11),
    ] {
        let before =
            "[identity]\ndefault_tier = 'free'\n[[rule]]\nname = 'w'\ncapacity.limit = 5\n";
        let words = format!(
            "`{key}` does not go with `capacity`, which is this process's and not a caller's"
        );
        each_is_told(before, &[(line, column, &words)]);
    }
    each_is_fine(
        "[[rule]]\nname = 'w'\ncapacity.limit = 5\n",
        &[
            "match = { path = '/a/*', method = 'POST' }",
            "classes = { normal = '80%', background = '50%' }",
            "shadow = true",
            "on_deny = { status = 529 }",
        ],
    );
}
