//! The examples of envoyproxy/ratelimit's documentation: what they say, and what it says of them.

use crate::door::{Status, descriptor, request};
use crate::scene::{Scene, both};

/// 1: two values of one key.
#[test]
fn one_value_and_another() {
    let yaml = "
domain: mongo_cps
descriptors:
  - key: database
    value: users
    rate_limit:
      unit: second
      requests_per_unit: 500
  - key: database
    value: default
    rate_limit:
      unit: second
      requests_per_unit: 500
";
    both(yaml, &[], |scene| {
        for value in ["users", "default"] {
            scene.holds("mongo_cps", &[("database", value)], 500, "SECOND");
        }
        scene.hit("mongo_cps", &[("database", "others")]).is_free();
        scene.hit("mongo_cps", &[("table", "users")]).is_free();
    });
}

const MESSAGING: &str = "
domain: messaging
descriptors:
  # Five marketing messages a day
  - key: message_type
    value: marketing
    descriptors:
      - key: to_number
        rate_limit:
          unit: day
          requests_per_unit: 5
  # A hundred messages a day to any one number
  - key: to_number
    rate_limit:
      unit: day
      requests_per_unit: 100
";

/// 2: nested, and a counter for each number.
#[test]
fn each_number_for_itself() {
    both(MESSAGING, &[], |scene| {
        for number in ["2061111111", "2062222222"] {
            let marketing = [("message_type", "marketing"), ("to_number", number)];
            for left in [4, 3, 2, 1, 0] {
                scene.hit("messaging", &marketing).passes(left);
            }
            let denied = scene.hit("messaging", &marketing);
            denied.is_denied(0);
            assert_eq!(denied.status().limit().unit, "DAY");
            scene.holds("messaging", &[("to_number", number)], 100, "DAY");
        }
        scene.hit("messaging", &[("message_type", "marketing")]).is_free();
        let other = [("message_type", "invoice"), ("to_number", "2061111111")];
        scene.hit("messaging", &other).is_free();
    });
}

/// 2: both descriptors in one call.
#[test]
fn one_over_the_limit_is_all_over_it() {
    both(MESSAGING, &[], |scene| {
        let number = ("to_number", "2061111111");
        let asked = request(
            "messaging",
            &[descriptor(&[("message_type", "marketing"), number]), descriptor(&[number])],
        );
        for spent in 1..=5 {
            let answer = scene.ask(&asked);
            assert!(!answer.over, "{answer:?}");
            assert_eq!(answer.left(), [5 - spent, 100 - spent]);
        }
        let answer = scene.ask(&asked);
        assert!(answer.over, "{answer:?}");
        assert_eq!(answer.overs(), [true, false]);
        assert_eq!(answer.left(), [0, 95], "a denial takes nothing");
    });
}

/// 3: the value before the key alone.
#[test]
fn one_address_is_banned() {
    let yaml = "
domain: edge_proxy_per_ip
descriptors:
  - key: remote_address
    rate_limit:
      unit: second
      requests_per_unit: 10
  - key: remote_address
    value: 50.0.0.5
    rate_limit:
      unit: second
      requests_per_unit: 0
";
    both(yaml, &[], |scene| {
        scene.holds("edge_proxy_per_ip", &[("remote_address", "50.0.0.1")], 10, "SECOND");
        scene.holds("edge_proxy_per_ip", &[("remote_address", "50.0.0.2")], 10, "SECOND");
        scene.holds("edge_proxy_per_ip", &[("remote_address", "50.0.0.5")], 0, "SECOND");
    });
}

/// 4: as many entries as levels.
#[test]
fn another_depth_is_another_thing() {
    let shallow = "
domain: example4
descriptors:
  - key: key
    value: value
    rate_limit:
      requests_per_unit: 300
      unit: second
";
    let deep = "
domain: example4
descriptors:
  - key: key
    value: value
    descriptors:
      - key: subkey
        rate_limit:
          requests_per_unit: 300
          unit: second
";
    let (one, two) = ([("key", "value")], [("key", "value"), ("subkey", "subvalue")]);
    both(shallow, &[], |scene| {
        scene.hit("example4", &two).is_free();
        scene.holds("example4", &one, 300, "SECOND");
    });
    both(deep, &[], |scene| {
        scene.hit("example4", &one).is_free();
        scene.holds("example4", &two, 300, "SECOND");
    });
}

/// 5: unlimited is not the same as unknown.
#[test]
fn a_limit_that_is_none() {
    let yaml = "
domain: internal
descriptors:
  - key: ldap
    rate_limit:
      unlimited: true
  - key: azure
    rate_limit:
      unit: minute
      requests_per_unit: 100
";
    both(yaml, &[], |scene| {
        for hits in [1, 1000, u64::from(u32::MAX)] {
            let answer = scene.cost("internal", &[("ldap", "anything")], hits);
            assert_eq!(*answer.status(), Status { remaining: u32::MAX, ..Status::free() });
        }
        scene.holds("internal", &[("azure", "anything")], 100, "MINUTE");
        scene.hit("internal", &[("aws", "anything")]).is_free();
    });
}

/// 6: one user is only watched.
#[test]
fn a_limit_that_is_tried_out() {
    let yaml = "
domain: example6
descriptors:
  - key: service
    descriptors:
      - key: user
        value: user-a
        rate_limit:
          requests_per_unit: 10
          unit: second
        shadow_mode: true
      - key: user
        value: user-b
        rate_limit:
          requests_per_unit: 20
          unit: second
";
    both(yaml, &[], |scene| {
        let user = |name| [("service", "auth-service"), ("user", name)];
        for hits in [1, 10, 11, 1000] {
            let answer = scene.cost("example6", &user("user-a"), hits);
            assert!(!answer.status().over, "{answer:?}");
            assert_eq!(answer.status().limit().count, 10, "{answer:?}");
        }
        let watched = |scene: &Scene| {
            let rule = "example6.service.user_user-a";
            scene.service.metric(&format!("dashpot_rule_shadow_denied_total{{rule=\"{rule}\"}}"))
        };
        assert!(watched(scene) >= 2.0, "those that would not have passed are counted");
        scene.holds("example6", &user("user-b"), 20, "SECOND");
    });
}

/// 7: one limit in the place of another.
#[test]
fn a_limit_that_replaces() {
    let yaml = "
domain: example7
descriptors:
  - key: key_1
    value: value_1
    descriptors:
      - key: user
        value: bkthomps
        rate_limit:
          name: specific_limit
          requests_per_unit: 5
          unit: second
  - key: key_2
    value: value_2
    descriptors:
      - key: user
        value: bkthomps
        rate_limit:
          replaces:
            - name: specific_limit
          requests_per_unit: 10
          unit: second
";
    let first = [("key_1", "value_1"), ("user", "bkthomps")];
    let second = [("key_2", "value_2"), ("user", "bkthomps")];
    both(yaml, &[], |scene| {
        let mut asked = request("example7", &[descriptor(&first), descriptor(&second)]);
        asked["hitsAddend"] = 10.into();
        let answer = scene.ask(&asked);
        assert!(!answer.over, "ten are more than five: {answer:?}");
        assert_eq!(answer.statuses[0], Status::free(), "{answer:?}");
        assert_eq!(answer.statuses[1].limit().count, 10, "{answer:?}");
        // Each alone is what it is, and the one that was replaced has lost nothing.
        scene.holds("example7", &first, 5, "SECOND");
        let answer = scene.cost("example7", &second, 11);
        assert!(answer.over && answer.status().limit().count == 10, "{answer:?}");
    });
}
