//! Domains that are in no YAML are for the rule file: which rules, and what is told of them.

use crate::door::{costing, descriptor, request};
use crate::scene::{Scene, both_by_rules};
use crate::service::until;

/// The page's.
const EDGE: &str = r#"
[[rule]]
name = "edge"
match = { fact = { domain = "edge" } }
by = ["fact:remote_address"]
limits = ["5/min", "100/day"]
algorithm = "sliding-window"
"#;

#[test]
fn the_status_is_that_of_the_closest_limit() {
    both_by_rules(EDGE, "", |scene| {
        let address = [("remote_address", "203.0.113.7")];
        for left in [4, 3, 2, 1, 0] {
            let answer = scene.hit("edge", &address);
            answer.passes(left);
            let limit = answer.status().limit();
            assert_eq!((limit.count, limit.unit.as_str()), (5, "MINUTE"), "{answer:?}");
            assert_eq!(limit.name, "edge-min", "{answer:?}");
        }
        let answer = scene.hit("edge", &address);
        answer.is_denied(0);
        assert_eq!(answer.status().limit().name, "edge-min");
        scene.hit("edge", &[("remote_address", "203.0.113.8")]).passes(4);
        scene.hit("other", &address).is_free();
    });
}

#[test]
fn the_closest_may_be_any_of_them() {
    let rules = "[[rule]]\nname = 'r'\nby = ['fact:user']\nlimits = ['10/day', '12/week']\n\
        algorithm = 'sliding-log'\n[[rule]]\nname = 'all'\nlimits = ['11/day']\n\
        algorithm = 'sliding-log'\n";
    both_by_rules(rules, "", |scene| {
        let told = |user: &str, hits| {
            let answer = scene.cost("d", &[("user", user)], hits);
            let status = answer.status().clone();
            let limit = status.limit().clone();
            (status.over, status.remaining, limit.name, limit.count, limit.unit)
        };
        let (day, all) = ("DAY".to_owned(), "all".to_owned());
        assert_eq!(told("a", 8), (false, 2, "r-day".to_owned(), 10, day.clone()));
        // Three of all are left, and ten of this one's own.
        assert_eq!(told("b", 1), (false, 2, all.clone(), 11, day.clone()));
        assert_eq!(told("b", 3), (true, 2, all, 11, day));
    });
}

#[test]
fn windows_that_are_no_units_are_told_as_unknown() {
    let rule = |window: &str| {
        format!(
            "[[rule]]\nname = 'r-{window}'\nmatch = {{ fact = {{ domain = '{window}' }} }}\n\
             limits = ['9/{window}']\nalgorithm = 'fixed-window'\n"
        )
    };
    let windows = [
        ("5min", "UNKNOWN"),
        ("2h", "UNKNOWN"),
        ("s", "SECOND"),
        ("min", "MINUTE"),
        ("h", "HOUR"),
        ("day", "DAY"),
        ("week", "WEEK"),
    ];
    let rules: String = windows.iter().map(|(window, _)| rule(window)).collect();
    both_by_rules(&rules, "", |scene| {
        for (window, unit) in windows {
            let answer = scene.hit(window, &[("k", "v")]);
            let limit = answer.status().limit();
            assert_eq!((limit.count, limit.unit.as_str()), (9, unit), "{window}");
            assert_eq!(limit.name, format!("r-{window}"));
            assert!(answer.status().reset.unwrap() > 0, "{answer:?}");
        }
    });
}

#[test]
fn a_rule_that_several_descriptors_lead_to_counts_once() {
    let rules = "[[rule]]\nname = 'user'\nby = ['fact:user']\nlimits = ['10/day']\n\
        algorithm = 'fixed-window'\n";
    both_by_rules(rules, "", |scene| {
        let alice = ("user", "alice");
        let asked = request(
            "d",
            &[
                descriptor(&[alice]),
                descriptor(&[alice, ("path", "/a")]),
                descriptor(&[("user", "bob")]),
            ],
        );
        assert_eq!(scene.ask(&asked).left(), [9, 9, 9], "once for each key");
        // By the highest cost.
        let asked = request("d", &[costing(&[alice], 2), costing(&[alice, ("path", "/b")], 4)]);
        assert_eq!(scene.ask(&asked).left(), [5, 5]);
        let asked = request("d", &[costing(&[alice], 1), costing(&[alice, ("path", "/b")], 6)]);
        let answer = scene.ask(&asked);
        assert!(answer.over, "{answer:?}");
        assert_eq!(scene.left("d", &[alice]), 5);
    });
}

#[test]
fn all_or_nothing_across_rules() {
    let rules = "[[rule]]\nname = 'user'\nabsent = 'skip'\nby = ['fact:user']\n\
        limits = ['10/day']\n[[rule]]\nname = 'path'\nmatch = { path = '/few' }\n\
        limits = ['1/day']\n";
    both_by_rules(rules, "", |scene| {
        let asked = request("d", &[descriptor(&[("user", "a")]), descriptor(&[("path", "/few")])]);
        assert!(!scene.ask(&asked).over);
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [false, true], "{answer:?}");
        scene.cost("d", &[("user", "a")], 0).passes(9);
    });
}

/// A domain of the YAML is the YAML's, whatever rules there are.
#[test]
fn what_the_yaml_knows_is_no_business_of_the_rules() {
    let rules = "[[rule]]\nname = 'all'\nlimits = ['1/day']\n";
    let yaml = "domain: y\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 5 }\n";
    both_by_rules(rules, yaml, |scene| {
        for left in [4, 3, 2] {
            scene.hit("y", &[("k", "v")]).passes(left);
            scene.hit("y", &[("other", "v")]).is_free();
        }
        scene.hit("z", &[("k", "v")]).passes(0);
        scene.hit("z", &[("k", "v")]).is_denied(0);
    });
}

#[test]
fn a_domain_nobody_knows_passes_and_the_log_says_so() {
    let yaml = "domain: y\ndescriptors:\n  - key: k\n    rate_limit: { unit: day, requests_per_unit: 5 }\n";
    let scene = Scene::start(yaml, &[]);
    for hits in [0, 1, 1_000_000] {
        scene.cost("unheard-of", &[("k", "v")], hits).is_free();
    }
    until("the log", crate::client::PATIENCE, || {
        scene.service.log().contains("unheard-of").then_some(())
    });
    // Without any configuration as well.
    Scene::start("", &[]).hit("anything", &[("k", "v")]).is_free();
}
