//! One service with several doors: what is counted at each, and what is seen at the others.

use dashpot_testkit::redis::{Connection, Reply};
use serde_json::Value;

use crate::scene::{DAY, Scene, ask, both, contented, refused, run};

const RULES: &str = "[[rule]]\nname = 'a'\nby = ['ip']\nlimits = ['1/day']\n";

#[test]
fn keys_of_the_other_doors_are_others() {
    both(|scene| {
        let mut connection = scene.connect();
        for key in ["a", "{a}", "a:b", "(throttle)"] {
            assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 0);
            assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 1);
            // The same key, the same rate, the same algorithm.
            let body = format!(r#"{{"key":"{key}","limit":"1/day"}}"#);
            let mut client = scene.service.client();
            assert!(client.check(&body).allowed(), "{key}");
            assert!(!client.check(&body).allowed(), "{key}");
        }
        // And the other way round.
        assert!(scene.service.client().check(r#"{"key":"b","limit":"1/day"}"#).allowed());
        assert_eq!(ask(&mut connection, "b", &[0, 1, DAY])[0], 0);
        // What is reset there stays here.
        let reset = r#"{"key":"b","limit":"1/day"}"#;
        assert_eq!(scene.service.client().post("/v1/keys/reset", reset).status, 200);
        assert_eq!(ask(&mut connection, "b", &[0, 1, DAY])[0], 1);
    });
}

#[test]
fn rules_have_nothing_to_do_with_it() {
    let scene = Scene::with_rules(RULES, &[]);
    let mut connection = scene.connect();
    for key in ["a", "203.0.113.7", "ip=203.0.113.7"] {
        assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 0, "{key}");
        assert_eq!(ask(&mut connection, key, &[0, 1, DAY])[0], 1, "{key}");
    }
    let asked = r#"{"request":{"path":"/","ip":"203.0.113.7"}}"#;
    assert!(scene.service.client().check(asked).allowed());
    assert!(!scene.service.client().check(asked).allowed());
}

/// Rules that change leave alone what is counted here.
#[test]
fn a_reload_forgets_nothing() {
    let scene = Scene::with_rules(RULES, &[]);
    let mut connection = scene.connect();
    assert_eq!(ask(&mut connection, "k", &[9, 1, DAY, 4])[2], 6);
    scene.home.write("rules.toml", &RULES.replace("'a'", "'b'"));
    assert_eq!(scene.service.client().post("/v1/rules/reload", "").status, 200);
    assert_eq!(ask(&mut connection, "k", &[9, 1, DAY])[2], 5);
}

#[test]
fn what_passed_and_what_did_not_is_in_the_metrics() {
    both(|scene| {
        let count = |what| {
            scene.service.metric(&format!("dashpot_rule_{what}_total{{rule=\"(throttle)\"}}"))
        };
        let before = ["allowed", "denied"].map(count);
        let mut connection = scene.connect();
        for _ in 0..12 {
            ask(&mut connection, "k", &[4, 1, DAY]);
        }
        // Neither allowed nor denied.
        refused(&mut connection, &["CL.THROTTLE", "k", "4", "0", "60"]);
        let after = ["allowed", "denied"].map(count);
        assert_eq!([after[0] - before[0], after[1] - before[1]], [5.0, 7.0]);
        let metrics = scene.service.client().get("/metrics").body;
        assert!(metrics.contains(r#"door="resp""#), "{metrics}");
        // Keys are in no metric.
        ask(&mut connection, "very-private", &[4, 1, DAY]);
        assert!(!scene.service.client().get("/metrics").body.contains("very-private"));
    });
}

#[test]
fn who_was_denied_most_is_told() {
    let scene = Scene::start(&[]);
    let mut connection = scene.connect();
    for _ in 0..8 {
        ask(&mut connection, "greedy", &[0, 1, DAY]);
        ask(&mut connection, b"\xff\xfe", &[0, 1, DAY]);
    }
    let top = scene.service.client().get("/v1/keys/top").json();
    let keys = top["keys"].as_array().unwrap();
    let greedy: Vec<&Value> =
        keys.iter().filter(|key| key["key"].to_string().contains("greedy")).collect();
    let [greedy] = greedy[..] else { panic!("{top}") };
    assert_eq!((&greedy["denied"], &greedy["error"]), (&7.into(), &0.into()), "{top}");
    assert_eq!(keys.len(), 2, "the other is there, too: {top}");
    let server = format!("http://{}", scene.service.address);
    let program = env!("CARGO_BIN_EXE_dashpot");
    let told = contented(&run(program, &["key", "top", "--server", &server]));
    assert!(told.contains("greedy") && told.contains('7'), "{told}");
}

/// By its name, or as the list tells it, in memory and on Redis.
#[test]
fn keys_are_forgotten_and_blocked_by_administrators() {
    both(|scene| {
        let mut connection = scene.connect();
        let manage = |wish: &str, which: &str| {
            let answer = scene.service.client().post(&format!("/v1/keys/{wish}"), which);
            (answer.status, answer.json())
        };
        let (name, id) = ("managed", "6d616e61676564");
        let by_name = format!(r#"{{"rule":"(throttle)","key":"{name}"}}"#);
        let by_id = format!(r#"{{"rule":"(throttle)","id":"{id}"}}"#);
        for which in [&by_name, &by_id] {
            assert_eq!(ask(&mut connection, name, &[0, 1, DAY])[0], 0);
            assert_eq!(ask(&mut connection, name, &[0, 1, DAY])[0], 1);
            let (status, told) = manage("peek", which);
            let left = told["policies"][0]["reset_after"].as_f64().unwrap();
            assert!(status == 200 && left > 86_000.0, "{told}");
            assert_eq!(manage("reset", which).0, 200);
        }
        let block = by_name.replace('}', r#","for":"1h"}"#);
        assert_eq!(manage("block", &block).0, 200);
        let [limited, _, remaining, retry, _] = ask(&mut connection, name, &[0, 1, 1]);
        assert_eq!((limited, remaining), (1, 0));
        assert!((3590..=3600).contains(&retry), "{retry}");
        assert_eq!(manage("unblock", &by_id).0, 200);
        assert_eq!(ask(&mut connection, name, &[0, 1, 1])[0], 0);
        for wrong in [
            r#"{"rule":"(throttle)"}"#,
            r#"{"rule":"(throttle)","id":"xyz"}"#,
            r#"{"rule":"(throttle)","key":"a","id":"61"}"#,
            r#"{"rule":"(throttle)","key":"a","limit":"1/s"}"#,
        ] {
            assert_eq!(manage("peek", wrong).0, 400, "{wrong}");
        }
    });
}

/// Logs name a hash, never the key.
#[test]
fn keys_are_in_no_log() {
    let scene = Scene::start(&["--log-level", "debug"]);
    let mut connection = scene.connect();
    for _ in 0..3 {
        ask(&mut connection, "very-private", &[0, 1, DAY]);
    }
    refused(&mut connection, &["CL.THROTTLE", "very-private", "0", "0", "60"]);
    refused(&mut connection, &["GET", "very-private"]);
    let log = crate::service::until("the log", crate::client::PATIENCE, || {
        Some(scene.service.log()).filter(|log| log.contains("denied"))
    });
    assert!(!log.contains("very-private"), "{log}");
}

const SECTIONS: [&str; 7] =
    ["server", "clients", "persistence", "stats", "replication", "cluster", "throttle"];

fn info(connection: &mut Connection, sections: &[&str]) -> String {
    let words = [&["INFO"], sections].concat();
    match connection.command(&words).unwrap() {
        Reply::Text(text) => String::from_utf8(text).unwrap(),
        other => panic!("{words:?}: {other:?}"),
    }
}

/// The sections there are, in lower case.
fn sections(info: &str) -> Vec<String> {
    let headings = info.lines().filter_map(|line| line.strip_prefix("# "));
    headings.map(|heading| heading.trim().to_lowercase()).collect()
}

#[test]
fn info_has_its_sections() {
    both(|scene| {
        let mut connection = scene.connect();
        let all = info(&mut connection, &[]);
        assert_eq!(sections(&all), SECTIONS, "{all}");
        for section in SECTIONS {
            let told = info(&mut connection, &[section]);
            assert_eq!(sections(&told), [section], "{told}");
            let told = info(&mut connection, &[&section.to_uppercase()]);
            assert_eq!(sections(&told), [section], "{told}");
        }
        let told = info(&mut connection, &["server", "throttle"]);
        assert_eq!(sections(&told), ["server", "throttle"]);
        assert_eq!(sections(&info(&mut connection, &["keyspace"])), [""; 0]);
        // Every line is one that clients can read.
        for line in all.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            assert!(line.contains(':'), "{line:?} in {all}");
        }
        // What clients look at before they go on.
        for line in ["loading:0", "role:master", "cluster_enabled:0"] {
            assert!(all.lines().any(|told| told == line), "no {line} in {all}");
        }
        assert!(all.contains("redis_version:"), "{all}");
    });
}
