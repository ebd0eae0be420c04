//! Reflection: who knows nothing of the service can ask what it is.

use serde_json::{Value, json};

use crate::door::{Answer, descriptor, request};
use crate::rpc::call;
use crate::scene::Scene;

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 5 }
";

/// Asks by the name of today, and by the one of yesterday if that is not known, as grpcurl does.
fn reflected(scene: &Scene, mut asked: Value) -> Value {
    asked["to"] = json!(scene.grpc.to_string());
    let mut answer = Value::Null;
    for version in ["v1", "v1alpha"] {
        asked["version"] = json!(version);
        answer = call(asked.clone());
        if answer["error"]["code"] != "UNIMPLEMENTED" {
            break;
        }
    }
    assert!(answer.get("error").is_none(), "{answer}");
    answer
}

#[test]
fn the_services_are_told() {
    let scene = Scene::start(YAML, &[]);
    let answer = reflected(&scene, json!({"op": "services"}));
    let services: Vec<_> =
        answer["services"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    for name in ["envoy.service.ratelimit.v3.RateLimitService", "grpc.health.v1.Health"] {
        assert!(services.contains(&name), "{services:?}");
    }
    let itself = |name: &&str| name.starts_with("grpc.reflection.");
    assert!(services.iter().any(itself), "{services:?}");
}

#[test]
fn the_file_of_a_symbol_is_told() {
    let scene = Scene::start(YAML, &[]);
    for (symbol, file) in [
        ("envoy.service.ratelimit.v3.RateLimitService", "envoy/service/ratelimit/v3/rls.proto"),
        ("envoy.service.ratelimit.v3.RateLimitRequest", "envoy/service/ratelimit/v3/rls.proto"),
        (
            "envoy.extensions.common.ratelimit.v3.RateLimitDescriptor",
            "envoy/extensions/common/ratelimit/v3/ratelimit.proto",
        ),
        ("grpc.health.v1.Health", "health"),
    ] {
        let answer = reflected(&scene, json!({"op": "symbol", "symbol": symbol}));
        let told = answer["file"].as_str().unwrap_or_else(|| panic!("{symbol}: {answer}"));
        assert!(told.contains(file), "{symbol}: {answer}");
    }
    let to = scene.grpc.to_string();
    let asked = json!({"op": "symbol", "symbol": "no.such.Thing", "version": "v1", "to": to});
    let answer = call(asked);
    assert_eq!(answer["error"]["code"], "NOT_FOUND", "{answer}");
}

/// All that is imported is there as well: a client makes its messages of nothing else.
#[test]
fn a_client_that_knows_nothing_can_ask() {
    let scene = Scene::start(YAML, &[]);
    let asked = request("d", &[descriptor(&[("k", "v")])]);
    for left in [4, 3, 2, 1, 0] {
        let answer = reflected(&scene, json!({"op": "reflected", "request": asked}));
        let answer = Answer::new(&answer["response"]);
        answer.passes(left);
        assert_eq!(answer.status().limit().unit, "DAY");
    }
    let answer = reflected(&scene, json!({"op": "reflected", "request": asked}));
    Answer::new(&answer["response"]).is_denied(0);
}
