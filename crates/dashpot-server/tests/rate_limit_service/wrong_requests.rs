//! Requests that are wrong, and told so: where, and by which word.

use serde_json::{Value, json};

use crate::door::{Door, descriptor, request};
use crate::scene::{Scene, both};

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 1000 }
";

#[track_caller]
fn is_wrong(scene: &Scene, asked: &Value, word: &str) {
    let refusal = scene.refused(asked);
    let code = if scene.door == Door::Grpc { "INVALID_ARGUMENT" } else { "400" };
    assert_eq!(refusal.code, code, "{refusal:?}");
    assert!(refusal.message.contains(word), "it says where: {refusal:?}");
}

#[test]
fn what_is_required_is_missing() {
    let good = descriptor(&[("k", "v")]);
    both(YAML, &[], |scene| {
        is_wrong(scene, &json!({}), "domain");
        is_wrong(scene, &json!({ "descriptors": [good] }), "domain");
        is_wrong(scene, &request("", std::slice::from_ref(&good)), "domain");
        is_wrong(scene, &json!({"domain": "d"}), "descriptors");
        is_wrong(scene, &request("d", &[]), "descriptors");
        is_wrong(scene, &request("nowhere", &[]), "descriptors");
        is_wrong(scene, &request("d", &[json!({})]), "descriptors[0]");
        is_wrong(scene, &request("d", &[good.clone(), descriptor(&[])]), "descriptors[1]");
        is_wrong(scene, &request("d", &[good.clone(), good.clone(), json!({})]), "descriptors[2]");
        is_wrong(scene, &request("d", &[descriptor(&[("", "v")])]), "descriptors[0].entries[0]");
        let second = descriptor(&[("k", "v"), ("", "v")]);
        is_wrong(scene, &request("d", &[second]), "descriptors[0].entries[1]");
        // Nothing was taken by what is right in it, and it goes on.
        assert_eq!(scene.left("d", &[("k", "v")]), 1000);
        scene.hit("d", &[("k", "v")]).passes(999);
    });
}

#[test]
fn there_may_be_so_many_and_no_more() {
    both(YAML, &[], |scene| {
        let values: Vec<_> = (0..65).map(|number| number.to_string()).collect();
        let all: Vec<_> = values.iter().map(|value| descriptor(&[("k", value)])).collect();
        let answer = scene.ask(&request("d", &all[..64]));
        assert_eq!(answer.left(), [999; 64]);
        is_wrong(scene, &request("d", &all), "descriptors");
        assert_eq!(scene.left("d", &[("k", "0")]), 999, "nothing was taken");

        let entries: Vec<_> = values.iter().map(|value| ("k", value.as_str())).collect();
        scene.hit("d", &entries[..32]).is_free();
        is_wrong(scene, &request("d", &[descriptor(&entries[..33])]), "entries");
        let good = descriptor(&[("k", "")]);
        let second = request("d", &[good, descriptor(&entries[..33])]);
        is_wrong(scene, &second, "descriptors[1]");
    });
}

#[test]
fn a_long_message_has_a_code_of_its_own() {
    both(YAML, &[], |scene| {
        // As long as may be, with all that is around it.
        let long = "v".repeat(60 * 1024);
        scene.hit("d", &[("other", &long)]).is_free();
        for length in [64 * 1024 + 1, 1024 * 1024] {
            let asked = request("d", &[descriptor(&[("k", &"v".repeat(length))])]);
            let refusal = scene.refused(&asked);
            let code = if scene.door == Door::Grpc { "RESOURCE_EXHAUSTED" } else { "413" };
            assert_eq!(refusal.code, code, "{length}: {}", refusal.message);
        }
        scene.hit("d", &[("k", "v")]).passes(999);
    });
}

#[test]
fn text_that_is_no_request_is_told_at_json() {
    let scene = Scene::start(YAML, &[]).by(Door::Json);
    for (body, word) in [
        ("", ""),
        ("not json", ""),
        ("[]", ""),
        ("\"d\"", ""),
        ("{\"domain\":\"d\",", ""),
        (r#"{"domain":3,"descriptors":[{"entries":[{"key":"k","value":"v"}]}]}"#, "domain"),
        (r#"{"domain":"d","descriptors":"k"}"#, "descriptors"),
        (r#"{"domain":"d","descriptors":[3]}"#, "descriptors"),
        (r#"{"domain":"d","descriptors":[{"entries":[{"key":"k","value":3}]}]}"#, "value"),
        (r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}],"hitsAddend":"few"}]}"#, "hits"),
        (r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}],"hitsAddend":-1}]}"#, "hits"),
        (r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}],"hitsAddend":1.5}"#, "hits"),
        (
            r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}]}],"hitsAddend":4294967296}"#,
            "hits",
        ),
        (
            r#"{"domain":"d","descriptors":[{"entries":[{"key":"k"}],"limit":{"unit":"EON"}}]}"#,
            "unit",
        ),
    ] {
        let refusal = scene.post(body).expect_err(body);
        assert_eq!(refusal.code, "400", "{body}: {refusal:?}");
        assert!(!refusal.message.is_empty(), "{body}: it says what is wrong");
        let told = refusal.message.to_lowercase();
        assert!(told.contains(word), "{body}: {refusal:?}");
    }
    assert_eq!(scene.left("d", &[("k", "v")]), 1000);
}
