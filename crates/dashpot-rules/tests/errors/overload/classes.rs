//! `classes`, and the class of a priority.

use insta::assert_snapshot;

use super::{each_is_fine, each_is_told, errors, parse};

const RULE: &str = "[[rule]]\nname = 'fleet'\nlimits = ['10 concurrent']\n";

const IN_FLIGHT: &str =
    "classes share what is in flight: they go with `concurrent` limits, and with `capacity`";

#[test]
fn mistakes_are_shown_with_a_hint() {
    assert_snapshot!(errors(r#"
        [[priority]]
        name = "pay"
        match = { path = "/pay" }

        [[priority]]
        name = "reports"
        class = "Background"

        [[rule]]
        name = "fleet"
        limits = ["10 concurrent"]
        classes = { normal = "80", background = "50%", critical = "100%" }
    "#), @r#"
    dashpot.toml:2:9: error: this priority has neither a weight nor a class
      |
    2 | name = "pay"
      |         ^^^
      = write weight = 10.0, or class = "critical"

    dashpot.toml:7:10: error: `Background` is not a class; use background, normal, critical
      |
    7 | class = "Background"
      |          ^^^^^^^^^^
      = did you mean `background`?

    dashpot.toml:12:23: error: `80` is not a part
       |
    12 | classes = { normal = "80", background = "50%", critical = "100%" }
       |                       ^^
       = write it in percent, as in "80%" or "0.5%"

    dashpot.toml:12:48: error: unknown key `critical`
       |
    12 | classes = { normal = "80", background = "50%", critical = "100%" }
       |                                                ^^^^^^^^
       = known here: normal, background
    "#);
}

#[test]
fn a_priority_has_a_weight_or_a_class() {
    let told = errors("[[priority]]\nname = 'p'\nmatch.path = '/p'\n");
    let words = "dashpot.toml:2:9: error: this priority has neither a weight nor a class";
    assert!(told.starts_with(words), "{told}");
    for line in ["weight = 2", "class = 'normal'", "weight = 'unlimited'\nclass = 'background'"] {
        each_is_fine("[[priority]]\nname = 'p'\n", &[line]);
    }
}

#[test]
fn words_that_are_no_class_are_told_with_those_that_are() {
    let known = "background, normal, critical";
    let no = |word: &str| format!("`{word}` is not a class; use {known}");
    let found = |what: &str| format!("expected one of {known}, found {what}");
    each_is_told(
        "[[priority]]\nname = 'p'\n",
        &[
            ("class = 'Critical'", 10, &no("Critical")),
            ("class = 'high'", 10, &no("high")),
            ("class = ''", 10, &no("")),
            ("class = 1", 9, &found("a number")),
            ("class = ['critical']", 9, &found("a list")),
        ],
    );
    let told = errors("[[priority]]\nname = 'p'\nclass = 'critcal'\n");
    assert!(told.contains("did you mean `critical`?"), "{told}");
}

#[test]
fn classes_share_only_what_is_in_flight() {
    let line = "classes = { normal = '80%', background = '50%' }";
    for limits in ["limits = ['5/s']", "limits = ['5/s', '10 concurrent']", "limits = 'unlimited'"]
    {
        let rule = format!("[[rule]]\nname = 'fleet'\n{limits}\n");
        each_is_told(&rule, &[(line, 11, IN_FLIGHT)]);
    }
    let tiers = |pro: &str| {
        format!(
            "[identity]\ndefault_tier = 'free'\n[[rule]]\nname = 'fleet'\n\
             tiers.free = '5 concurrent'\ntiers.pro = '{pro}'\n"
        )
    };
    each_is_told(&tiers("50/s"), &[(line, 11, IN_FLIGHT)]);
    each_is_fine(&tiers("50 concurrent"), &[line]);
    each_is_fine(RULE, &[line, "algorithm = 'concurrency'\nclasses = { background = '1%' }"]);
}

#[test]
fn what_is_less_important_fills_no_more() {
    let words = "what is background may not fill more than what is normal";
    each_is_told(RULE, &[("classes = { normal = '50%', background = '80%' }", 43, words)]);
    each_is_fine(
        RULE,
        &[
            "classes = { normal = '80%', background = '80%' }",
            "classes = { background = '50%' }",
            "classes = { normal = '100%' }",
            "classes = { normal = '50%' }",
        ],
    );
}

#[test]
fn it_is_a_table_with_a_class() {
    each_is_told(
        RULE,
        &[
            ("classes = '80%'", 12, "expected a table, found a text"),
            ("classes = []", 11, "expected a table, found a list"),
            ("classes = {}", 11, "no class is named here"),
        ],
    );
    // What is critical may fill it all.
    let told = errors(&format!("{RULE}classes = {{ background = '5%', critical = '50%' }}\n"));
    let words = "dashpot.toml:4:32: error: unknown key `critical`";
    assert!(told.starts_with(words), "{told}");
    assert!(told.contains("known here: normal, background"), "{told}");
}

#[test]
fn nothing_fills_more_than_all() {
    let told = errors(&format!("{RULE}classes = {{ normal = '101%', background = '5%' }}\n"));
    let words = "dashpot.toml:4:23: error: what a class may fill is between 1% and 100%";
    assert!(told.starts_with(words), "{told}");
}

/// One mistake is one mistake: a class whose part is wrong is named all the same.
#[test]
fn parts_that_are_none_are_told_once() {
    each_is_told(
        RULE,
        &[
            ("classes = { background = '0%' }", 27, "what a class may fill is between 1% and 100%"),
            (
                "classes = { background = '12.5%' }",
                27,
                "what a class may fill is told in whole percents",
            ),
            ("classes = { background = '50' }", 27, "`50` is not a part"),
            ("classes = { background = '-5%' }", 27, "`-5%` is not a part"),
            (
                "classes = { background = 0.5 }",
                26,
                "expected a part, as in \"80%\", found a fraction",
            ),
            ("classes = { background = 50 }", 26, "expected a part, as in \"80%\", found a number"),
        ],
    );
}

/// Whoever follows the page makes no mistake.
#[test]
fn what_the_page_shows_can_be_loaded() {
    let page = include_str!("../../../../../docs/overload.md");
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split("```").next());
    assert!(blocks.map(|block| parse(block).map(drop)).all(|result| result == Ok(())));
}
