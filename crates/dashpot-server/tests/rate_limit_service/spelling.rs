//! JSON of protobuf, as it may be written, and as it is.

use serde_json::Value;

use crate::scene::Scene;

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: week, requests_per_unit: 100 }
";

fn posted(scene: &Scene, body: &str) -> Value {
    let answer = scene.service.client().post("/json", body);
    assert_eq!(answer.status, 200, "{body}: {answer:?}");
    answer.json()
}

fn remaining(answer: &Value) -> u64 {
    answer["statuses"][0]["limitRemaining"].as_u64().unwrap_or_else(|| panic!("{answer}"))
}

#[test]
fn numbers_and_names_in_every_way() {
    let scene = Scene::start(YAML, &[]);
    let mut left = 100;
    for (nth, field) in [
        r#""hitsAddend":3"#,
        r#""hits_addend":3"#,
        r#""hitsAddend":"3""#,
        r#""hits_addend":"3""#,
        r#""hitsAddend":3.0"#,
    ]
    .iter()
    .enumerate()
    {
        // Of the request, and of a descriptor, which has 64 bits.
        let entries = r#""entries":[{"key":"k","value":"v"}]"#;
        for body in [
            format!(r#"{{"domain":"d","descriptors":[{{{entries}}}],{field}}}"#),
            format!(r#"{{"domain":"d","descriptors":[{{{entries},{field}}}]}}"#),
        ] {
            left -= 3;
            assert_eq!(remaining(&posted(&scene, &body)), left, "{nth}: {body}");
        }
    }
}

#[test]
fn limits_of_the_request_in_every_way() {
    let scene = Scene::start(YAML, &[]);
    for (nth, limit) in [
        r#"{"requestsPerUnit":7,"unit":"DAY"}"#,
        r#"{"requests_per_unit":7,"unit":"DAY"}"#,
        r#"{"requestsPerUnit":"7","unit":4}"#,
    ]
    .iter()
    .enumerate()
    {
        let body = format!(
            r#"{{"domain":"x","descriptors":[{{"entries":[{{"key":"{nth}"}}],"limit":{limit}}}]}}"#
        );
        let answer = posted(&scene, &body);
        assert_eq!(remaining(&answer), 6, "{body}");
        let current = &answer["statuses"][0]["currentLimit"];
        assert_eq!((&current["requestsPerUnit"], &current["unit"]), (&7.into(), &"DAY".into()));
    }
}

/// Fields that are null are not said, as protobuf has it.
#[test]
fn null_is_nothing() {
    let scene = Scene::start(YAML, &[]);
    let body = r#"{"domain":"d","hitsAddend":null,"descriptors":[
        {"entries":[{"key":"k","value":"v"}],"limit":null,"hitsAddend":null}]}"#;
    assert_eq!(remaining(&posted(&scene, body)), 99);
}

#[test]
fn answers_are_in_camel_case_with_names_of_enums() {
    let scene = Scene::start(YAML, &[]);
    let body =
        r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":"v"}],"hitsAddend":100}]}"#;
    let answer = posted(&scene, body);
    assert_eq!(answer["overallCode"], "OK", "{answer}");
    let status = &answer["statuses"][0];
    assert_eq!(status["code"], "OK", "{answer}");
    assert_eq!(status["currentLimit"]["requestsPerUnit"], 100, "{answer}");
    assert_eq!(status["currentLimit"]["unit"], "WEEK", "{answer}");
    assert!(status["durationUntilReset"].as_str().unwrap().ends_with('s'), "{answer}");
    assert!(answer["responseHeadersToAdd"][0]["key"].is_string(), "{answer}");

    let denied = scene.service.client().post("/json", body);
    assert_eq!(denied.status, 429, "{denied:?}");
    assert_eq!(denied.json()["overallCode"], "OVER_LIMIT");
    assert_eq!(denied.json()["statuses"][0]["code"], "OVER_LIMIT");
}

/// Escapes, and what is beyond ASCII, are what they stand for.
#[test]
fn texts_are_the_same_however_they_are_escaped() {
    let scene = Scene::start(YAML, &[]);
    for (left, value) in [(99, "\u{fc}\u{1f600}"), (98, r"\u00fc\ud83d\ude00")] {
        let entry = format!(r#"{{"key":"k","value":"{value}"}}"#);
        let body = format!(r#"{{"domain":"d","descriptors":[{{"entries":[{entry}]}}]}}"#);
        assert_eq!(remaining(&posted(&scene, &body)), left, "{body}");
    }
    scene.hit("d", &[("k", "\u{fc}\u{1f600}")]).passes(97);
}
