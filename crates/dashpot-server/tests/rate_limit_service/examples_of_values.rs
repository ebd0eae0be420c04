//! The examples of envoyproxy/ratelimit's documentation that are about values: metrics, `*`, and shared counters.

use crate::client::PATIENCE;
use crate::scene::{Scene, away_from_border, both};
use crate::service::until;

/// Of a key that does nothing here.
fn is_said_once(scene: &Scene, key: &str) {
    let told = || scene.service.log().matches(key).count();
    until("the log", PATIENCE, || (told() > 0).then_some(()));
    assert_eq!(told(), 1, "{}", scene.service.log());
}

/// 8: `detailed_metric` loads, and limits are what they would be without.
#[test]
fn details_of_metrics_change_nothing() {
    let yaml = "
domain: example8
descriptors:
  - key: key1
    detailed_metric: true
    rate_limit:
      unit: minute
      requests_per_unit: 10
  - key: key1
    value: value1
    rate_limit:
      unit: minute
      requests_per_unit: 20
";
    both(yaml, &[], |scene| {
        scene.holds("example8", &[("key1", "unspecified_value")], 10, "MINUTE");
        scene.holds("example8", &[("key1", "unspecified_value2")], 10, "MINUTE");
        scene.holds("example8", &[("key1", "value1")], 20, "MINUTE");
        let metrics = scene.service.client().get("/metrics").body;
        assert!(metrics.contains(r#"rule="example8.key1""#), "{metrics}");
        assert!(metrics.contains(r#"rule="example8.key1_value1""#), "{metrics}");
        assert!(!metrics.contains("unspecified"), "metrics carry no values: {metrics}");
        is_said_once(scene, "detailed_metric");
    });
}

/// 9: `*` at the end, in the middle, and twice.
#[test]
fn a_star_is_any_text() {
    let yaml = "
domain: example9
descriptors:
  - key: key1
    value: value*
    rate_limit:
      unit: minute
      requests_per_unit: 20
  - key: path
    value: /api/*/action
    rate_limit:
      unit: minute
      requests_per_unit: 20
  - key: route
    value: /api/*/resource/*/action
    rate_limit:
      unit: minute
      requests_per_unit: 20
";
    both(yaml, &[], |scene| {
        for (key, value) in [
            ("key1", "value1"),
            ("key1", "value2"),
            ("key1", "valueXYZ"),
            ("key1", "value"),
            ("path", "/api/123/action"),
            ("path", "/api/user-id/action"),
            ("path", "/api//action"),
            ("path", "/api/a/b/action"),
            ("route", "/api/v1/resource/123/action"),
            ("route", "/api/v2/resource/456/action"),
        ] {
            // Each value has a counter of its own.
            scene.holds("example9", &[(key, value)], 20, "MINUTE");
        }
        for (key, value) in [
            ("key1", "valu"),
            ("key1", "a value"),
            ("path", "/api/123/other"),
            ("path", "/api/action"),
            ("path", "/api/123/action/more"),
            ("route", "/api/v1/action"),
            ("route", "/api/v1/resource/123"),
            ("route", "/api/v1/resource/action"),
        ] {
            scene.hit("example9", &[(key, value)]).is_free();
        }
    });
}

/// 10: `value_to_metric` loads, and limits are what they would be without.
#[test]
fn values_in_metrics_change_nothing() {
    let yaml = "
domain: example10
descriptors:
  - key: route
    value_to_metric: true
    descriptors:
      - key: http_method
        value_to_metric: true
        descriptors:
          - key: subject_id
            rate_limit:
              unit: minute
              requests_per_unit: 60
";
    let request =
        |route, method, id| [("route", route), ("http_method", method), ("subject_id", id)];
    both(yaml, &[], |scene| {
        scene.holds("example10", &request("api", "GET", "123"), 60, "MINUTE");
        scene.holds("example10", &request("web", "POST", "456"), 60, "MINUTE");
        scene.hit("example10", &request("web", "POST", "456")[..2]).is_free();
        let metrics = scene.service.client().get("/metrics").body;
        let rule = r#"rule="example10.route.http_method.subject_id""#;
        assert!(metrics.contains(rule), "{metrics}");
        assert!(!metrics.contains("route_api"), "metrics carry no values: {metrics}");
        is_said_once(scene, "value_to_metric");
    });
}

/// 10, with a `*` among the levels.
#[test]
fn a_star_among_the_levels() {
    let yaml = "
domain: example10_wildcard
descriptors:
  - key: user
    value_to_metric: true
    descriptors:
      - key: action
        value: read*
        value_to_metric: true
        descriptors:
          - key: resource
            rate_limit:
              unit: minute
              requests_per_unit: 100
";
    let request = |action| [("user", "alice"), ("action", action), ("resource", "documents")];
    both(yaml, &[], |scene| {
        scene.holds("example10_wildcard", &request("readfile"), 100, "MINUTE");
        scene.holds("example10_wildcard", &request("readlink"), 100, "MINUTE");
        scene.hit("example10_wildcard", &request("write")).is_free();
    });
}

/// 11: a counter for all that match, or one for each.
#[test]
fn those_who_share_and_those_who_do_not() {
    let yaml = "
domain: example11
descriptors:
  - key: files
    value: files/*
    share_threshold: true
    rate_limit:
      unit: hour
      requests_per_unit: 10
  - key: files_no_share
    value: files_no_share/*
    share_threshold: false
    rate_limit:
      unit: hour
      requests_per_unit: 10
";
    both(yaml, &[], |scene| {
        for left in (5..10).rev() {
            scene.hit("example11", &[("files", "files/a.pdf")]).passes(left);
        }
        for left in (0..5).rev() {
            scene.hit("example11", &[("files", "files/b.csv")]).passes(left);
        }
        scene.hit("example11", &[("files", "files/c.txt")]).is_denied(0);

        let file = |name| [("files_no_share", name)];
        for left in (0..10).rev() {
            scene.hit("example11", &file("files_no_share/a.pdf")).passes(left);
        }
        scene.hit("example11", &file("files_no_share/a.pdf")).is_denied(0);
        for left in (0..10).rev() {
            scene.hit("example11", &file("files_no_share/b.csv")).passes(left);
        }
    });
}

/// 11, above another level: what is below counts by its own value.
#[test]
fn those_who_share_above_another_level() {
    let yaml = "
domain: example11_metrics
descriptors:
  - key: route
    value: api/*
    share_threshold: true
    value_to_metric: true
    descriptors:
      - key: method
        rate_limit:
          unit: minute
          requests_per_unit: 60
";
    let request = |route, method| [("route", route), ("method", method)];
    both(yaml, &[], |scene| {
        away_from_border(60, 10);
        scene.cost("example11_metrics", &request("api/v1", "GET"), 50).passes(10);
        scene.cost("example11_metrics", &request("api/v2", "GET"), 10).passes(0);
        scene.hit("example11_metrics", &request("api/v3", "GET")).is_denied(0);
        scene.hit("example11_metrics", &request("api/v1", "POST")).passes(59);
        scene.hit("example11_metrics", &request("web/v1", "GET")).is_free();
    });
}
