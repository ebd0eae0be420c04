//! What is told about a file that has changed.

use dashpot_rules::{RuleSet, diff};

fn changes(before: &str, after: &str) -> Vec<String> {
    let parse = |file: &str| RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}"));
    diff(&parse(before), &parse(after))
}

fn rule(rest: &str) -> String {
    format!("[[rule]]\nname = 'r'\n{rest}\n")
}

/// One thing is different, and it is told so.
#[track_caller]
fn told(before: &str, after: &str, words: &str) {
    let expected = format!("rule `r`: {words}; counts go on");
    assert_eq!(changes(&rule(before), &rule(after)), [expected]);
}

const USUAL: &str = "cpu 50%..80%, errors 1%..5%, by 90% and 110% to 50%, every 1s";

#[test]
fn what_adapts_and_how() {
    let with = |settings: &str| format!("limits = '5/s'\nadaptive = {{ {settings} }}");
    told("limits = '5/s'", &with(""), &format!("adaptive no → {USUAL}"));
    told(&with(""), "limits = '5/s'", &format!("adaptive {USUAL} → no"));
    for (settings, expected) in [
        ("cpu = 'off'", USUAL.replace("cpu 50%..80%", "cpu off")),
        ("errors = '2%..5%'", USUAL.replace("1%..5%", "2%..5%")),
        ("latency = '250ms'", USUAL.replace("5%, by", "5%, latency 250ms, by")),
        ("floor = '20%'", USUAL.replace("to 50%", "to 20%")),
        ("down = '80%'", USUAL.replace("by 90%", "by 80%")),
        ("up = '105%'", USUAL.replace("110%", "105%")),
        ("tick = '2s'", USUAL.replace("1s", "2s")),
    ] {
        told(&with(""), &with(settings), &format!("adaptive {USUAL} → {expected}"));
    }
    let written = "tick = '1s', cpu = '50%..80%', errors = '1%..5%', floor = '50%', down = '90%', up = '110%'";
    assert_eq!(changes(&rule(&with("")), &rule(&with(written))), [""; 0]);
}

#[test]
fn capacities() {
    let with = |settings: &str| format!("capacity = {{ limit = 5, {settings} }}");
    let told = |before: &str, after: &str, words: &str| {
        told(&with(before), &with(after), &format!("limits {words}"));
    };
    told("places = 5", "places = 6", "5 at once, 5 may wait for 1s → 5 at once, 6 may wait for 1s");
    told(
        "wait = '1s'",
        "wait = '2s'",
        "5 at once, 5 may wait for 1s → 5 at once, 5 may wait for 2s",
    );
    let adapting = "5 at once, adapting to 1s and 5% of errors between 1 and 50, every 100ms, 5 may wait for 1s";
    told("wait = '1s'", "latency = '1s'", &format!("5 at once, 5 may wait for 1s → {adapting}"));
    for (settings, before, after) in [
        ("errors = '2%'", "5% of", "2% of"),
        ("min = 2", "between 1", "between 2"),
        ("max = 9", "and 50", "and 9"),
        ("tick = '1s'", "100ms", "1s"),
    ] {
        let after = adapting.replace(before, after);
        let settings = format!("latency = '1s', {settings}");
        told("latency = '1s'", &settings, &format!("{adapting} → {after}"));
    }
    let usual =
        "places = 5, wait = '1s', latency = '1s', errors = '5%', min = 1, max = 50, tick = '100ms'";
    assert_eq!(changes(&rule(&with("latency = '1s'")), &rule(&with(usual))), [""; 0]);
}

#[test]
fn classes_and_what_is_answered() {
    let capacity = "capacity.limit = 5";
    told(
        capacity,
        "capacity.limit = 5\nclasses.background = '40%'",
        "classes all alike → normal 100%, background 40%",
    );
    told(capacity, "capacity.limit = 5\nshadow = true", "enforced always → never (shadow)");
    told(capacity, "capacity.limit = 5\non_deny.status = 529", "on_deny 503 → 529");
    told(capacity, "capacity.limit = 5\non_deny.body = 'busy'", "on_deny 503 → 503 with \"busy\"");
}

/// Each thing by its own name: a rule that becomes another kind of rule is not told in a muddle.
#[test]
fn limits_that_become_a_capacity_and_the_other_way() {
    for (before, after) in
        [("limits = '5/s'", "capacity.limit = 5"), ("capacity.limit = 5", "limits = '5/s'")]
    {
        let changes = changes(&rule(before), &rule(after)).join("\n");
        let words = if before.starts_with("limits") {
            "limits 5/s → 5 at once, 5 may wait for 1s"
        } else {
            "limits 5 at once, 5 may wait for 1s → 5/s"
        };
        assert!(changes.contains(words), "{changes}");
        for same in
            ["cost", "settle", "enforced", "on_store_error", "absent", "classes", "adaptive"]
        {
            assert!(!changes.contains(&format!("{same} ")), "{same} is the same: {changes}");
        }
    }
}

#[test]
fn priorities() {
    let priority = |rest: &str| format!("[[priority]]\nname = 'p'\nmatch.path = '/p'\n{rest}\n");
    let told = |before: &str, after: &str| changes(&priority(before), &priority(after)).join("\n");
    assert_eq!(
        told("weight = 2", "weight = 2\nclass = 'critical'"),
        "priority `p`: /p, weight 2 → /p, weight 2, class critical"
    );
    assert_eq!(
        told("class = 'background'", "class = 'critical'"),
        "priority `p`: /p, class background → /p, class critical"
    );
    assert_eq!(told("weight = 2", "weight = 2\nclass = 'normal'"), "", "that is the usual");
    assert_eq!(
        changes("", &priority("class = 'background'")),
        ["priority `p` is new: /p, class background"]
    );
}
