//! How closely instances keep to limits: what a file says reaches policies, summaries, differences and the schema.

use std::time::Duration;

use dashpot::{Consistency, ManualClock, MemoryStore};
use dashpot_rules::{Fact, Facts, RuleSet, diff, schema};
use dashpot_testkit::block_on;

fn parse(file: &str) -> RuleSet {
    RuleSet::parse(file).unwrap_or_else(|errors| panic!("{errors}"))
}

fn rule(rest: &str) -> String {
    format!("[[rule]]\nname = 'api'\n{rest}\n")
}

/// What a request is held to: the names of policies, and how closely each is kept to.
fn held_to(rules: &RuleSet, request: &Facts) -> Vec<(String, Consistency)> {
    let plan = rules.select(request).plan(request);
    plan.checks()
        .map(|check| (check.policy.name().to_owned(), check.policy.consistency()))
        .collect()
}

fn item(rules: &RuleSet, name: &str) -> Option<String> {
    let summary = rules.rules()[0].summary();
    summary.into_iter().find(|(key, _)| *key == name).map(|(_, value)| value)
}

const EACH: [(&str, Consistency); 3] = [
    ("exact", Consistency::Exact),
    ("leased", Consistency::Leased),
    ("approximate", Consistency::Approximate),
];

#[test]
fn what_is_written_reaches_every_policy() {
    for algorithm in ["token-bucket", "leaky-bucket", "fixed-window", "sliding-window"] {
        for (word, consistency) in EACH {
            let rules = parse(&rule(&format!(
                "limits = ['5/s', '50/min']\nalgorithm = '{algorithm}'\nconsistency = '{word}'"
            )));
            let policies: Vec<_> = rules.rules()[0].policies().collect();
            assert_eq!(policies.len(), 2);
            assert!(policies.iter().all(|policy| policy.consistency() == consistency), "{word}");
            assert_eq!(item(&rules, "consistency").as_deref(), Some(word), "{algorithm}");
        }
    }
}

#[test]
fn exact_is_the_usual() {
    let rules = parse(&rule("limits = '5/s'"));
    let all = held_to(&rules, &Facts::new());
    assert_eq!(all, [("api".to_owned(), Consistency::Exact)]);
    assert_eq!(item(&rules, "consistency").as_deref(), Some("exact"));
    assert_eq!(diff(&rules, &parse(&rule("limits = '5/s'\nconsistency = 'exact'"))), [""; 0]);
}

#[test]
fn one_rule_says_nothing_about_another() {
    let other = "[[rule]]\nname = 'other'\nlimits = '5 concurrent'\n";
    let rules = parse(&(rule("limits = '5/s'\nconsistency = 'leased'") + other));
    assert_eq!(
        held_to(&rules, &Facts::new()),
        [("api".to_owned(), Consistency::Leased), ("other".to_owned(), Consistency::Exact)]
    );
}

#[test]
fn limits_of_nothing_and_without_end_may_be_leased() {
    for (word, consistency) in EACH {
        for limit in ["unlimited", "0/s", "1/day", "5/s burst 50"] {
            let rules = parse(&rule(&format!("limits = '{limit}'\nconsistency = '{word}'")));
            let policy = rules.rules()[0].policies().next().unwrap();
            assert_eq!(policy.consistency(), consistency, "{limit}");
        }
    }
}

const TIERS: &str = "
[identity]
default_tier = 'free'
[[rule]]
name = 'api'
by = 'user'
consistency = 'leased'
tiers.free = ['3/min', '50/day']
tiers.pro = '10/min'
tiers.staff = 'unlimited'
";

#[test]
fn every_tier_keeps_to_it() {
    let rules = parse(TIERS);
    for tier in ["free", "pro", "staff"] {
        let held = held_to(&rules, &Facts::new().user("alice").tier(tier));
        assert!(!held.is_empty(), "{tier}");
        assert!(held.iter().all(|(_, one)| *one == Consistency::Leased), "{tier}: {held:?}");
    }
}

#[test]
fn every_weight_keeps_to_it() {
    let priorities = "
[[priority]]
name = 'pay'
match.path = '/pay'
weight = 10
[[priority]]
name = 'batch'
match.path = '/batch'
weight = 0.5
";
    for (word, consistency) in EACH {
        let limits = format!("limits = ['6/min', '50/day']\nconsistency = '{word}'\n");
        let rules = parse(&(rule(&limits) + priorities));
        for (path, names) in [
            ("/", ["api-min", "api-day"]),
            ("/pay", ["api-min@pay", "api-day@pay"]),
            ("/batch", ["api-min@batch", "api-day@batch"]),
        ] {
            let held = held_to(&rules, &Facts::new().with(Fact::Path, path));
            assert_eq!(held, names.map(|name| (name.to_owned(), consistency)), "{path}");
        }
    }
}

#[test]
fn a_change_is_told_and_counts_go_on() {
    let with = |word: &str| rule(&format!("limits = '5/s'\nconsistency = '{word}'"));
    for (before, _) in EACH {
        for (after, _) in EACH.iter().filter(|(after, _)| *after != before) {
            let told = diff(&parse(&with(before)), &parse(&with(after)));
            let expected = format!("rule `api`: consistency {before} → {after}; counts go on");
            assert_eq!(told, [expected]);
        }
    }
    let both = rule("limits = '6/s'\nconsistency = 'approximate'");
    assert_eq!(
        diff(&parse(&with("leased")), &parse(&both)),
        ["rule `api`: limits 5/s → 6/s, consistency leased → approximate; counts go on"]
    );
}

#[test]
fn counts_do_go_on() {
    let store = MemoryStore::with_clock(ManualClock::default());
    let request = Facts::new();
    let mut used = 0;
    for (word, _) in EACH {
        let rules = parse(&rule(&format!("limits = '9/day'\nconsistency = '{word}'")));
        let plan = rules.select(&request).plan(&request);
        for _ in 0..3 {
            let ruling = block_on(plan.decide(&store, &store));
            assert!(ruling.refusal().is_none());
            used += 1;
            assert_eq!(plan.asked(&ruling)[0].statuses[0].remaining(), 9 - used, "{word}");
        }
    }
    assert_eq!(used, 9);
}

#[test]
fn another_lease_or_interval_is_another_store() {
    let store = |more: &str| parse(&format!("[store]\nurl = 'redis://a'\n{more}\n"));
    for more in ["lease = '3s'", "reconcile = '50ms'"] {
        assert_eq!(diff(&store(""), &store(more)), ["[store] is different"], "{more}");
        assert_eq!(diff(&store(more), &store(more)), [""; 0], "{more}");
    }
    assert_eq!(diff(&store(""), &store("lease = '2s'\nreconcile = '100ms'")), [""; 0]);
}

#[test]
fn the_store_is_told_how_long_and_how_often() {
    let times = |file: &str| {
        let rules = parse(file);
        (rules.store().lease, rules.store().reconcile)
    };
    let ms = Duration::from_millis;
    assert_eq!(times(""), (ms(2000), ms(100)));
    assert_eq!(times("[store]\nlease = '3s'\nreconcile = '250ms'\n"), (ms(3000), ms(250)));
    // As far as it goes.
    assert_eq!(
        times("[store]\nlease = '100ms'\nreconcile = '10ms'\ndeadline = '10ms'\n"),
        (ms(100), ms(10))
    );
    assert_eq!(times("[store]\nlease = '1min'\nreconcile = '60s'\n"), (ms(60_000), ms(60_000)));
}

#[test]
fn the_schema_knows_the_words_and_the_times() {
    let schema = schema();
    let key = &schema["properties"]["rule"]["items"]["properties"]["consistency"];
    assert_eq!(key["enum"], serde_json::json!(["exact", "leased", "approximate"]), "{key}");
    let store = &schema["properties"]["store"]["properties"];
    for name in ["lease", "reconcile"] {
        // A time is a time.
        assert_eq!(store[name]["type"], store["deadline"]["type"], "{}", store[name]);
        assert_eq!(store[name]["pattern"], store["deadline"]["pattern"], "{}", store[name]);
    }
}
