//! One counter of a descriptor: looked at, reset, blocked.

use serde_json::{Value, json};

use crate::client::Answer;
use crate::scene::{Scene, both};

const YAML: &str = "
domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: files
    value: f*
    share_threshold: true
    rate_limit: { unit: day, requests_per_unit: 5 }
    descriptors:
      - key: user
        rate_limit: { unit: hour, requests_per_unit: 3 }
";
const ONE: [(&str, &str); 1] = [("remote_address", "203.0.113.7")];
const OTHER: [(&str, &str); 1] = [("remote_address", "203.0.113.8")];

fn named(entries: &[(&str, &str)]) -> Value {
    let mut descriptor = crate::door::descriptor(entries);
    descriptor["domain"] = json!("edge");
    json!({ "descriptor": descriptor })
}

#[track_caller]
fn key(scene: &Scene, what: &str, body: &Value) -> Answer {
    let answer = scene.service.client().post(&format!("/v1/keys/{what}"), &body.to_string());
    assert_eq!(answer.status, 200, "{what}: {answer:?}");
    answer
}

#[test]
fn it_is_looked_at_and_reset() {
    both(YAML, &[], |scene| {
        scene.cost("edge", &ONE, 5).passes(0);
        scene.cost("edge", &OTHER, 2).passes(3);
        for _ in 0..2 {
            assert_eq!(key(scene, "peek", &named(&ONE)).remaining(), 0);
            let told = key(scene, "peek", &named(&OTHER));
            assert_eq!(told.remaining(), 3, "looking takes nothing");
            assert_eq!(told.json()["policies"][0]["limit"], 5, "{told:?}");
        }
        scene.hit("edge", &ONE).is_denied(0);
        assert_eq!(key(scene, "reset", &named(&ONE)).remaining(), 5);
        scene.hit("edge", &ONE).passes(4);
        assert_eq!(scene.left("edge", &OTHER), 3, "others stay as they are");
    });
}

#[test]
fn it_is_blocked_and_unblocked() {
    both(YAML, &[], |scene| {
        scene.hit("edge", &ONE).passes(4);
        let mut block = named(&ONE);
        block["for"] = json!("10min");
        key(scene, "block", &block);
        let answer = scene.hit("edge", &ONE);
        assert!(answer.over, "{answer:?}");
        let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((590..=600).contains(&wait), "{answer:?}");
        scene.hit("edge", &OTHER).passes(4);
        // A reset forgets what was counted; the block stays.
        key(scene, "reset", &named(&ONE));
        assert!(scene.hit("edge", &ONE).over);
        key(scene, "unblock", &named(&ONE));
        scene.hit("edge", &ONE).passes(4);
    });
}

/// Any of the values names the counter they share, and levels are apart.
#[test]
fn it_is_the_counter_that_is_meant() {
    both(YAML, &[], |scene| {
        scene.cost("edge", &[("files", "fa")], 3).passes(2);
        assert_eq!(key(scene, "peek", &named(&[("files", "fb")])).remaining(), 2);
        let user = [("files", "fa"), ("user", "alice")];
        assert_eq!(key(scene, "peek", &named(&user)).remaining(), 3);
        scene.hit("edge", &user).passes(2);
        key(scene, "reset", &named(&[("files", "fc")]));
        assert_eq!(scene.left("edge", &[("files", "fa")]), 5);
        assert_eq!(scene.left("edge", &user), 2);
    });
}

/// Only administrators.
#[test]
fn with_a_token_it_takes_one() {
    let scene = Scene::start(YAML, &["--admin-token", "open-sesame"]);
    scene.hit("edge", &ONE).passes(4);
    let body = named(&ONE).to_string();
    assert_eq!(scene.service.client().post("/v1/keys/reset", &body).status, 401);
    assert_eq!(scene.left("edge", &ONE), 4);
    // What Envoy asks needs none.
    scene.hit("edge", &ONE).passes(3);
    assert_eq!(scene.by(crate::door::Door::Json).left("edge", &ONE), 3);
}

#[test]
fn what_is_wrong_is_told() {
    let scene = Scene::start(YAML, &[]);
    for body in [
        json!({"descriptor": {"entries": [{"key": "k", "value": "v"}]}}),
        json!({"descriptor": {"domain": "edge"}}),
        json!({"descriptor": {"domain": "edge", "entries": []}}),
        json!({"descriptor": "edge"}),
    ] {
        let answer = scene.service.client().post("/v1/keys/reset", &body.to_string());
        assert_eq!(answer.status, 400, "{body}: {answer:?}");
        assert!(answer.body.contains("descriptor"), "{body}: {answer:?}");
    }
}
