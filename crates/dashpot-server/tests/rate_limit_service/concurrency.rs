//! Many at once: what passes is what the limit says, neither more nor less.

use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use dashpot_testkit::RedisServer;
use serde_json::{Value, json};

use crate::client::PATIENCE;
use crate::door::{Door, descriptor, request};
use crate::rpc::call;
use crate::scene::Scene;
use crate::service::until;

const YAML: &str = "
domain: d
descriptors:
  - key: small
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: large
    rate_limit: { unit: day, requests_per_unit: 1000 }
";

fn many(scenes: &[&Scene], request: &Value, calls: u32) -> Value {
    let to: Vec<_> = scenes.iter().map(|scene| scene.grpc.to_string()).collect();
    let asked = json!({
        "op": "many", "to": to, "request": request, "calls": calls, "threads": 8, "channels": 4,
    });
    call(asked)["counts"].clone()
}

fn pair() -> Value {
    request("d", &[descriptor(&[("large", "")]), descriptor(&[("small", "")])])
}

#[test]
fn exactly_the_limit_passes() {
    for flags in [&[][..], &["--envoy-count-denied"], &["--envoy-algorithm", "sliding-log"]] {
        let scene = Scene::start(YAML, flags);
        let one = request("d", &[descriptor(&[("small", "")])]);
        assert_eq!(many(&[&scene], &one, 400), json!({"OK": 100, "OVER_LIMIT": 300}), "{flags:?}");
    }
}

#[test]
fn a_denial_takes_nothing_however_many_ask() {
    let scene = Scene::start(YAML, &[]);
    assert_eq!(many(&[&scene], &pair(), 400), json!({"OK": 100, "OVER_LIMIT": 300}));
    assert_eq!(scene.left("d", &[("large", "")]), 900);
}

#[test]
fn over_http_as_well_and_both_together() {
    let scene = Scene::start(YAML, &[]).by(Door::Json);
    let passed = AtomicU32::new(0);
    let (asked, text) = (pair(), pair().to_string());
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut client = scene.service.client();
                for _ in 0..50 {
                    let status = client.post("/json", &text).status;
                    assert!(matches!(status, 200 | 429), "{status}");
                    passed.fetch_add(u32::from(status == 200), Ordering::Relaxed);
                }
            });
        }
        let counts = many(&[&scene], &asked, 200);
        passed.fetch_add(counts["OK"].as_u64().unwrap_or(0) as u32, Ordering::Relaxed);
    });
    assert_eq!(passed.into_inner(), 100);
    assert_eq!(scene.left("d", &[("large", "")]), 900);
}

/// Two of them on one Redis.
#[test]
fn a_fleet_shares_the_limit_exactly() {
    let redis = RedisServer::start();
    // Patient, so that a busy machine is not taken for a server that is down.
    let rules = format!("[store]\nurl = '{}'\ndeadline = '2s'\non_error = 'deny'\n", redis.url());
    let both = [(); 2].map(|()| Scene::with_rules(&rules, YAML, &[]));
    for scene in &both {
        until("the store", PATIENCE, || {
            let health = scene.service.client().get("/v1/health").json();
            (health["up"] == true).then_some(())
        });
    }
    let [first, second] = &both;
    assert_eq!(many(&[first, second], &pair(), 400), json!({"OK": 100, "OVER_LIMIT": 300}));
    assert_eq!(first.left("d", &[("large", "")]), 900);
    assert_eq!(second.left("d", &[("large", "")]), 900);
    assert!(redis.keys_without_ttl().is_empty(), "nothing stays for ever");
    // What one has counted the other goes on with.
    first.cost("d", &[("large", "x")], 600).passes(400);
    second.cost("d", &[("large", "x")], 500).is_denied(400);
    second.cost("d", &[("large", "x")], 400).passes(0);
}
