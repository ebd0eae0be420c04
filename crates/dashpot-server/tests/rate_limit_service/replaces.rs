//! `replaces`: a limit that drops those of the same call whose names it says.

use crate::door::{Status, descriptor, request};
use crate::scene::{Scene, both};

const YAML: &str = "
domain: d
descriptors:
  - key: user
    rate_limit: { name: by_user, unit: day, requests_per_unit: 2 }
  - key: path
    rate_limit: { name: by_path, unit: day, requests_per_unit: 3 }
  - key: vip
    rate_limit:
      name: by_vip
      unit: day
      requests_per_unit: 10
      replaces:
        - name: by_user
        - name: by_path
        - name: nobody_s_name
  - key: staff
    rate_limit:
      unlimited: true
      replaces:
        - name: by_vip
";

fn asked(keys: &[&str]) -> serde_json::Value {
    let descriptors: Vec<_> = keys.iter().map(|key| descriptor(&[(key, "alice")])).collect();
    request("d", &descriptors)
}

#[test]
fn those_it_replaces_are_not_asked_and_not_charged() {
    both(YAML, &[], |scene| {
        // In any order, and several at once.
        for (keys, at) in [(["user", "path", "vip"], 2), (["vip", "user", "path"], 0)] {
            for _ in 0..4 {
                let answer = scene.ask(&asked(&keys));
                assert!(!answer.over, "{answer:?}");
                for (place, status) in answer.statuses.iter().enumerate() {
                    match place == at {
                        true => assert_eq!(status.limit().name, "by_vip", "{answer:?}"),
                        false => assert_eq!(*status, Status::free(), "{answer:?}"),
                    }
                }
            }
        }
        assert_eq!(scene.left("d", &[("vip", "alice")]), 2, "eight were taken");
        assert_eq!(scene.left("d", &[("user", "alice")]), 2, "none was");
        assert_eq!(scene.left("d", &[("path", "alice")]), 3, "none was");
    });
}

#[test]
fn those_it_does_not_name_stay() {
    let yaml = "
domain: d
descriptors:
  - key: user
    rate_limit: { name: by_user, unit: day, requests_per_unit: 1 }
  - key: other
    rate_limit: { name: other, unit: day, requests_per_unit: 1 }
  - key: nameless
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: vip
    rate_limit: { unit: day, requests_per_unit: 10, replaces: [{ name: by_user }] }
";
    both(yaml, &[], |scene| {
        let keys = asked(&["user", "other", "nameless", "vip"]);
        assert_eq!(scene.ask(&keys).left(), [0, 0, 4, 9]);
        let answer = scene.ask(&keys);
        assert_eq!(answer.overs(), [false, true, false, false], "{answer:?}");
        // Its own name it does not need to replace.
        assert_eq!(scene.left("d", &[("user", "alice")]), 1);
    });
}

/// Only in the same call.
#[test]
fn alone_each_is_what_it_is() {
    let scene = Scene::start(YAML, &[]);
    scene.holds("d", &[("vip", "bob")], 10, "DAY");
    scene.holds("d", &[("user", "bob")], 2, "DAY");
    scene.holds("d", &[("path", "bob")], 3, "DAY");
}

/// A limit that is used up and replaced denies nothing; one that replaces does.
#[test]
fn what_replaces_is_what_denies() {
    both(YAML, &[], |scene| {
        scene.cost("d", &[("user", "alice")], 2).passes(0);
        let pair = asked(&["user", "vip"]);
        for left in (0..10).rev() {
            let answer = scene.ask(&pair);
            assert!(!answer.over, "{answer:?}");
            assert_eq!(answer.left(), [0, left], "{answer:?}");
        }
        let answer = scene.ask(&pair);
        assert_eq!(answer.overs(), [false, true], "{answer:?}");
    });
}

#[test]
fn unlimited_can_replace() {
    both(YAML, &[], |scene| {
        for _ in 0..12 {
            let answer = scene.ask(&asked(&["vip", "staff"]));
            assert!(!answer.over, "{answer:?}");
            assert_eq!(answer.left(), [0, u32::MAX], "{answer:?}");
        }
        assert_eq!(scene.left("d", &[("vip", "alice")]), 10);
    });
}
