//! `is_negative_hits`: what was taken too much is given back.

use serde_json::{Value, json};

use crate::door::{Door, costing, descriptor, request};
use crate::scene::Scene;

const YAML: &str = "
domain: d
descriptors:
  - key: ten
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: one
    rate_limit: { unit: day, requests_per_unit: 1 }
";

/// Envoy's messages of the real client do not have it yet, so it is said in JSON.
fn start(arguments: &[&str]) -> Scene {
    Scene::start(YAML, arguments).by(Door::Json)
}

fn back(key: &str, hits: u64) -> Value {
    let mut descriptor = costing(&[(key, "")], hits);
    descriptor["isNegativeHits"] = json!(true);
    descriptor
}

#[test]
fn so_much_is_there_again_and_told() {
    for arguments in [&[][..], &["--envoy-count-denied"]] {
        let scene = start(arguments);
        scene.cost("d", &[("ten", "")], 8).passes(2);
        scene.ask(&request("d", &[back("ten", 3)])).passes(5);
        assert_eq!(scene.left("d", &[("ten", "")]), 5);
    }
}

#[test]
fn never_more_than_there_was() {
    let scene = start(&[]);
    scene.cost("d", &[("ten", "")], 2).passes(8);
    scene.ask(&request("d", &[back("ten", u64::MAX)])).passes(10);
    scene.ask(&request("d", &[back("ten", 5)])).passes(10);
    scene.cost("d", &[("ten", "")], 11).is_denied(10);
}

#[test]
fn with_others_only_if_they_pass() {
    let scene = start(&[]);
    scene.cost("d", &[("ten", "")], 8).passes(2);
    let both = request("d", &[back("ten", 3), descriptor(&[("one", "")])]);
    assert_eq!(scene.ask(&both).left(), [5, 0]);
    let answer = scene.ask(&both);
    assert_eq!(answer.overs(), [false, true]);
    assert_eq!(answer.left(), [5, 0], "and nothing was given back");
    assert_eq!(scene.left("d", &[("ten", "")]), 5);
}

#[test]
fn by_every_algorithm() {
    for algorithm in ["sliding-window", "token-bucket", "leaky-bucket"] {
        let scene = start(&["--envoy-algorithm", algorithm]);
        scene.cost("d", &[("ten", "")], 9).passes(1);
        scene.ask(&request("d", &[back("ten", 4)])).passes(5);
        scene.cost("d", &[("ten", "")], 5).passes(0);
        scene.cost("d", &[("ten", "")], 1).is_denied(0);
    }
    for counting in [&[][..], &["--envoy-count-denied"]] {
        let scene = start(&[&["--envoy-algorithm", "sliding-log"], counting].concat());
        let both = request("d", &[descriptor(&[("one", "")]), back("ten", 4)]);
        let refusal = scene.refused(&both);
        assert!(refusal.message.contains("descriptors[1].is_negative_hits"), "{refusal:?}");
        assert_eq!(scene.left("d", &[("one", "")]), 1, "nothing was taken before");
    }
}
