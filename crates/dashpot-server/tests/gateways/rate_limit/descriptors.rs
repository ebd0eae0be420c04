//! Several descriptors in one request, and what the YAML may say about them.

use super::edge::{ALICE, BOB, CAROL, DAY, Edge, begin_in};
use super::plan::Plan;

/// By the caller's address, and by the header `x-user` of those who send one.
const BOTH: [&str; 2] = [
    "{ actions: [{ remote_address: {} }] }",
    "{ actions: [{ request_headers: { header_name: x-user, descriptor_key: user } }] }",
];

/// One descriptor: where it goes, and who goes there.
const NESTED: &str = "{ actions: [{ generic_key: { descriptor_value: login } }, \
    { request_headers: { header_name: x-user, descriptor_key: user } }] }";

fn start(asking: &[&str], descriptors: &str) -> Edge {
    let edge = Edge::start(Plan::patient().asking(asking).limiting(descriptors));
    begin_in(DAY);
    edge
}

#[test]
fn what_one_denies_the_other_does_not_count() {
    let edge = start(
        &BOTH,
        "  - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 3 }\n\
         \x20 - key: user\n    rate_limit: { unit: day, requests_per_unit: 2 }\n",
    );
    let (ann, ben) = (["x-user: ann"], ["x-user: ben"]);
    let answers = edge.exhaust(ALICE, &ann, 2);
    let denied = answers.last().unwrap();
    assert!(denied.field("ratelimit").unwrap().starts_with("\"edge.user\";r=0;t="), "{denied:?}");
    for answer in &answers {
        let policies = answer.field("ratelimit-policy").unwrap();
        for policy in ["\"edge.remote_address\";q=3;w=86400", "\"edge.user\";q=2;w=86400"] {
            assert!(policies.contains(policy), "{answer:?}");
        }
    }
    for _ in 0..5 {
        edge.is_denied(ALICE, &ann);
    }
    // Alice's address has one left, and no denial has taken it.
    let denied = edge.exhaust(ALICE, &ben, 1).pop().unwrap();
    let told = denied.field("ratelimit").unwrap();
    assert!(told.starts_with("\"edge.remote_address\";r=0;t="), "{denied:?}");
    // Nor has her address's denial taken anything of Ben.
    edge.exhaust(BOB, &ben, 1);
    // Who sends no header is asked about by address alone, of which Bob has used one.
    edge.exhaust(BOB, &[], 2);
}

#[test]
fn nested_descriptors_lead_to_the_closest() {
    let edge = start(
        &[NESTED],
        "  - key: generic_key\n    value: login\n    descriptors:\n\
         \x20     - key: user\n        rate_limit: { unit: day, requests_per_unit: 2 }\n\
         \x20     - key: user\n        value: root\n        rate_limit: { unit: day, requests_per_unit: 1 }\n\
         \x20     - key: user\n        value: test-*\n        rate_limit: { unit: day, requests_per_unit: 3 }\n\
         \x20     - key: user\n        value: bot-*\n        share_threshold: true\n\
         \x20       rate_limit: { unit: day, requests_per_unit: 2 }\n",
    );
    // Each value has a counter of its own, whoever asks.
    for user in ["x-user: ann", "x-user: ben"] {
        edge.passes(ALICE, &[user]);
        let denied = edge.exhaust(BOB, &[user], 1).pop().unwrap();
        let told = denied.field("ratelimit").unwrap();
        assert!(told.starts_with("\"edge.generic_key_login.user\";r=0;t="), "{denied:?}");
    }
    let denied = edge.exhaust(ALICE, &["x-user: root"], 1).pop().unwrap();
    let told = denied.field("ratelimit").unwrap();
    assert!(told.starts_with("\"edge.generic_key_login.user_root\";r=0;t="), "{denied:?}");
    edge.exhaust(ALICE, &["x-user: test-a"], 3);
    edge.exhaust(ALICE, &["x-user: test-b"], 3);
    // Unless all of them share one.
    edge.passes(ALICE, &["x-user: bot-a"]);
    edge.passes(ALICE, &["x-user: bot-b"]);
    edge.is_denied(ALICE, &["x-user: bot-c"]);
    // Without the header there is no descriptor.
    for _ in 0..5 {
        assert_eq!(edge.passes(ALICE, &[]).field("ratelimit"), None);
    }
}

/// Only as deep as it is written.
#[test]
fn a_descriptor_of_another_depth_has_no_limit() {
    let edge = start(
        &[NESTED],
        "  - key: generic_key\n    value: login\n\
         \x20   rate_limit: { unit: day, requests_per_unit: 1 }\n\
         \x20   descriptors:\n      - key: user\n        descriptors:\n\
         \x20         - key: more\n            rate_limit: { unit: day, requests_per_unit: 1 }\n",
    );
    for _ in 0..5 {
        let answer = edge.passes(ALICE, &["x-user: ann"]);
        assert_eq!(answer.field("ratelimit"), None, "{answer:?}");
        assert_eq!(answer.field("x-ratelimit-limit"), None, "{answer:?}");
    }
}

#[test]
fn in_shadow_mode_nobody_is_denied() {
    let edge = start(
        &BOTH,
        "  - key: user\n    shadow_mode: true\n\
         \x20   rate_limit: { unit: day, requests_per_unit: 2 }\n\
         \x20 - key: remote_address\n    rate_limit: { unit: day, requests_per_unit: 6 }\n",
    );
    edge.exhaust(ALICE, &["x-user: ann"], 6);
    let denied = edge.metric(0, "dashpot_rule_shadow_denied", "edge.user").unwrap();
    assert!(denied >= 4.0, "it is counted: {denied}");
}

#[test]
fn unlimited_is_of_one_descriptor() {
    let edge = start(
        &BOTH,
        "  - key: user\n    rate_limit: { unit: day, requests_per_unit: 1 }\n\
         \x20 - key: user\n    value: vip\n    rate_limit: { unlimited: true }\n\
         \x20 - key: remote_address\n    value: 127.0.0.3\n    rate_limit: { unit: day, requests_per_unit: 4 }\n",
    );
    for _ in 0..20 {
        let answer = edge.passes(ALICE, &["x-user: vip"]);
        assert_eq!(answer.field("x-ratelimit-limit"), None, "{answer:?}");
    }
    edge.exhaust(ALICE, &["x-user: ann"], 1);
    // The limits of other descriptors stay.
    edge.exhaust(BOB, &["x-user: vip"], 4);
}

#[test]
fn a_limit_replaces_others_by_name() {
    let edge = start(
        &BOTH,
        "  - key: remote_address\n    rate_limit: { name: address, unit: day, requests_per_unit: 2 }\n\
         \x20 - key: user\n    value: vip\n    rate_limit:\n\
         \x20     { name: vip, unit: day, requests_per_unit: 4, replaces: [{ name: address }] }\n",
    );
    let answers = edge.exhaust(ALICE, &["x-user: vip"], 4);
    for answer in &answers {
        let told = answer.field("x-ratelimit-limit");
        assert_eq!(told, Some("4, 4;w=86400;name=\"vip\""), "{answer:?}");
    }
    // Nothing was taken of what was replaced.
    edge.exhaust(ALICE, &[], 2);
    edge.exhaust(CAROL, &["x-user: ann"], 2);
}

/// 0 is a limit like others: nobody passes.
#[test]
fn nobody_passes_where_the_limit_is_none() {
    let edge = start(
        &BOTH,
        "  - key: user\n    value: mallory\n    rate_limit: { unit: day, requests_per_unit: 0 }\n",
    );
    edge.exhaust(ALICE, &["x-user: mallory"], 0);
    edge.passes(ALICE, &["x-user: ann"]);
}
