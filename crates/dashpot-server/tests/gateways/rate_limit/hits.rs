//! What comes with the question: a limit of its own, what it costs, and what it has cost.

use dashpot_testkit::process::until;

use super::edge::{ALICE, DAY, Edge, NOTICED, begin_in};
use super::plan::Plan;

const USER: &str = "actions: [{ request_headers: { header_name: x-user, descriptor_key: user } }]";
const ANN: &str = "x-user: ann";

/// So many a day for each user.
fn a_day(count: u64) -> String {
    format!("  - key: user\n    rate_limit: {{ unit: day, requests_per_unit: {count} }}\n")
}

/// Envoy says the limit, two a day, that it knows from elsewhere.
fn overriding() -> Plan {
    let limit = format!(
        "{{ {USER}, limit: {{ dynamic_metadata: {{ metadata_key: {{ key: plan, path: [{{ key: limit }}] }} }} }} }}"
    );
    Plan::patient().asking(&[&limit]).filter(
        "envoy.filters.http.set_metadata",
        "envoy.extensions.filters.http.set_metadata.v3.Config",
        "metadata: [{ metadata_namespace: plan, value: { limit: { requests_per_unit: 2, unit: DAY } } }]",
    )
}

fn start(plan: Plan) -> Edge {
    let edge = Edge::start(plan);
    begin_in(DAY);
    edge
}

/// What is left for Ann, as dashpot says itself; to look costs nothing.
fn left(edge: &Edge) -> u64 {
    let question = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"ann"}],"hits_addend":0}]}"#;
    let answer = edge.http(0, "POST /json", question).expect("an answer");
    assert!([200, 429].contains(&answer.status), "{answer:?}");
    let told: serde_json::Value = serde_json::from_str(&answer.body).expect("JSON");
    let status = &told["statuses"][0];
    assert!(status["currentLimit"].is_object(), "{told}");
    // As JSON is written for protobuf, what is 0 may be left out.
    status["limitRemaining"].as_u64().unwrap_or_default()
}

#[test]
fn a_limit_that_comes_with_the_request_wins() {
    let edge = start(overriding().limiting(&a_day(5)));
    let answers = edge.exhaust(ALICE, &[ANN], 2);
    for answer in &answers {
        let told = answer.field("x-ratelimit-limit").unwrap();
        assert!(told.starts_with("2, 2;w=86400"), "{answer:?}");
    }
}

#[test]
fn such_a_limit_needs_none_in_the_file() {
    let other = "  - key: other\n    rate_limit: { unit: day, requests_per_unit: 5 }\n";
    start(overriding().limiting(other)).exhaust(ALICE, &[ANN], 2);
}

#[test]
fn such_a_limit_holds_in_any_domain() {
    let mut plan = overriding();
    plan.change("domain: edge", "domain: nowhere");
    let edge = start(plan);
    edge.exhaust(ALICE, &[ANN], 2);
    edge.exhaust(ALICE, &["x-user: ben"], 2);
}

#[test]
fn a_descriptor_says_what_it_costs() {
    let limit = format!("{{ {USER}, hits_addend: {{ number: 3 }} }}");
    let edge = start(Plan::patient().asking_per_filter(&[&limit]).limiting(&a_day(7)));
    let answers = edge.exhaust(ALICE, &[ANN], 2);
    // The third would need three: what is left stays, and is told.
    for (answer, left) in answers.iter().zip(["4", "1", "1"]) {
        assert_eq!(answer.field("x-ratelimit-remaining"), Some(left), "{answer:?}");
    }
    assert_eq!(left(&edge), 1);
}

#[test]
fn the_cost_may_be_the_callers() {
    let limit = format!("{{ {USER}, hits_addend: {{ format: \"%REQ(X-COST)%\" }} }}");
    let edge = start(Plan::patient().asking_per_filter(&[&limit]).limiting(&a_day(7)));
    edge.passes(ALICE, &[ANN, "x-cost: 3"]);
    edge.is_denied(ALICE, &[ANN, "x-cost: 5"]);
    edge.passes(ALICE, &[ANN, "x-cost: 0"]);
    edge.passes(ALICE, &[ANN, "x-cost: 4"]);
    edge.is_denied(ALICE, &[ANN, "x-cost: 1"]);
    // To look costs nothing, and tells that nothing is left.
    edge.is_denied(ALICE, &[ANN, "x-cost: 0"]);
    // More than there ever is: no wait is promised that would not help.
    let denied = edge.is_denied(ALICE, &["x-user: ben", "x-cost: 8"]);
    assert_eq!(denied.field("retry-after"), None, "{denied:?}");
    edge.passes(ALICE, &["x-user: ben", "x-cost: 7"]);
}

/// The older way, for all descriptors of a call.
#[test]
fn a_call_says_what_it_costs() {
    let plan = Plan::patient().asking(&[&format!("{{ {USER} }}")]).limiting(&a_day(7)).filter(
        "envoy.filters.http.set_filter_state",
        "envoy.extensions.filters.http.set_filter_state.v3.Config",
        "on_request_headers: [{ object_key: envoy.ratelimit.hits_addend, \
         format_string: { text_format_source: { inline_string: \"3\" } } }]",
    );
    let edge = start(plan);
    edge.exhaust(ALICE, &[ANN], 2);
    assert_eq!(left(&edge), 1);
}

/// Looks before, and charges what the answer has cost when it has been given: 21, its length.
fn in_two_steps() -> Plan {
    let look = format!("{{ {USER}, hits_addend: {{ number: 0 }} }}");
    let charge = format!(
        "{{ {USER}, apply_on_stream_done: true, hits_addend: {{ format: \"%RESP(CONTENT-LENGTH)%\" }} }}"
    );
    Plan::patient().asking_per_filter(&[&look, &charge]).limiting(&a_day(50))
}

/// Nobody waits for the charge, so it may come later than the answer.
fn until_left(edge: &Edge, count: u64) {
    until("the charge", NOTICED, || (left(edge) == count).then_some(()));
}

#[test]
fn what_is_charged_afterwards_counts_though_it_is_too_much() {
    let mut plan = in_two_steps();
    plan.flags.push("--envoy-count-denied".to_owned());
    let edge = start(plan);
    // 21, 42, and 63 of 50.
    for count in [29, 8, 0] {
        edge.passes(ALICE, &[ANN]);
        until_left(&edge, count);
    }
    edge.seen();
    for _ in 0..3 {
        edge.is_denied(ALICE, &[ANN]);
    }
    assert_eq!(edge.seen(), 0);
    edge.passes(ALICE, &["x-user: ben"]);
}

/// Why the page says that the flag is needed.
#[test]
fn without_the_flag_such_a_charge_is_denied_and_lost() {
    let edge = start(in_two_steps());
    for count in [29, 8, 8, 8] {
        edge.passes(ALICE, &[ANN]);
        until_left(&edge, count);
    }
    until("both to be denied", NOTICED, || {
        (edge.metric(0, "dashpot_rule_denied", "edge.user")? >= 2.0).then_some(())
    });
    assert_eq!(left(&edge), 8);
}
