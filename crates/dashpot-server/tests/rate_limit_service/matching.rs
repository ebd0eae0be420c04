//! Which limit a descriptor is held to, and which counter.

use crate::scene::both;

const ORDER: &str = "
domain: order
descriptors:
  - key: k
    rate_limit: { unit: day, requests_per_unit: 1 }
  - key: k
    value: a*z
    rate_limit: { unit: day, requests_per_unit: 2 }
  - key: k
    value: a*
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: k
    value: abc*xyz
    rate_limit: { unit: day, requests_per_unit: 4 }
  - key: k
    value: abcxyz
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: k
    value: '*b*b*'
    rate_limit: { unit: day, requests_per_unit: 6 }
";

#[test]
fn the_value_then_stars_in_the_order_of_the_file_then_the_key() {
    both(ORDER, &[], |scene| {
        for (value, count) in [
            ("abcxyz", 5),
            ("az", 2),
            ("a-z", 2),
            // Written later, so it is never reached, though it says more.
            ("abc-xyz", 2),
            ("a", 3),
            ("azy", 3),
            ("abb", 3),
            ("bb", 6),
            ("xbxbx", 6),
            ("b", 1),
            ("z", 1),
            ("A", 1),
            ("", 1),
        ] {
            scene.holds("order", &[("k", value)], count, "DAY");
        }
        scene.hit("order", &[("K", "a")]).is_free();
        scene.hit("order", &[("k", "a"), ("k", "a")]).is_free();
    });
}

/// A star stands for itself as well, and what looks like a pattern elsewhere is text here.
#[test]
fn nothing_but_the_star_is_special() {
    let yaml = "
domain: d
descriptors:
  - key: k
    value: 'a.c?[x]*'
    rate_limit: { unit: day, requests_per_unit: 2 }
";
    both(yaml, &[], |scene| {
        scene.holds("d", &[("k", "a.c?[x]")], 2, "DAY");
        scene.holds("d", &[("k", "a.c?[x]*")], 2, "DAY");
        scene.hit("d", &[("k", "abc?[x]")]).is_free();
        scene.hit("d", &[("k", "a.cd[x]")]).is_free();
        scene.hit("d", &[("k", "a.c?x")]).is_free();
    });
}

#[test]
fn every_value_of_a_key_alone_and_of_a_star_has_a_counter() {
    let yaml = "
domain: d
descriptors:
  - key: alone
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: star
    value: 's*'
    rate_limit: { unit: day, requests_per_unit: 3 }
";
    both(yaml, &[], |scene| {
        scene.apart("d", &[("alone", "a")], &[("alone", "b")]);
        scene.apart("d", &[("alone", "")], &[("alone", " ")]);
        scene.apart("d", &[("alone", "c")], &[("alone", "C")]);
        scene.apart("d", &[("alone", "é")], &[("alone", "e\u{301}")]);
        scene.apart("d", &[("star", "s1")], &[("star", "s2")]);
        let long = "v".repeat(3000);
        scene.apart("d", &[("alone", &(long.clone() + "1"))], &[("alone", &(long + "2"))]);
    });
}

/// However values and keys are written, no two descriptors are one.
#[test]
fn keys_cannot_be_confused() {
    let yaml = "
domain: d
descriptors:
  - key: a_b
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: a
    value: b
    rate_limit: { unit: day, requests_per_unit: 3 }
  - key: x
    descriptors:
      - key: y
        rate_limit: { unit: day, requests_per_unit: 3 }
";
    both(yaml, &[], |scene| {
        scene.apart("d", &[("a", "b")], &[("a_b", "")]);
        scene.hit("d", &[("a", "c")]).is_free();
        let pair = |x, y| [("x", x), ("y", y)];
        scene.apart("d", &pair("1", "2_y_3"), &pair("1_y_2", "3"));
        scene.apart("d", &pair("1_", "2"), &pair("1", "_2"));
        scene.apart("d", &pair("", "1"), &pair("1", ""));
        scene.apart("d", &pair("a,y=b", "c"), &pair("a", "b,y=c"));
        scene.apart("d", &pair("a\u{0}b", "c"), &pair("a", "b\u{0}c"));
    });
}

#[test]
fn levels_have_limits_of_their_own() {
    let yaml = "
domain: d
descriptors:
  - key: one
    rate_limit: { unit: day, requests_per_unit: 10 }
    descriptors:
      - key: two
        rate_limit: { unit: hour, requests_per_unit: 20 }
        descriptors:
          - key: three
            value: x
            rate_limit: { unit: minute, requests_per_unit: 30 }
";
    let entries = [("one", "a"), ("two", "b"), ("three", "x")];
    both(yaml, &[], |scene| {
        scene.holds("d", &entries[..1], 10, "DAY");
        scene.holds("d", &entries[..2], 20, "HOUR");
        scene.holds("d", &entries, 30, "MINUTE");
        // One too deep; in another order; with another value; from the middle.
        scene.hit("d", &[&entries[..], &[("four", "d")]].concat()).is_free();
        scene.hit("d", &[("two", "b"), ("one", "a")]).is_free();
        scene.hit("d", &[("one", "a"), ("two", "b"), ("three", "y")]).is_free();
        scene.hit("d", &entries[1..]).is_free();
    });
}

/// The best match of a level is the one that counts, whatever is below the others.
#[test]
fn there_is_no_way_back() {
    let yaml = "
domain: d
descriptors:
  - key: k
    value: exact
    descriptors:
      - key: inner
        rate_limit: { unit: day, requests_per_unit: 1 }
  - key: k
    value: ex*
    descriptors:
      - key: other
        rate_limit: { unit: day, requests_per_unit: 2 }
  - key: k
    descriptors:
      - key: third
        rate_limit: { unit: day, requests_per_unit: 3 }
";
    both(yaml, &[], |scene| {
        scene.holds("d", &[("k", "exact"), ("inner", "")], 1, "DAY");
        scene.hit("d", &[("k", "exact"), ("other", "")]).is_free();
        scene.hit("d", &[("k", "exact"), ("third", "")]).is_free();
        scene.holds("d", &[("k", "extra"), ("other", "")], 2, "DAY");
        scene.hit("d", &[("k", "extra"), ("third", "")]).is_free();
        scene.holds("d", &[("k", "else"), ("third", "")], 3, "DAY");
    });
}

/// Whatever the domain, its limits are its own.
#[test]
fn domains_are_apart() {
    let home = crate::scene::home(&[
        ("a.yaml", &ORDER.replace("domain: order", "domain: first")),
        ("b.yaml", &ORDER.replace("domain: order", "domain: second")),
    ]);
    let scene = crate::scene::Scene::start_in(home, &["--envoy-config", crate::scene::CONFIG]);
    scene.holds("first", &[("k", "abcxyz")], 5, "DAY");
    scene.holds("second", &[("k", "abcxyz")], 5, "DAY");
    scene.hit("third", &[("k", "abcxyz")]).is_free();
    scene.hit("First", &[("k", "abcxyz")]).is_free();
}
