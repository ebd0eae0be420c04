//! Bodies of `POST /v1/check`.

use serde_json::Value;

use crate::serve::body;
use crate::serve::limits::{Limits, Written};
use crate::serve::question::{Form, OneCheck, Question};
use crate::serve::wrong::Wrong;

/// A question is understood, or whoever asks hears what is wrong with it, in problem details.
pub fn survives(data: &[u8]) {
    let question = match body::read::<Question<'_>>(data) {
        Ok(question) => question,
        Err(wrong) => return told(&wrong),
    };
    // What is understood is JSON to everybody, and an object.
    assert!(serde_json::from_slice::<Value>(data).is_ok_and(|value| value.is_object()));
    let limits = Limits::new(true);
    match question.form() {
        Err(wrong) => told(&wrong),
        Ok(Form::One(check)) => asks(&limits, &check),
        Ok(Form::Several(checks)) => {
            assert!((1..=64).contains(&checks.len()));
            checks.iter().for_each(|check| asks(&limits, check));
        }
        Ok(Form::Request(request)) => match request.build() {
            Err(wrong) => told(&wrong),
            Ok((request, body)) => {
                assert!(request.uri().path().starts_with('/'));
                assert!(body.is_none_or(|body| body.len() <= data.len()));
            }
        },
    }
}

/// The same limit is the same policy, however often it is asked about, and as it is told.
fn asks(limits: &Limits, check: &OneCheck<'_>) {
    assert!((1..=1024).contains(&check.key.len()));
    let written = check.written();
    match (limits.policy(&written, ""), limits.policy(&written, "")) {
        (Ok(policy), Ok(again)) => {
            assert!(policy.same_counters(&again));
            assert_eq!(policy.quota(), again.quota());
            let quota = policy.quota().to_string();
            let algorithm = policy.algorithm().to_string();
            let told = Written { limit: &quota, algorithm: Some(&algorithm), ..written };
            let told = limits.policy(&told, "").expect("a policy as it is told is one");
            assert!(told.same_counters(&policy) && told.quota() == policy.quota());
        }
        (Err(wrong), Err(_)) => told(&wrong),
        _ => panic!("the same limit is right and wrong"),
    }
}

/// JSON with a status and a reason.
fn told(wrong: &Wrong) {
    let response = wrong.tell();
    assert!(response.status().is_client_error(), "{}", response.status());
    let problem: Value = serde_json::from_slice(response.body()).expect("problem details are JSON");
    assert_eq!(problem["status"], response.status().as_u16());
    assert!(problem["detail"].as_str().is_some_and(|detail| !detail.is_empty()), "{problem}");
    assert!(problem.get("field").is_none_or(Value::is_string), "{problem}");
}
