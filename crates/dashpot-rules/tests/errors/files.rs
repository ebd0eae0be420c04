//! Several files are one.

use std::path::Path;

use dashpot_rules::{LoadError, RuleSet, Source};
use insta::assert_snapshot;

use super::check_places;
use crate::common::temp_dir::TempDir;

const ONE: &str = "[headers]\nexpose = true\n\n[[rule]]\nname = \"api\"\nlimits = [\"5/s\"]\n";
const TWO: &str = "[[rule]]\nname = \"api\"\nlimits = [\"5/sec.\"]\n\n[headers]\nexpose = false\n";

#[test]
fn mistakes_are_told_file_by_file() {
    let sources = vec![Source::new("10-one.toml", ONE), Source::new("20-two.toml", TWO)];
    let errors = RuleSet::from_sources(sources, Path::new(".")).expect_err("said twice");
    check_places(&errors, &[("10-one.toml", ONE), ("20-two.toml", TWO)]);
    assert_snapshot!(errors, @r#"
    20-two.toml:2:9: error: there is a rule `api` already (10-one.toml:5)
      |
    2 | name = "api"
      |         ^^^

    20-two.toml:3:14: error: `sec.` is not a unit of time; use s, min, h, day, week, month or year
      |
    3 | limits = ["5/sec."]
      |              ^^^^

    20-two.toml:5:1: error: [headers] is in another file already (10-one.toml:1)
      |
    5 | [headers]
      | ^^^^^^^^^
    "#);
}

#[test]
fn rules_of_several_files_apply_together() {
    let two = TWO.replace("api", "other").replace("sec.", "s").replace("[headers]", "[memory]");
    let two = two.replace("expose = false", "max_keys = 5");
    let sources = vec![Source::new("one", ONE), Source::new("two", two)];
    let set = RuleSet::from_sources(sources, Path::new(".")).unwrap();
    let names: Vec<_> = set.rules().iter().map(|rule| rule.name()).collect();
    assert_eq!(names, ["api", "other"]);
    assert!(set.headers().expose);
    assert_eq!(set.memory().max_keys, Some(5));
}

#[test]
fn a_directory_is_read_in_the_order_of_names() {
    let dir = TempDir::new();
    dir.write("20.toml", "[[rule]]\nname = \"b\"\nlimits = \"1/s\"");
    dir.write("10.toml", "[[rule]]\nname = \"a\"\nlimits = \"1/s\"");
    dir.write("30.toml.bak", "this is no rule file");
    let set = RuleSet::load(dir.path()).unwrap();
    let names: Vec<_> = set.rules().iter().map(|rule| rule.name()).collect();
    assert_eq!(names, ["a", "b"]);
}

#[test]
fn a_key_file_beside_the_rules_is_no_rule_file() {
    let dir = TempDir::new();
    dir.write("keys.toml", &format!("{} = {{ user = \"alice\" }}", "ab".repeat(32)));
    dir.write(
        "rules.toml",
        "[identity]\napi_key = \"header:x-api-key\"\napi_keys_file = \"keys.toml\"\n\
         [[rule]]\nname = \"a\"\nlimits = \"1/s\"",
    );
    let set = RuleSet::load(dir.path()).unwrap();
    assert_eq!(set.identity().keys.len(), 1);
    assert_eq!(set.rules().len(), 1);
}

#[test]
fn a_rule_file_that_is_taken_for_keys_is_not_left_out() {
    let dir = TempDir::new();
    let names =
        |file: &str| format!("[identity]\napi_key = 'header:x'\napi_keys_file = '{file}'\n");
    let rule = "[[rule]]\nname = 'a'\nlimits = '1/s'";
    // Itself, one another, and one that has rules only.
    dir.write("a.toml", &(names("./a.toml") + rule));
    assert!(RuleSet::load(dir.path()).is_err());
    dir.write("a.toml", &(names("b.toml") + rule));
    dir.write("b.toml", &names("a.toml"));
    assert!(RuleSet::load(dir.path()).is_err());
    dir.write("b.toml", rule);
    let told = RuleSet::load(dir.path()).expect_err("these are no keys").to_string();
    assert!(told.starts_with("b.toml:1:1: error: "), "{told}");
}

#[test]
fn what_cannot_be_read_is_told_by_its_name() {
    let dir = TempDir::new();
    let told = RuleSet::load(dir.path()).expect_err("nothing there");
    assert!(matches!(told, LoadError::Nothing(_)), "{told}");
    assert!(told.to_string().starts_with("there is no *.toml in "), "{told}");

    let told = RuleSet::load(dir.path().join("none.toml")).expect_err("nothing there");
    assert!(told.to_string().contains("none.toml"), "{told}");

    let file = dir.path().join("latin1.toml");
    std::fs::write(&file, b"# M\xfcller\n").unwrap();
    let told = RuleSet::load(&file).expect_err("not UTF-8");
    assert!(told.to_string().contains("latin1.toml"), "{told}");
}
