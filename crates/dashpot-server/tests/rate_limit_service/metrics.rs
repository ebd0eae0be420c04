//! Metrics by descriptor, as it is written.

use crate::door::{descriptor, request};
use crate::scene::{Scene, both};

const YAML: &str = "
domain: messaging
descriptors:
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit: { unit: day, requests_per_unit: 10 }
  - key: to_number
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 4 }
  - key: route
    value: /api/*
    rate_limit: { unit: day, requests_per_unit: 1 }
";

fn metric(scene: &Scene, what: &str, rule: &str) -> f64 {
    scene.service.metric(&format!("dashpot_rule_{what}_total{{rule=\"{rule}\"}}"))
}

#[test]
fn allowed_and_denied_and_near_and_in_the_shadow() {
    both(YAML, &[], |scene| {
        let number = ("to_number", "2061111111");
        let entries = [("message_type", "marketing"), number];
        for _ in 0..13 {
            scene.hit("messaging", &entries);
        }
        let rule = "messaging.message_type_marketing.to_number";
        assert_eq!(metric(scene, "allowed", rule), 10.0);
        assert_eq!(metric(scene, "denied", rule), 3.0);
        assert_eq!(metric(scene, "near_limit", rule), 2.0);
        assert_eq!(metric(scene, "shadow_denied", rule), 0.0);

        for _ in 0..7 {
            scene.hit("messaging", &[number]);
        }
        let rule = "messaging.to_number";
        assert_eq!(metric(scene, "allowed", rule), 4.0);
        assert_eq!(metric(scene, "denied", rule), 0.0);
        assert_eq!(metric(scene, "shadow_denied", rule), 3.0);

        for route in ["/api/a", "/api/b", "/api/b"] {
            scene.hit("messaging", &[("route", route)]);
        }
        assert_eq!(metric(scene, "allowed", "messaging.route_/api/*"), 2.0);
        assert_eq!(metric(scene, "denied", "messaging.route_/api/*"), 1.0);
    });
}

/// However many values there are.
#[test]
fn they_never_carry_values() {
    both(YAML, &[], |scene| {
        let series = || {
            let metrics = scene.service.client().get("/metrics").body;
            assert!(!metrics.contains("20600"), "{metrics}");
            assert!(!metrics.contains("nowhere"), "{metrics}");
            metrics.lines().filter(|line| line.starts_with("dashpot_rule_")).count()
        };
        scene.hit("messaging", &[("to_number", "2060000000")]);
        scene.hit("nowhere", &[("to_number", "2060000000")]);
        let before = series();
        assert!(before > 0);
        for last in 0..20 {
            let number = format!("20600{last:05}");
            let pair = [
                descriptor(&[("to_number", &number)]),
                descriptor(&[("message_type", "marketing"), ("to_number", &number)]),
            ];
            scene.ask(&request("messaging", &pair));
            scene.ask(&request(&format!("nowhere{last}"), &pair));
        }
        assert_eq!(series(), before);
    });
}

/// Who is denied most is told to administrators.
#[test]
fn the_top_tells_which_values() {
    let scene = Scene::start(YAML, &[]);
    for (value, times) in [("/api/a", 6), ("/api/b", 3), ("/api/c", 1)] {
        for _ in 0..times {
            scene.hit("messaging", &[("route", value)]);
        }
    }
    let top = scene.service.client().get("/v1/keys/top").json();
    let told = |nth: usize| (top["keys"][nth]["key"].to_string(), &top["keys"][nth]["denied"]);
    assert!(told(0).0.contains("/api/a") && *told(0).1 == 5, "{top}");
    assert!(told(1).0.contains("/api/b") && *told(1).1 == 2, "{top}");
    assert_eq!(top["keys"].as_array().unwrap().len(), 2, "{top}");
    assert_eq!(top["keys"][0]["rule"], "messaging.route_/api/*", "{top}");
}

/// Where envoyproxy/ratelimit has `/rlconfig`.
#[test]
fn the_rules_in_use_are_told() {
    let scene = Scene::start(YAML, &[]);
    let answer = scene.service.client().get("/v1/rules");
    assert_eq!(answer.status, 200, "{answer:?}");
    for rule in ["messaging.message_type_marketing.to_number", "messaging.to_number"] {
        assert!(answer.body.contains(rule), "{answer:?}");
    }
}
