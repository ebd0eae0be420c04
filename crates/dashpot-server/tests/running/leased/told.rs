//! What is told of leases: by metrics, by health, by the commands.

use std::process::Command;

use dashpot_testkit::RedisServer;

use super::{ASKED, Crowd, Instance, NOTICED, PATIENT, rules, until_leased};
use crate::service::{Directory, Service, until};

const LEASED: &str = "limits = ['1000000/day']\nconsistency = 'leased'";

fn dashpot(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    let output = command.args(arguments).env_clear().output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
    told
}

#[test]
fn keys_are_leased_while_they_are_hot() {
    for consistency in ["leased", "approximate"] {
        let redis = RedisServer::start();
        let limit = LEASED.replace("leased", consistency);
        let fleet = Instance::fleet(1, &rules(&redis, PATIENT, &limit));
        let (service, keys) = (&fleet[0].service, "dashpot_store_leased_keys");
        assert_eq!((service.metric(keys), fleet[0].leased_keys()), (0.0, 0));
        let calls = || service.metric("dashpot_store_lease_calls_total");
        assert_eq!(calls(), 0.0);
        Crowd::new().during(&fleet, || {
            until_leased(&fleet[0]);
            until("the metric", NOTICED, || (service.metric(keys) == 1.0).then_some(()));
            assert_eq!(fleet[0].leased_keys(), 1, "one key, and not one for each connection");
        });
        fleet[0].left_when_cold();
        assert_eq!(service.metric(keys), 0.0);
        assert!(calls() >= 1.0);
    }
}

#[test]
fn what_is_exact_is_never_leased() {
    let redis = RedisServer::start();
    let limit = LEASED.replace("leased", "exact");
    let fleet = Instance::fleet(1, &rules(&redis, PATIENT, &limit));
    let crowd = Crowd::new();
    crowd.during(&fleet, || {
        crowd.until_admitted(200);
        assert_eq!(fleet[0].leased_keys(), 0);
    });
    assert_eq!(fleet[0].service.metric("dashpot_store_lease_calls_total"), 0.0);
}

#[test]
fn what_is_seldom_asked_about_is_exact() {
    let redis = RedisServer::start();
    let rule = "limits = ['5/year']\nconsistency = 'leased'";
    let fleet = Instance::fleet(2, &rules(&redis, PATIENT, rule));
    let mut clients = [fleet[0].client(), fleet[1].client()];
    for left in (0..5).rev() {
        let answer = clients[left % 2].check(ASKED);
        assert!(answer.allowed(), "{answer:?}");
        assert_eq!(answer.remaining(), left as u64);
    }
    for mut client in clients {
        assert!(!client.check(ASKED).allowed());
    }
    assert!(fleet.iter().all(|one| one.leased_keys() == 0));
}

#[test]
fn a_list_of_rules_says_how_closely() {
    let redis = RedisServer::start();
    let rules = rules(&redis, PATIENT, LEASED)
        + "[[rule]]\nname = 'usual'\nlimits = ['9/s']\n[[rule]]\nname = 'about'\nlimits = ['8/s']\n\
           consistency = 'approximate'\n";
    let instance = Instance::start(&rules);
    let server = format!("http://{}", instance.service.address);
    for told in [
        dashpot(&["rules", "list", "--server", &server, "--json"]),
        instance.client().get("/v1/rules").body,
    ] {
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        for (name, consistency) in [("all", "leased"), ("usual", "exact"), ("about", "approximate")]
        {
            let rules = told["rules"].as_array().unwrap();
            let rule = rules.iter().find(|rule| rule["name"] == name).unwrap();
            assert!(rule.to_string().contains(consistency), "{name}: {rule}");
        }
    }
    let table = dashpot(&["rules", "list", "--server", &server]);
    assert!(table.contains("all"), "{table}");
    let explained = dashpot(&["rules", "explain", "GET", "/", "--server", &server]);
    assert!(explained.contains("all: 1000000/day, token-bucket, leased"), "{explained}");
    assert!(explained.contains("usual: 9/s, token-bucket\n"), "{explained}");
    let new = rules.replace("'leased'", "'approximate'");
    let changes = instance.client().post("/v1/rules/diff", &new).json();
    let expected = "rule `all`: consistency leased → approximate; counts go on";
    assert_eq!(changes["changes"], serde_json::json!([expected]), "{changes}");
}

/// In memory there is nobody else.
#[test]
fn in_memory_all_is_exact() {
    for consistency in ["leased", "approximate"] {
        let home = Directory::new();
        let rules = format!(
            "[[rule]]\nname = 'all'\nlimits = ['300/year']\nconsistency = '{consistency}'\n"
        );
        let fleet = [Instance { service: Service::with_rules(&home, &rules, &[]), home }];
        let crowd = Crowd::new();
        crowd.during(&fleet, || crowd.until_denied(100));
        assert_eq!(crowd.admitted(), 300);
        assert_eq!(fleet[0].leased_keys(), 0);
        let metrics = fleet[0].client().get("/metrics").body;
        assert!(!metrics.contains("dashpot_store_leased_keys 1"), "{metrics}");
    }
}
