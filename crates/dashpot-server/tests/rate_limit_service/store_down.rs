//! A store that does not answer: `on_error` says what happens then.

use dashpot_testkit::RedisServer;
use serde_json::json;

use crate::client::PATIENCE;
use crate::door::{Door, costing, request};
use crate::scene::Scene;
use crate::service::until;

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 3 }
";
const ENTRY: [(&str, &str); 1] = [("k", "v")];

/// Nothing listens there.
fn down(policy: &str, door: Door) -> Scene {
    let rules = format!("[store]\nurl = 'redis://127.0.0.1:1'\non_error = '{policy}'\n");
    Scene::with_rules(&rules, YAML, &[]).by(door)
}

fn both(policy: &str, case: impl Fn(&Scene)) {
    for door in [Door::Grpc, Door::Json] {
        case(&down(policy, door));
    }
}

#[test]
fn deny_is_unavailable() {
    both("deny", |scene| {
        for _ in 0..3 {
            let refusal = scene.refused(&request("d", &[costing(&ENTRY, 1)]));
            let code = if scene.door == Door::Grpc { "UNAVAILABLE" } else { "503" };
            assert_eq!(refusal.code, code, "{refusal:?}");
        }
        let mut own = costing(&[("own", "")], 1);
        own["limit"] = json!({"requestsPerUnit": 5, "unit": "DAY"});
        scene.refused(&request("d", &[own]));
        // What no limit is about needs no store.
        scene.hit("d", &[("other", "")]).is_free();
        scene.hit("nowhere", &ENTRY).is_free();
    });
}

#[test]
fn local_goes_on_by_itself() {
    both("local", |scene| {
        for left in [2, 1, 0] {
            scene.hit("d", &ENTRY).passes(left);
        }
        scene.hit("d", &ENTRY).is_denied(0);
    });
    // The usual.
    let rules = "[store]\nurl = 'redis://127.0.0.1:1'\n";
    let scene = Scene::with_rules(rules, YAML, &[]);
    scene.cost("d", &ENTRY, 3).passes(0);
    assert!(scene.hit("d", &ENTRY).over);
}

#[test]
fn allow_lets_pass() {
    both("allow", |scene| {
        for _ in 0..6 {
            let answer = scene.hit("d", &ENTRY);
            assert!(!answer.over, "{answer:?}");
        }
    });
}

#[test]
fn a_rule_may_say_otherwise() {
    let rule = |name: &str, policy: &str| {
        format!(
            "[[rule]]\nname = '{name}'\nmatch = {{ fact = {{ domain = '{name}' }} }}\n\
             limits = ['3/day']\non_store_error = '{policy}'\n"
        )
    };
    let rules = "[store]\nurl = 'redis://127.0.0.1:1'\non_error = 'allow'\n".to_owned()
        + &rule("strict", "deny")
        + &rule("loose", "allow");
    let scene = Scene::with_rules(&rules, "", &[]);
    assert_eq!(scene.refused(&request("strict", &[costing(&ENTRY, 1)])).code, "UNAVAILABLE");
    for _ in 0..5 {
        assert!(!scene.hit("loose", &ENTRY).over);
    }
}

/// It goes away while it is used, and comes back.
#[test]
fn an_outage_begins_and_ends() {
    let redis = RedisServer::start();
    let rules = format!("[store]\nurl = '{}'\ndeadline = '2s'\non_error = 'deny'\n", redis.url());
    let scene = Scene::with_rules(&rules, YAML, &[]);
    let asked = request("d", &[costing(&[("k", "other")], 0)]);
    until("the store", PATIENCE, || scene.try_ask(&asked).ok());
    scene.hit("d", &ENTRY).passes(2);
    redis.kill();
    until("the outage to be told", PATIENCE, || {
        scene.try_ask(&asked).err().filter(|refusal| refusal.code == "UNAVAILABLE")
    });
    // It is not the service that is ill.
    let health = json!({"op": "health", "to": scene.grpc.to_string(), "service": ""});
    assert_eq!(crate::rpc::call(health)["status"], "SERVING");
    redis.restart();
    until("the store to be back", PATIENCE, || scene.try_ask(&asked).ok());
    assert!(!scene.hit("d", &ENTRY).over);
}
