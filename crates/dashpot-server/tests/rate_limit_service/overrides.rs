//! A limit that comes with the request: it wins over what is configured, in any domain.

use serde_json::{Value, json};

use crate::door::{costing, request};
use crate::scene::{Scene, both, both_by_rules};

const YAML: &str = "
domain: d
descriptors:
  - key: ten
    rate_limit: { name: configured, unit: day, requests_per_unit: 10 }
  - key: free
    rate_limit: { unlimited: true }
  - key: none
    rate_limit: { unit: day, requests_per_unit: 0 }
";

fn with(domain: &str, entries: &[(&str, &str)], hits: u64, count: u32, unit: &str) -> Value {
    let mut descriptor = costing(entries, hits);
    descriptor["limit"] = json!({"requestsPerUnit": count, "unit": unit});
    request(domain, &[descriptor])
}

fn holds(scene: &Scene, domain: &str, entries: &[(&str, &str)], count: u32, unit: &str) {
    let more = scene.ask(&with(domain, entries, u64::from(count) + 1, count, unit));
    more.is_denied(count);
    let all = scene.ask(&with(domain, entries, count.into(), count, unit));
    all.passes(0);
    for answer in [more, all] {
        let limit = answer.status().limit();
        assert_eq!((limit.count, limit.unit.as_str()), (count, unit), "{domain} {entries:?}");
    }
}

#[test]
fn in_every_domain_and_over_every_limit() {
    both(YAML, &[], |scene| {
        for (domain, entries) in [
            ("d", [("ten", "a")]),
            ("d", [("free", "a")]),
            ("d", [("none", "a")]),
            ("d", [("unheard-of", "a")]),
            ("nowhere", [("ten", "a")]),
        ] {
            holds(scene, domain, &entries, 3, "HOUR");
        }
        scene.holds("d", &[("ten", "b")], 10, "DAY");
    });
}

#[test]
fn in_every_unit() {
    both(YAML, &[], |scene| {
        let units = [
            ("SECOND", 1),
            ("MINUTE", 60),
            ("HOUR", 3600),
            ("DAY", 86_400),
            ("MONTH", 30 * 86_400),
            ("YEAR", 365 * 86_400),
        ];
        for (unit, seconds) in units {
            holds(scene, "d", &[("of", unit)], 4, unit);
            let answer = scene.ask(&with("d", &[("once", unit)], 1, 4, unit));
            assert!((1..=seconds).contains(&answer.status().reset.unwrap()), "{answer:?}");
        }
    });
}

#[test]
fn each_value_has_a_counter() {
    both(YAML, &[], |scene| {
        let asked = |value| with("any", &[("user", value)], 1, 2, "DAY");
        for value in ["a", "b"] {
            for left in [1, 0] {
                scene.ask(&asked(value)).passes(left);
            }
            scene.ask(&asked(value)).is_denied(0);
        }
        // And so has each domain, and each depth.
        scene.ask(&with("other", &[("user", "a")], 1, 2, "DAY")).passes(1);
        scene.ask(&with("any", &[("user", "a"), ("user", "a")], 1, 2, "DAY")).passes(1);
    });
}

#[test]
fn one_with_a_limit_of_its_own_and_one_without() {
    both(YAML, &[], |scene| {
        let mut own = costing(&[("own", "")], 1);
        own["limit"] = json!({"requestsPerUnit": 1, "unit": "DAY"});
        let asked = request("d", &[costing(&[("ten", "")], 1), own]);
        assert_eq!(scene.ask(&asked).left(), [9, 0]);
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [false, true], "{answer:?}");
        assert_eq!(answer.left(), [9, 0], "all or nothing: {answer:?}");
    });
}

#[test]
fn zero_never_passes() {
    both(YAML, &[], |scene| {
        scene.ask(&with("d", &[("ten", "")], 1, 0, "DAY")).is_denied(0);
    });
}

#[test]
fn in_a_domain_of_the_rule_file() {
    let rules =
        "[[rule]]\nname = 'r'\nmatch = { fact = { domain = 'edge' } }\nlimits = ['1/day']\n";
    both_by_rules(rules, "", |scene| {
        holds(scene, "edge", &[("user", "a")], 3, "HOUR");
        scene.hit("edge", &[("user", "a")]).passes(0);
    });
}

#[test]
fn one_that_makes_no_sense_is_told() {
    both(YAML, &[], |scene| {
        for limit in [json!({"requestsPerUnit": 3}), json!({"requestsPerUnit": 3, "unit": 99})] {
            let mut asked = with("d", &[("ten", "")], 1, 1, "DAY");
            asked["descriptors"][0]["limit"] = limit;
            let refusal = scene.refused(&asked);
            assert!(["INVALID_ARGUMENT", "400"].contains(&refusal.code.as_str()), "{refusal:?}");
            assert!(refusal.message.contains("unit"), "{refusal:?}");
        }
        assert_eq!(scene.left("d", &[("ten", "")]), 10);
    });
}
