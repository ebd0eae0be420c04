//! Whoever asks is told 429, and never a 5xx.

use serde_json::{Value, json};

use super::{ASKED, Patient, passed, quick};
use crate::client::{Answer, forward_auth};

const CALL: &str = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"a","value":"b"}]}]}"#;

/// With nothing left of half.
fn used_up(lines: &str) -> Patient {
    let patient = Patient::by(&quick("r", &format!("limits = ['10/day']\n{lines}")));
    patient.suffers();
    assert_eq!(passed(&mut patient.client(), ASKED, 9), 5);
    patient
}

fn asks(patient: &Patient, query: &str) -> Answer {
    let mut client = patient.client();
    client.send(forward_auth("/").replace("/v1/forward-auth", &format!("/v1/forward-auth{query}")));
    client.expect()
}

#[test]
fn a_check_is_denied_by_429() {
    let patient = used_up("");
    let denied = patient.client().check(ASKED);
    assert_eq!(denied.status, 429, "{denied:?}");
    assert!(denied.header("retry-after").is_some(), "{denied:?}");
    let told = denied.json();
    assert_eq!((&told["reason"], &told["rule"]), (&json!("limited"), &json!("r")), "{told}");
    assert_eq!(told["degraded"], Value::Null, "{told}");
    assert_eq!(denied.header("ratelimit-policy"), Some("\"r\";q=5;w=86400"));
}

#[test]
fn a_gateway_is_told_429() {
    let patient = used_up("");
    let denied = asks(&patient, "");
    assert_eq!(denied.status, 429, "{denied:?}");
    let wait: u64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((17_000..=17_280).contains(&wait), "{denied:?}");
    assert_eq!(denied.header("ratelimit-policy"), Some("\"r\";q=5;w=86400"));
    assert_eq!(denied.header("content-type"), Some("application/problem+json"));
    let told = denied.json();
    assert_eq!(told["status"], 429, "as the status itself says: {denied:?}");
    // And as that is meant: `#temporary-reduced-capacity` is a 503.
    assert!(told["type"].as_str().unwrap().ends_with("#quota-exceeded"), "{denied:?}");
}

/// For nginx, which knows 401 and 403 only.
#[test]
fn a_gateway_is_told_the_status_it_can_take() {
    let patient = used_up("");
    let denied = asks(&patient, "?deny=403");
    assert_eq!(denied.status, 403, "{denied:?}");
    assert!(denied.header("retry-after").is_some(), "{denied:?}");
}

#[test]
fn a_gateway_is_told_what_the_rule_says_instead() {
    let patient = used_up("on_deny = { status = 420, body = 'Later.' }");
    let denied = asks(&patient, "");
    assert_eq!((denied.status, denied.body.as_str()), (420, "Later."), "{denied:?}");
    assert!(denied.header("retry-after").is_some(), "{denied:?}");
}

/// A cost that only the whole limit lets pass.
#[test]
fn a_gateway_is_told_429_where_no_wait_would_do() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']\ncost = 6"));
    patient.suffers();
    let denied = asks(&patient, "");
    assert_eq!((denied.status, denied.header("retry-after")), (429, None), "{denied:?}");
    patient.recovers();
    assert_eq!(asks(&patient, "").status, 200);
}

#[test]
fn envoy_is_told_that_it_is_over_the_limit() {
    let patient = used_up("");
    let denied = patient.client().post("/json", CALL);
    assert_eq!(denied.status, 429, "{denied:?}");
    let told = denied.json();
    assert_eq!(told["overallCode"], "OVER_LIMIT", "{told}");
    assert_eq!(told["statuses"][0]["code"], "OVER_LIMIT", "{told}");
    assert_eq!(denied.header("ratelimit-policy"), Some("\"r\";q=5;w=86400"));
}

/// What is left and what it is left of are by the same limit.
#[test]
fn envoy_is_told_the_lower_limit() {
    let patient = Patient::by(&quick("r", "limits = ['10/day']\nalgorithm = 'fixed-window'"));
    patient.suffers();
    let told = patient.client().post("/json", CALL).json();
    assert_eq!(told["statuses"][0]["limitRemaining"], 4, "{told}");
    assert_eq!(told["statuses"][0]["currentLimit"]["requestsPerUnit"], 5, "{told}");
}

/// One limit, whichever door is asked at.
#[test]
fn all_doors_spend_the_same_units() {
    let patient = Patient::by(&quick("r", "limits = ['12/day']"));
    patient.suffers();
    let mut passed = 0;
    for _ in 0..4 {
        passed += u32::from(patient.client().check(ASKED).status == 200);
        passed += u32::from(asks(&patient, "").status == 200);
        passed += u32::from(patient.client().post("/json", CALL).status == 200);
    }
    assert_eq!(passed, 6);
    let count = |what: &str| patient.service.metric(&format!("dashpot_rule_{what}{{rule=\"r\"}}"));
    assert_eq!((count("allowed_total"), count("denied_total")), (6.0, 6.0));
}
