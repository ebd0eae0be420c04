//! Whether it serves: `grpc.health.v1.Health` follows `/readyz`.

use serde_json::{Value, json};

use crate::client::PATIENCE;
use crate::rpc::{Call, call};
use crate::scene::Scene;
use crate::service::until;

const YAML: &str = "
domain: d
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 5 }
";
const SERVICES: [&str; 3] = ["", "ratelimit", "envoy.service.ratelimit.v3.RateLimitService"];

fn asked(scene: &Scene, op: &str, service: &str) -> Value {
    json!({"op": op, "to": scene.grpc.to_string(), "service": service})
}

fn health(scene: &Scene, service: &str) -> Value {
    call(asked(scene, "health", service))
}

#[test]
fn it_serves_as_a_whole_and_by_name() {
    let scene = Scene::start(YAML, &[]);
    for service in SERVICES {
        assert_eq!(health(&scene, service)["status"], "SERVING", "{service:?}");
    }
    let unknown = health(&scene, "something.else");
    assert_eq!(unknown["error"]["code"], "NOT_FOUND", "{unknown}");
}

#[test]
fn told_to_stop_it_says_so_before_it_does() {
    let mut scene = Scene::start(YAML, &["--drain-delay", "4s"]);
    let watches = SERVICES.map(|service| Call::start(asked(&scene, "watch", service)));
    for watch in &watches {
        assert_eq!(watch.next()["status"], "SERVING");
    }
    scene.service.signal("TERM");
    for watch in &watches {
        assert_eq!(watch.next()["status"], "NOT_SERVING", "whoever watches hears of it");
    }
    for service in SERVICES {
        assert_eq!(health(&scene, service)["status"], "NOT_SERVING", "{service:?}");
    }
    assert_eq!(scene.service.client().get("/readyz").status, 503);
    // Meanwhile it goes on.
    scene.hit("d", &[("k", "v")]).passes(4);
    assert_eq!(scene.service.end(PATIENCE).code(), Some(0), "watchers do not hold it up");
    for watch in &watches {
        let last = watch.next();
        assert!(last.get("end").is_some() || last.get("error").is_some(), "{last}");
    }
}

#[test]
fn those_who_watch_one_that_goes_on_hear_nothing_more() {
    let scene = Scene::start(YAML, &[]);
    let mut watch = asked(&scene, "watch", "ratelimit");
    watch["deadline"] = json!(1.5);
    let watch = Call::start(watch);
    assert_eq!(watch.next()["status"], "SERVING");
    // Other calls, and another configuration, are no news.
    scene.hit("d", &[("k", "v")]).passes(4);
    scene.home.write("config/limits.yaml", &YAML.replace("5 }", "6 }"));
    assert_eq!(watch.next()["error"]["code"], "DEADLINE_EXCEEDED");
}

#[test]
fn healthcheck_is_for_those_who_ask_over_http() {
    let mut scene = Scene::start(YAML, &["--drain-delay", "3s"]);
    let answer = scene.service.client().get("/healthcheck");
    assert_eq!((answer.status, answer.body.trim()), (200, "OK"));
    scene.service.signal("TERM");
    until("it to say so", PATIENCE, || {
        let status = scene.service.client().get("/healthcheck").status;
        (500..600).contains(&status).then_some(())
    });
    assert_eq!(scene.service.end(PATIENCE).code(), Some(0));
}
