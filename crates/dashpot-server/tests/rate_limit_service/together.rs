//! All descriptors of a call pass together, or none is counted.

use crate::door::{descriptor, request};
use crate::scene::{Scene, both};

pub(crate) const YAML: &str = "
domain: d
descriptors:
  - key: two
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: ten
    rate_limit: { unit: day, requests_per_unit: 10 }
  - key: hundred
    rate_limit: { unit: day, requests_per_unit: 100 }
  - key: shade
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 10 }
";

#[test]
fn a_denial_takes_nothing_of_anybody() {
    both(YAML, &[], |scene| {
        // The one that denies is the first, the last, or between.
        for (round, keys) in
            [["two", "ten", "hundred"], ["ten", "hundred", "two"], ["ten", "two", "hundred"]]
                .iter()
                .enumerate()
        {
            let value = format!("round {round}");
            let descriptors = keys.map(|key| descriptor(&[(key, &value)]));
            let asked = request("d", &descriptors);
            for _ in 0..2 {
                assert!(!scene.ask(&asked).over);
            }
            for _ in 0..3 {
                let answer = scene.ask(&asked);
                assert!(answer.over, "{answer:?}");
                assert_eq!(answer.overs(), keys.map(|key| key == "two"), "{answer:?}");
            }
            for (key, left) in [("two", 0), ("ten", 8), ("hundred", 98)] {
                assert_eq!(scene.left("d", &[(key, &value)]), left, "{key}");
            }
        }
    });
}

#[test]
fn answers_are_in_the_order_of_what_was_asked() {
    both(YAML, &[], |scene| {
        let keys = ["hundred", "none", "two", "ten", "nothing", "shade"];
        let descriptors = keys.map(|key| descriptor(&[(key, "")]));
        let answer = scene.ask(&request("d", &descriptors));
        assert_eq!(answer.left(), [99, 0, 1, 9, 0, 9]);
        let counts = answer.statuses.iter().map(|status| Some(status.limit.as_ref()?.count));
        let expected = [Some(100), None, Some(2), Some(10), None, Some(10)];
        assert_eq!(counts.collect::<Vec<_>>(), expected);
    });
}

/// The same counter twice in a call is twice its cost, or a denial.
#[test]
fn one_descriptor_twice() {
    both(YAML, &[], |scene| {
        let twice = request("d", &[descriptor(&[("ten", "a")]), descriptor(&[("ten", "a")])]);
        assert!(!scene.ask(&twice).over);
        assert_eq!(scene.left("d", &[("ten", "a")]), 8);
        let twice = request("d", &[descriptor(&[("two", "a")]), descriptor(&[("two", "a")])]);
        assert!(!scene.ask(&twice).over);
        assert!(scene.ask(&twice).over);
        // One is left, and two are asked for.
        scene.hit("d", &[("two", "b")]).passes(1);
        let twice = request("d", &[descriptor(&[("two", "b")]), descriptor(&[("two", "b")])]);
        assert!(scene.ask(&twice).over);
        assert_eq!(scene.left("d", &[("two", "b")]), 1);
    });
}

/// A shadow that is over its limit is no denial, and what is denied by another is not counted by it.
#[test]
fn shadows_take_part() {
    both(YAML, &[], |scene| {
        let asked = request("d", &[descriptor(&[("shade", "")]), descriptor(&[("two", "")])]);
        for over in [false, false, true, true] {
            assert_eq!(scene.ask(&asked).over, over);
        }
        assert_eq!(scene.left("d", &[("shade", "")]), 8);
    });
}

/// Both doors, and every connection, are about the same counters.
#[test]
fn the_doors_lead_to_the_same_counters() {
    let scene = Scene::start(YAML, &[]);
    scene.hit("d", &[("ten", "")]).passes(9);
    let scene = scene.by(crate::door::Door::Json);
    scene.hit("d", &[("ten", "")]).passes(8);
    let scene = scene.by(crate::door::Door::Grpc);
    scene.cost("d", &[("ten", "")], 8).passes(0);
    let scene = scene.by(crate::door::Door::Json);
    scene.hit("d", &[("ten", "")]).is_denied(0);
}
