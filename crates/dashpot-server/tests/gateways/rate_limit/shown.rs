//! What docs/envoy.md promises, with what it shows.

use super::edge::{ALICE, BOB, Edge, MINUTE, begin_in};
use super::plan::{PAGE, Plan, rules_of_the_page};
use crate::client::Answer;
use crate::page::block;

/// The fields that tell callers how they stand, of Envoy and of dashpot.
const ALWAYS: [&str; 5] = [
    "x-ratelimit-limit",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
    "ratelimit",
    "ratelimit-policy",
];

/// The value of a field that is there once.
fn once<'a>(answer: &'a Answer, name: &str) -> &'a str {
    let all = answer.fields.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
    let all: Vec<_> = all.map(|(_, value)| value.as_str()).collect();
    assert_eq!(all.len(), 1, "{name} of {answer:?}");
    all[0]
}

/// `r` and `t` of `RateLimit`, which is about this policy.
fn standing(answer: &Answer, policy: &str) -> (u64, u64) {
    let told = once(answer, "ratelimit");
    let rest = told.strip_prefix(&format!("\"{policy}\";r=")).unwrap_or_else(|| panic!("{told}"));
    let (remaining, reset) = rest.split_once(";t=").unwrap_or_else(|| panic!("{told}"));
    (remaining.parse().unwrap(), reset.parse().unwrap())
}

fn number(answer: &Answer, name: &str) -> u64 {
    once(answer, name).parse().unwrap_or_else(|_| panic!("{name} of {answer:?}"))
}

#[test]
fn five_pass_and_then_all_are_told_when() {
    let edge = Edge::start(Plan::patient());
    begin_in(MINUTE);
    let mut answers = edge.exhaust(ALICE, &[], 5);
    let denied = answers.pop().unwrap();
    for (answer, left) in answers.iter().zip([4, 3, 2, 1, 0]) {
        let (remaining, reset) = standing(answer, "edge.remote_address");
        assert_eq!((remaining, number(answer, "x-ratelimit-remaining")), (left, left));
        assert_eq!(number(answer, "x-ratelimit-reset"), reset, "{answer:?}");
        assert!((1..=60).contains(&reset), "{answer:?}");
        assert_eq!(once(answer, "x-ratelimit-limit"), "5, 5;w=60");
        assert_eq!(once(answer, "ratelimit-policy"), "\"edge.remote_address\";q=5;w=60");
        for absent in ["retry-after", "x-envoy-ratelimited"] {
            assert_eq!(answer.field(absent), None, "{answer:?}");
        }
    }

    // The page is about a caller who has 42 seconds to wait.
    let reset = denied.retry_after();
    assert!((1..=60).contains(&reset), "{denied:?}");
    let shown = block(PAGE, "text");
    let mut lines = shown.lines();
    assert_eq!(lines.next(), Some("HTTP/1.1 429 Too Many Requests"));
    let mut told = Vec::new();
    for (name, value) in lines.map(|line| line.split_once(": ").unwrap()) {
        let value = value.replace("42", &reset.to_string());
        assert_eq!(once(&denied, name), value, "{name} of {denied:?}");
        told.push(name);
    }
    for name in ALWAYS.iter().chain(&["x-envoy-ratelimited", "retry-after"]) {
        assert!(told.contains(name), "{name} is shown");
    }

    edge.passes(BOB, &[]);
    let later = edge.is_denied(ALICE, &[]);
    assert!(later.retry_after() <= reset, "a denial does not make it longer: {later:?}");
}

/// The YAML is of another domain, so that this one is left to the rule file.
#[test]
fn without_yaml_the_rules_limit() {
    let mut plan = Plan::patient();
    plan.yaml = plan.yaml.replace("domain: edge", "domain: elsewhere");
    plan.rules = rules_of_the_page();
    let edge = Edge::start(plan);
    begin_in(MINUTE);
    let mut answers = edge.exhaust(ALICE, &[], 5);
    let denied = answers.pop().unwrap();
    for (answer, left) in answers.iter().zip([4, 3, 2, 1, 0]) {
        assert_eq!(standing(answer, "edge-min").0, left);
        assert_eq!(number(answer, "x-ratelimit-remaining"), left);
    }
    assert_eq!(standing(&denied, "edge-min"), (0, denied.retry_after()));
    assert_eq!(number(&denied, "x-ratelimit-reset"), denied.retry_after());
    assert_eq!(once(&denied, "x-ratelimit-limit"), "5, 5;w=60;name=\"edge-min\"");
    for answer in answers.iter().chain([&denied]) {
        let policies = "\"edge-min\";q=5;w=60, \"edge-day\";q=100;w=86400";
        assert_eq!(once(answer, "ratelimit-policy"), policies);
    }
    edge.passes(BOB, &[]);
}

/// Styles of the rule file are for this protocol, too.
#[test]
fn headers_are_those_of_the_rule_file() {
    let mut plan = Plan::patient();
    plan.rules = "[headers]\nstyles = ['draft-07']\n".to_owned();
    let edge = Edge::start(plan);
    begin_in(MINUTE);
    let answers = edge.exhaust(ALICE, &[], 5);
    for (answer, left) in answers.iter().zip([4, 3, 2, 1, 0, 0]) {
        let reset = number(answer, "x-ratelimit-reset");
        let told = format!("limit=5, remaining={left}, reset={reset}");
        assert_eq!(once(answer, "ratelimit"), told);
        assert_eq!(once(answer, "ratelimit-policy"), "5;w=60");
    }
}

#[test]
fn a_domain_that_nothing_is_about_passes_and_is_logged() {
    let mut plan = Plan::patient();
    plan.change("domain: edge", "domain: nowhere");
    let edge = Edge::start(plan);
    for _ in 0..10 {
        let answer = edge.passes(ALICE, &[]);
        for absent in ALWAYS {
            assert_eq!(answer.field(absent), None, "{answer:?}");
        }
    }
    assert!(edge.services[0].log().contains("nowhere"), "{}", edge.services[0].log());
}
