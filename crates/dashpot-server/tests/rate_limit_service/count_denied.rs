//! `--envoy-count-denied`: each descriptor for itself, and what is denied counts as well.

use crate::door::{costing, descriptor, request};
use crate::scene::both;
use crate::together::YAML;

const FLAG: &[&str] = &["--envoy-count-denied"];

#[test]
fn what_was_denied_is_spent() {
    let ten = [("ten", "")];
    both(YAML, &[], |scene| {
        scene.cost("d", &ten, 8).passes(2);
        scene.cost("d", &ten, 5).is_denied(2);
        scene.hit("d", &ten).passes(1);
    });
    both(YAML, FLAG, |scene| {
        scene.cost("d", &ten, 8).passes(2);
        scene.cost("d", &ten, 5).is_denied(0);
        scene.hit("d", &ten).is_denied(0);
        scene.cost("d", &ten, 0).is_denied(0);
        // Others have theirs.
        scene.cost("d", &[("ten", "other")], 10).passes(0);
    });
}

/// Tokens that are charged after the fact: more than the whole limit, and it counts.
#[test]
fn a_charge_that_comes_late_counts() {
    both(YAML, FLAG, |scene| {
        let hundred = [("hundred", "alice")];
        scene.cost("d", &hundred, 0).passes(100);
        scene.cost("d", &hundred, 1000).is_denied(0);
        scene.hit("d", &hundred).is_denied(0);
    });
}

#[test]
fn each_descriptor_for_itself() {
    both(YAML, FLAG, |scene| {
        let asked = request("d", &[descriptor(&[("two", "")]), descriptor(&[("ten", "")])]);
        for left in [[1, 9], [0, 8]] {
            let answer = scene.ask(&asked);
            assert!(!answer.over, "{answer:?}");
            assert_eq!(answer.left(), left);
        }
        for left in [7, 6, 5] {
            let answer = scene.ask(&asked);
            assert_eq!(answer.overs(), [true, false], "{answer:?}");
            assert_eq!(answer.left(), [0, left], "{answer:?}");
        }
        assert_eq!(scene.left("d", &[("ten", "")]), 5);
    });
}

/// Looks take nothing here either, whatever becomes of the others.
#[test]
fn looks_are_looks() {
    both(YAML, FLAG, |scene| {
        for _ in 0..3 {
            scene.cost("d", &[("ten", "")], 0).passes(10);
        }
        scene.cost("d", &[("two", "")], 2).passes(0);
        let asked = request("d", &[costing(&[("two", "")], 0), costing(&[("ten", "")], 4)]);
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [true, false], "{answer:?}");
        assert_eq!(answer.left(), [0, 6], "the other is charged: {answer:?}");
    });
}

/// Limits that come with a request are counted the same way.
#[test]
fn of_a_request_s_own_limit_too() {
    both(YAML, FLAG, |scene| {
        let mut one = costing(&[("own", "")], 3);
        one["limit"] = serde_json::json!({"requestsPerUnit": 5, "unit": "DAY"});
        let asked = request("d", &[one]);
        scene.ask(&asked).passes(2);
        scene.ask(&asked).is_denied(0);
        let mut one = asked.clone();
        one["descriptors"][0]["hitsAddend"] = 1.into();
        scene.ask(&one).is_denied(0);
    });
}
