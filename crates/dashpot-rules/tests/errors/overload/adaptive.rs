//! `adaptive`.

use insta::assert_snapshot;

use super::{each_is_fine, each_is_told, errors};

const RULE: &str = "[[rule]]\nname = 'api'\nlimits = ['5/s']\n";

const NARROW: &str = "a band has room for a step: its upper end times `down` is above its lower end \
                      times `up`, or the factor would swing";

#[test]
fn mistakes_are_shown_with_a_hint() {
    assert_snapshot!(errors(r#"
        [[rule]]
        name = "api"
        limits = ["5/s"]
        adaptive = { cpu = "80%", erors = "off", floor = 50, tick = "5ms" }
    "#), @r#"
    dashpot.toml:4:21: error: `80%` is not a band
      |
    4 | adaptive = { cpu = "80%", erors = "off", floor = 50, tick = "5ms" }
      |                     ^^^
      = write where healthy ends and stressed begins, as in "50%..80%", or "off"

    dashpot.toml:4:27: error: unknown key `erors`
      |
    4 | adaptive = { cpu = "80%", erors = "off", floor = 50, tick = "5ms" }
      |                           ^^^^^
      = did you mean `errors`?

    dashpot.toml:4:50: error: expected a part, as in "80%", found a number
      |
    4 | adaptive = { cpu = "80%", erors = "off", floor = 50, tick = "5ms" }
      |                                                  ^^

    dashpot.toml:4:62: error: a tick is between 10ms and 60s long
      |
    4 | adaptive = { cpu = "80%", erors = "off", floor = 50, tick = "5ms" }
      |                                                              ^^^
    "#);
}

#[test]
fn it_is_a_table() {
    each_is_told(
        RULE,
        &[
            ("adaptive = true", 12, "expected a table, found true or false"),
            ("adaptive = 'on'", 13, "expected a table, found a text"),
            ("adaptive = 80", 12, "expected a table, found a number"),
            ("adaptive = []", 12, "expected a table, found a list"),
        ],
    );
    each_is_fine(
        RULE,
        &["adaptive = {}", "adaptive.cpu = 'off'", "[rule.adaptive]\nfloor = '20%'"],
    );
}

#[test]
fn what_is_no_band_is_told() {
    let what = "expected a band, as in \"50%..80%\", or \"off\", found";
    for (key, column) in [("cpu", 20), ("errors", 23)] {
        for (value, words) in [("false", "true or false"), ("80", "a number"), ("['1%']", "a list")]
        {
            let line = format!("adaptive = {{ {key} = {value} }}");
            each_is_told(RULE, &[(&line, column, &format!("{what} {words}"))]);
        }
        for value in
            ["", "80%", "Off", "50..80", "50%-80%", "50%...80%", "-1%..80%", "50%..", "..80%"]
        {
            let line = format!("adaptive = {{ {key} = '{value}' }}");
            each_is_told(RULE, &[(&line, column + 1, &format!("`{value}` is not a band"))]);
        }
    }
}

/// Nothing is below nothing, or above everything.
#[test]
fn a_band_that_has_no_outside_is_told() {
    let message =
        "nothing is below 0% or above 100%: the factor would never come back, or never fall";
    each_is_told(
        RULE,
        &[
            ("adaptive = { errors = '0%..5%' }", 24, message),
            ("adaptive = { errors = '0%..0%' }", 24, message),
            ("adaptive = { cpu = '50%..100%' }", 21, message),
            ("adaptive = { cpu = '50%..200%' }", 21, message),
        ],
    );
}

#[test]
fn a_band_without_room_for_a_step_is_told() {
    each_is_told(
        RULE,
        &[
            ("adaptive = { cpu = '70%..80%' }", 21, NARROW),
            ("adaptive = { cpu = '50%..50%' }", 21, NARROW),
            ("adaptive = { cpu = '80%..50%' }", 21, NARROW),
            // 49.5 % both: it has to be above.
            ("adaptive = { cpu = '45%..55%' }", 21, NARROW),
            ("adaptive = { errors = '4.5%..5.5%' }", 24, NARROW),
        ],
    );
    each_is_fine(
        RULE,
        &[
            "adaptive = { cpu = '45%..55.01%' }",
            "adaptive = { cpu = '60%..74%', errors = '0.5%..1%' }",
            "adaptive = { errors = '4%..5%' }",
            "adaptive = { cpu = 'off', errors = 'off', latency = '1s' }",
        ],
    );
}

/// It depends on the steps, for those bands, too, that are not written.
#[test]
fn steps_that_are_too_long_for_a_band_are_told() {
    for line in [
        "adaptive = { down = '60%', errors = 'off' }",
        "adaptive = { up = '150%', errors = 'off' }",
        "adaptive = { down = '20%', cpu = 'off' }",
        "adaptive = { down = '50%', cpu = 'off', errors = 'off', latency = '1s' }",
    ] {
        let told = errors(&format!("{RULE}{line}\n"));
        assert!(told.starts_with("dashpot.toml:4:12: error: "), "{line}: {told}");
        assert!(told.contains("step"), "{line}: {told}");
    }
    each_is_fine(
        RULE,
        &[
            "adaptive = { down = '70%' }",
            "adaptive = { up = '140%' }",
            "adaptive = { down = '20%', cpu = 'off', errors = 'off' }",
            "adaptive = { down = '50%', cpu = '20%..80%', errors = '1%..5%' }",
            "adaptive = { down = '56%', cpu = 'off', errors = 'off', latency = '1s' }",
        ],
    );
}

#[test]
fn steps_and_floors_that_lead_nowhere_are_told() {
    each_is_told(
        RULE,
        &[
            ("adaptive = { down = '100%' }", 22, "a step down is between 1% and 99%"),
            ("adaptive = { down = '110%' }", 22, "a step down is between 1% and 99%"),
            ("adaptive = { up = '100%' }", 20, "a step up is between 101% and 1000%"),
            ("adaptive = { up = '90%' }", 20, "a step up is between 101% and 1000%"),
            ("adaptive = { floor = '0%' }", 23, "a floor is between 1% and 100%"),
            ("adaptive = { floor = '101%' }", 23, "a floor is between 1% and 100%"),
            ("adaptive = { floor = 'low' }", 23, "`low` is not a part"),
            ("adaptive = { up = '110' }", 20, "`110` is not a part"),
            ("adaptive = { up = '99999999%' }", 20, "`99999999%` is not a part"),
            ("adaptive = { down = 0.9 }", 21, "expected a part, as in \"80%\", found a fraction"),
        ],
    );
    each_is_fine(RULE, &["adaptive = { floor = '1%' }", "adaptive = { floor = '100%' }"]);
}

#[test]
fn times_out_of_range_are_told() {
    each_is_told(
        RULE,
        &[
            ("adaptive = { tick = '9ms' }", 22, "a tick is between 10ms and 60s long"),
            ("adaptive = { tick = '61s' }", 22, "a tick is between 10ms and 60s long"),
            ("adaptive = { tick = '0s' }", 22, "a time is longer than nothing"),
            ("adaptive = { tick = 1 }", 21, "expected a time, as in \"20ms\", found a number"),
            ("adaptive = { latency = '0s' }", 25, "a time is longer than nothing"),
            ("adaptive = { latency = 250 }", 24, "expected a time, as in \"20ms\", found a number"),
        ],
    );
    each_is_fine(RULE, &["adaptive = { tick = '10ms' }", "adaptive = { tick = '1min' }"]);
}

#[test]
fn it_does_not_go_with_units_that_are_taken_in_advance() {
    let rule = |word: &str| format!("{RULE}consistency = '{word}'\n");
    let words = "units that are taken in advance are taken of the whole limit; leave out \
                 `consistency` or `adaptive`";
    for word in ["leased", "approximate"] {
        each_is_told(&rule(word), &[("adaptive = {}", 12, words)]);
    }
    each_is_fine(&rule("exact"), &["adaptive = {}"]);
}

#[test]
fn it_is_no_limit() {
    let told = errors("[[rule]]\nname = 'api'\nadaptive = {}\n");
    assert!(told.starts_with("dashpot.toml:2:9: error: this rule has no limits"), "{told}");
}
