//! `hits_addend`: what a call costs, and looks that cost nothing.

use serde_json::json;

use crate::door::{costing, descriptor, request};
use crate::scene::both;

const YAML: &str = "
domain: d
descriptors:
  - key: ten
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: hundred
    rate_limit: { unit: day, requests_per_unit: 100 }
";

#[test]
fn of_the_request_for_all_its_descriptors() {
    both(YAML, &[], |scene| {
        let mut asked = request("d", &[descriptor(&[("ten", "")]), descriptor(&[("hundred", "")])]);
        assert_eq!(scene.ask(&asked).left(), [9, 99], "one, if nothing is said");
        asked["hitsAddend"] = json!(0);
        assert_eq!(scene.ask(&asked).left(), [8, 98], "zero is one");
        asked["hitsAddend"] = json!(3);
        assert_eq!(scene.ask(&asked).left(), [5, 95]);
        asked["hitsAddend"] = json!(6);
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [true, false], "{answer:?}");
        assert_eq!(answer.left(), [5, 95], "a denial takes nothing");
    });
}

#[test]
fn of_a_descriptor_instead_of_the_request_s() {
    both(YAML, &[], |scene| {
        let pair = [costing(&[("ten", "")], 2), descriptor(&[("hundred", "")])];
        let mut asked = request("d", &pair);
        assert_eq!(scene.ask(&asked).left(), [8, 99]);
        asked["hitsAddend"] = json!(20);
        assert_eq!(scene.ask(&asked).left(), [6, 79], "the request's is for those that do not say");
        // More than 32 bits can be said, and are more than there is.
        for hits in [1 << 32, u64::MAX] {
            scene.cost("d", &[("ten", "")], hits).is_denied(6);
        }
        assert_eq!(scene.left("d", &[("ten", "")]), 6);
    });
}

#[test]
fn zero_of_a_descriptor_looks() {
    both(YAML, &[], |scene| {
        let ten = [("ten", "")];
        for _ in 0..3 {
            let answer = scene.cost("d", &ten, 0);
            answer.passes(10);
            assert_eq!(answer.status().limit().count, 10);
            assert!(answer.status().reset.is_some(), "{answer:?}");
        }
        scene.cost("d", &ten, 9).passes(1);
        scene.cost("d", &ten, 0).passes(1);
        scene.hit("d", &ten).passes(0);
        for _ in 0..2 {
            scene.cost("d", &ten, 0).is_denied(0);
        }
        // Whatever the request says for others.
        let mut asked = request("d", &[costing(&[("hundred", "")], 0)]);
        asked["hitsAddend"] = json!(7);
        assert_eq!(scene.ask(&asked).left(), [100]);
    });
}

/// A look that finds nothing is a denial as any other.
#[test]
fn a_look_among_those_that_take() {
    both(YAML, &[], |scene| {
        let mixed = request("d", &[costing(&[("ten", "")], 0), costing(&[("hundred", "")], 5)]);
        let answer = scene.ask(&mixed);
        assert_eq!(answer.overs(), [false, false], "{answer:?}");
        assert_eq!(answer.left(), [10, 95], "{answer:?}");
        scene.cost("d", &[("ten", "")], 10).passes(0);
        let answer = scene.ask(&mixed);
        assert!(answer.over, "{answer:?}");
        assert_eq!(answer.overs(), [true, false], "{answer:?}");
        assert_eq!(scene.left("d", &[("hundred", "")]), 95, "nothing was charged");
        // The other way round: what is taken does not fit, what is looked at is there.
        let mixed = request("d", &[costing(&[("hundred", "")], 0), costing(&[("ten", "")], 1)]);
        let answer = scene.ask(&mixed);
        assert_eq!(answer.overs(), [false, true], "{answer:?}");
    });
}

#[test]
fn what_no_limit_is_about_costs_nothing() {
    both(YAML, &[], |scene| {
        for hits in [0, 1, u64::MAX] {
            scene.cost("d", &[("other", "")], hits).is_free();
        }
        let asked = request("d", &[costing(&[("other", "")], 0), costing(&[("ten", "")], 1)]);
        let answer = scene.ask(&asked);
        assert_eq!(answer.overs(), [false, false], "{answer:?}");
        assert_eq!(answer.left(), [0, 9]);
    });
}
