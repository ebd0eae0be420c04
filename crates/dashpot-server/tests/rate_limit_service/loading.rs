//! Which files are read, and what they are together.

use std::fs;

use crate::scene::{CONFIG, Scene, command, home, refusal};
use crate::service::{Directory, ended};

fn one(domain: &str, key: &str, count: u32) -> String {
    format!(
        "domain: {domain}\ndescriptors:\n  - key: {key}\n    rate_limit: {{ unit: day, requests_per_unit: {count} }}\n"
    )
}

const FLAGS: [&str; 2] = ["--envoy-config", CONFIG];

#[test]
fn all_files_of_a_directory_by_their_endings() {
    let home = home(&[
        ("a.yaml", &one("a", "k", 1)),
        ("b.yml", &one("b", "k", 2)),
        ("c.txt", "this is: [no yaml"),
        ("d.yaml.orig", &one("d", "k", 4)),
        ("README.md", "# nor is this"),
    ]);
    let scene = Scene::start_in(home, &FLAGS);
    scene.holds("a", &[("k", "")], 1, "DAY");
    scene.holds("b", &[("k", "")], 2, "DAY");
    scene.hit("d", &[("k", "")]).is_free();
}

#[test]
fn one_file_by_its_name() {
    let home = home(&[("a.yaml", &one("a", "k", 1)), ("b.yaml", &one("b", "k", 2))]);
    let scene = Scene::start_in(home, &["--envoy-config", "config/a.yaml"]);
    scene.holds("a", &[("k", "")], 1, "DAY");
    scene.hit("b", &[("k", "")]).is_free();
}

#[test]
fn several_files_may_be_about_one_domain() {
    let home = home(&[("a.yaml", &one("d", "first", 1)), ("b.yaml", &one("d", "second", 2))]);
    let scene = Scene::start_in(home, &FLAGS);
    scene.holds("d", &[("first", "")], 1, "DAY");
    scene.holds("d", &[("second", "")], 2, "DAY");
}

#[test]
fn but_not_about_one_descriptor() {
    let told = refusal(&[("a.yaml", &one("d", "same", 1)), ("b.yaml", &one("d", "same", 2))], &[]);
    assert!(told.contains("b.yaml:3:") && told.contains("same"), "{told}");
}

/// An error in one of several is told by the name of the file.
#[test]
fn the_file_that_is_wrong_is_named() {
    let wrong = one("b", "k", 2).replace("day", "dya");
    let told = refusal(&[("a.yaml", &one("a", "k", 1)), ("b.yaml", &wrong)], &[]);
    assert!(told.contains("b.yaml:4:25") && told.contains("dya"), "{told}");
    assert!(!told.contains("a.yaml:"), "{told}");
}

#[test]
fn a_directory_with_nothing_in_it() {
    let told = refusal(&[], &[]);
    assert!(told.contains(CONFIG) && told.contains(".yaml"), "{told}");
    let told = refusal(&[("limits.toml", "")], &[]);
    assert!(told.contains(CONFIG), "{told}");
}

#[test]
fn a_place_that_is_not_there() {
    let home = Directory::new();
    for place in ["missing", "missing/limits.yaml"] {
        let (code, told) = ended(command(&home, &["--envoy-config", place]));
        assert_eq!(code, Some(2), "{told}");
        assert!(told.contains(place), "{told}");
    }
}

#[test]
fn a_file_that_is_empty_or_no_text() {
    let told = refusal(&[("empty.yaml", "")], &[]);
    assert!(told.contains("empty.yaml"), "{told}");
    let told = refusal(&[("comment.yaml", "# nothing but this\n")], &[]);
    assert!(told.contains("comment.yaml"), "{told}");
    let home = home(&[]);
    fs::write(home.path().join(CONFIG).join("bytes.yaml"), b"domain: \xff\xfe\n").unwrap();
    let (code, told) = ended(command(&home, &FLAGS));
    assert_eq!(code, Some(2), "{told}");
    assert!(told.contains("bytes.yaml"), "{told}");
}

/// A domain without descriptors is one that is known, and limits nothing.
#[test]
fn a_domain_alone() {
    let rules = "[[rule]]\nname = 'all'\nlimits = ['1/day']\n";
    let scene = Scene::with_rules(rules, "domain: known\n", &[]);
    for _ in 0..3 {
        scene.hit("known", &[("k", "v")]).is_free();
    }
    scene.hit("unknown", &[("k", "v")]).passes(0);
}

/// Quotes, comments, anchors and both styles are YAML.
#[test]
fn yaml_in_its_ways() {
    let text = "%YAML 1.2
---
# The domain
\"domain\": 'quoted'   # and a comment
descriptors:
- {key: flow, value: \"a b\", rate_limit: {unit: day, requests_per_unit: 3}}
- key: anchored
  rate_limit: &usual
    unit: day
    requests_per_unit: 4
- key: aliased
  rate_limit: *usual
- key: number
  value: '17'
  rate_limit: *usual
- key: folded
  value: >-
    two
    words
  rate_limit: *usual
";
    let scene = Scene::start(text, &[]);
    scene.holds("quoted", &[("flow", "a b")], 3, "DAY");
    scene.holds("quoted", &[("anchored", "")], 4, "DAY");
    scene.holds("quoted", &[("aliased", "")], 4, "DAY");
    scene.holds("quoted", &[("number", "17")], 4, "DAY");
    scene.holds("quoted", &[("folded", "two words")], 4, "DAY");
}

/// What people write without quotes: a text there, and so it is here.
#[test]
fn values_that_look_like_numbers() {
    let text = "domain: d\ndescriptors:\n  - key: code\n    value: 404\n    rate_limit: { unit: day, requests_per_unit: 2 }\n  - key: version\n    value: 1.10\n    rate_limit: { unit: day, requests_per_unit: 3 }\n";
    let scene = Scene::start(text, &[]);
    scene.holds("d", &[("code", "404")], 2, "DAY");
    scene.holds("d", &[("version", "1.10")], 3, "DAY");
}
