//! What is to be seen at the admin port.

use serde_json::json;

use super::{Scene, worker};
use crate::caller::Caller;

fn rules() -> String {
    let adaptive = "[[rule]]\nname = 'r'\nlimits = ['10/day']\n\
        adaptive = { cpu = 'off', tick = '10ms', down = '50%', up = '200%' }\n";
    adaptive.to_owned() + &worker("limit = 2, places = 3, wait = '20s'")
}

#[test]
fn metrics_and_health_say_the_same() {
    let scene = Scene::by(&rules());
    let told = |name: &str| scene.proxy.metric(&format!("dashpot_{name}{{rule=\"worker\"}}"));
    let all = || [told("capacity_limit"), told("capacity_in_flight"), told("capacity_waiting")];
    assert_eq!(all(), [2.0, 0.0, 0.0]);
    let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    let _waiting = [scene.line_up("/3", ""), scene.line_up("/4", ""), scene.line_up("/5", "")];
    assert_eq!(all(), [2.0, 2.0, 3.0]);
    let health = scene.health();
    let expected = json!([{"rule": "worker", "limit": 2, "in_flight": 2, "waiting": 3}]);
    assert_eq!(health["capacity"], expected, "{health}");
    assert_eq!(health["adaptive"][0]["rule"], "r", "{health}");
    assert_eq!(health["adaptive"][0]["factor"], 1.0, "{health}");
    let metrics = scene.proxy.admin_get("/metrics").text();
    assert!(!metrics.contains("dashpot_capacity_limit{rule=\"r\"}"), "{metrics}");
    assert!(!metrics.contains("dashpot_rule_factor{rule=\"worker\"}"), "{metrics}");
    for name in ["capacity_limit", "capacity_in_flight", "capacity_waiting", "rule_factor"] {
        let kind = format!("# TYPE dashpot_{name} gauge");
        assert!(metrics.contains(&kind), "{kind}: {metrics}");
    }
}

#[test]
fn it_is_told_there_and_not_at_the_gateway() {
    let scene = Scene::by(&rules());
    let stress = r#"{"errors":1,"for":"1h"}"#;
    let passed_on = scene.proxy.caller().ask("POST", "/v1/health", &[], stress);
    assert_eq!(passed_on.text(), "served", "the backend's");
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(scene.factor("r"), 1.0);
    scene.tell(1, "r", 0.5);
    assert_eq!(scene.get("/", "").header("ratelimit-policy"), Some(r#""r";q=5;w=86400"#));
}

#[test]
fn who_is_elsewhere_needs_a_token() {
    let scene = Scene::with(&rules(), &["--admin-token", "correct-horse"]);
    let tell = |lines: &[&str]| {
        let body = r#"{"errors":1,"for":"1h"}"#;
        Caller::to(scene.proxy.admin()).ask("POST", "/v1/health", lines, body).status
    };
    assert_eq!(tell(&[]), 401);
    assert_eq!(tell(&["authorization: Bearer correct-horse"]), 200);
}

/// A question at the admin port is not a request that is served.
#[test]
fn a_check_there_has_nothing_to_do_with_the_door() {
    let scene = Scene::by(&rules());
    let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    let answer = scene.proxy.admin_post("/v1/check", r#"{"request":{"path":"/"}}"#);
    assert_eq!(answer.status, 200, "{answer:?}");
    let told = answer.json();
    let names: Vec<_> = told["policies"].as_array().unwrap().iter().map(|p| &p["policy"]).collect();
    assert_eq!(names, ["r"], "{told}");
    assert_eq!(scene.door().in_flight, 2);
}

#[test]
fn the_rules_say_what_they_are_and_what_came_of_them() {
    let scene = Scene::by(&rules().replace("places = 3", "places = 0"));
    let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    assert_eq!(scene.get("/", "").status, 503);
    let told = scene.proxy.admin_get("/v1/rules").json();
    let rules = told["rules"].as_array().unwrap();
    let of = |name: &str| rules.iter().find(|rule| rule["name"] == name).unwrap();
    let worker = of("worker");
    assert_eq!((&worker["allowed"], &worker["denied"]), (&json!(2), &json!(1)), "{worker}");
    assert!(worker["says"].to_string().contains("2 at once"), "{worker}");
    let says = of("r")["says"].to_string();
    assert!(says.contains("adaptive") && says.contains("1%..5%"), "{says}");
}

#[test]
fn nobody_is_told_that_a_door_never_denies() {
    let scene = Scene::by(&rules());
    let advice = scene.proxy.admin_get("/v1/rules").json()["advice"].to_string();
    assert!(!advice.contains("never denies"), "{advice}");
}
