//! /metrics: strictly readable, exact, and no more series for more keys.

use std::collections::BTreeMap;

use serde_json::json;

use crate::support::{Metrics, Server};

fn scrape(server: &Server) -> Metrics {
    let answer = server.get("/metrics").is(200);
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
    Metrics::parse(&answer.text())
}

/// How often a rule allowed, denied, would have denied, and judged alone.
fn counts(metrics: &Metrics, rule: &str) -> [f64; 5] {
    ["allowed", "denied", "shadow_denied", "near_limit", "degraded"]
        .map(|what| metrics.value(&format!("dashpot_rule_{what}_total"), &[("rule", rule)]))
}

#[test]
fn the_counts_are_exact() {
    let server = Server::by(
        "[[rule]]\nname = 'login'\nmatch = { path = '/login' }\nlimits = ['10/h']\n\
         [[rule]]\nname = 'shade'\nmatch = { path = '/login' }\nlimits = ['4/h']\nshadow = true\n\
         [[rule]]\nname = 'idle'\nmatch = { path = '/idle' }\nlimits = ['10/h']",
    );
    assert_eq!(counts(&scrape(&server), "login"), [0.0; 5]);
    let mut client = server.client();
    let ask = json!({"request": {"path": "/login"}});
    for n in 0..13 {
        assert_eq!(client.check(&ask).status, if n < 10 { 200 } else { 429 });
    }
    for _ in 0..7 {
        client.check(&json!({"key": "a", "limit": "5/h"}));
    }
    client.check(&json!({"key": "a", "limit": "5"})).problem(400);
    client.check(&json!({"checks": [{"key": "x", "limit": "5/h"}, {"key": "y", "limit": "5/h"}]}));
    client.post("/v1/keys/peek", &json!({"key": "a", "limit": "5/h"})).is(200);
    let metrics = scrape(&server);
    let [allowed, denied, shadow, near, degraded] = counts(&metrics, "login");
    assert_eq!([allowed, denied, shadow, near, degraded], [10.0, 3.0, 0.0, 2.0, 0.0]);
    let [allowed, denied, shadow, ..] = counts(&metrics, "shade");
    assert_eq!([allowed, denied], [4.0, 0.0]);
    assert!(shadow >= 6.0, "{shadow}");
    assert_eq!(counts(&metrics, "idle"), [0.0; 5]);
    let [_, denied, shadow, _, degraded] = counts(&metrics, "(ad-hoc)");
    assert_eq!([denied, shadow, degraded], [2.0, 0.0, 0.0]);
    let answers = |door, status| {
        metrics.value("dashpot_http_answers_total", &[("door", door), ("status", status)])
    };
    assert_eq!(answers("check", "2xx"), 16.0);
    assert_eq!(answers("check", "4xx"), 6.0);
    assert_eq!(answers("admin", "2xx"), 1.0);
    assert_eq!(answers("check", "5xx"), 0.0);
}

#[test]
fn ad_hoc_checks_are_counted_by_question() {
    let server = Server::start(&[]);
    for _ in 0..3 {
        server.check(&json!({"key": "a", "limit": "2/h"}));
    }
    let [allowed, denied, ..] = counts(&scrape(&server), "(ad-hoc)");
    assert_eq!([allowed, denied], [2.0, 1.0]);
}

#[test]
fn gateways_are_counted_as_well() {
    let server = Server::by("[[rule]]\nname = 'r'\nlimits = ['2/h']");
    for _ in 0..3 {
        server.ask("GET", "/v1/forward-auth/", &[]);
    }
    let metrics = scrape(&server);
    let [allowed, denied, ..] = counts(&metrics, "r");
    assert_eq!([allowed, denied], [2.0, 1.0]);
    let door = |status| {
        let labels = [("door", "forward-auth"), ("status", status)];
        metrics.value("dashpot_http_answers_total", &labels)
    };
    assert_eq!([door("2xx"), door("4xx")], [2.0, 1.0]);
}

#[test]
fn a_thousand_keys_add_no_series() {
    let server = Server::by("[[rule]]\nname = 'r'\nby = ['ip', 'header:x']\nlimits = ['1/h']");
    let mut client = server.client();
    let names = |metrics: &Metrics| metrics.series.keys().cloned().collect::<Vec<_>>();
    client.check(&json!({"request": {"path": "/", "ip": "203.0.113.7"}}));
    client.check(&json!({"key": "a", "limit": "1/h"}));
    let before = scrape(&server);
    for n in 0..1000 {
        let ip = format!("10.1.{}.{}", n / 250, n % 250);
        let request = json!({"path": format!("/p{n}"), "ip": ip, "headers": {"x": n.to_string()}});
        for _ in 0..2 {
            client.check(&json!({ "request": request }));
            client.check(&json!({"key": format!("k{n}"), "limit": "1/h"}));
        }
        client.get(&format!("/nothing/{n}")).is(404);
    }
    let after = scrape(&server);
    assert_eq!(names(&before), names(&after));
    let [allowed, denied, ..] = counts(&after, "r");
    assert_eq!([allowed, denied], [1001.0, 1000.0]);
    let top = client.get("/v1/keys/top?n=1000").is(200).json();
    assert!(top["keys"].as_array().unwrap().len() <= 1000);
}

#[test]
fn labels_are_names_of_rules_and_words_of_ours() {
    let server = Server::by("[[rule]]\nname = 'a.b_c-d'\nlimits = ['5/h']");
    server.ask("BREW", "/v1/forward-auth/", &[]);
    server.ask("BREW", "/v1/check", &[]);
    let metrics = scrape(&server);
    let mut values: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (_, labels) in metrics.series.keys() {
        for (label, value) in labels {
            let seen = values.entry(label).or_default();
            if !seen.contains(&value.as_str()) {
                seen.push(value);
            }
        }
    }
    assert_eq!(values.remove("rule").unwrap(), ["(ad-hoc)", "(override)", "(throttle)", "a.b_c-d"]);
    values.remove("le");
    values.remove("door");
    values.remove("status");
    assert!(values.is_empty(), "{values:?}");
}

#[test]
fn histograms_add_up() {
    let server = Server::start(&[]);
    for _ in 0..20 {
        server.check(&json!({"key": "a", "limit": "1/h"}));
    }
    let metrics = scrape(&server);
    let mut buckets: BTreeMap<_, Vec<(f64, String, f64)>> = BTreeMap::new();
    for ((name, labels), value) in &metrics.series {
        let Some(family) = name.strip_suffix("_bucket") else { continue };
        assert_eq!(metrics.families[family], "histogram");
        let mut others = labels.clone();
        let text = others.remove("le").unwrap();
        let bound = text.parse().unwrap();
        buckets.entry((family.to_owned(), others)).or_default().push((bound, text, *value));
    }
    assert!(!buckets.is_empty());
    for ((family, labels), mut all) in buckets {
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        assert!(all.windows(2).all(|two| two[0].2 <= two[1].2), "not cumulative: {all:?}");
        let count = metrics.series[&(format!("{family}_count"), labels.clone())];
        let (_, last, value) = all.last().unwrap();
        assert_eq!(*value, count, "{family} {labels:?}");
        assert!(metrics.series.contains_key(&(format!("{family}_sum"), labels)));
        assert_eq!(last, "+Inf", "the last bucket of {family} has this bound, and no number");
    }
    assert_eq!(metrics.value("dashpot_http_seconds_count", &[("door", "check")]), 20.0);
}

#[test]
fn they_survive_a_reload() {
    let old =
        "[[rule]]\nname = 'stays'\nlimits = ['5/h']\n[[rule]]\nname = 'goes'\nlimits = ['5/h']";
    let server = Server::by(old);
    server.request(&json!({"path": "/"})).allowed();
    server.write("dashpot.toml", "[[rule]]\nname = 'stays'\nlimits = ['6/h']");
    server.post("/v1/rules/reload", &json!({})).is(200);
    server.request(&json!({"path": "/"})).allowed();
    let metrics = scrape(&server);
    assert_eq!(counts(&metrics, "stays")[0], 2.0);
    assert!(metrics.value("dashpot_rules_generation", &[]) >= 2.0);
    assert!(metrics.value("dashpot_reloads_total", &[]) >= 1.0);
    server.write("dashpot.toml", "nonsense");
    server.post("/v1/rules/reload", &json!({})).problem(400);
    assert!(scrape(&server).value("dashpot_failed_reloads_total", &[]) >= 1.0);
}
