//! The file of keys. Whatever is wrong with it, nothing of it is shown.

use dashpot_rules::{RuleSet, Source};
use insta::assert_snapshot;

use super::check_places;
use crate::common::temp_dir::TempDir;
use crate::common::text::dedent;

const RULES: &str = "[identity]\napi_key = \"header:x-api-key\"\napi_keys_file = \"keys.toml\"\n";
const DIGEST: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

/// All that is wrong with a file of keys.
fn errors(keys: &str) -> String {
    let keys = dedent(keys);
    let dir = TempDir::new();
    dir.write("keys.toml", &keys);
    let rules = vec![Source::new("dashpot.toml", RULES)];
    let errors = RuleSet::from_sources(rules, dir.path()).expect_err("these keys are wrong");
    check_places(&errors, &[("dashpot.toml", RULES), ("keys.toml", &keys)]);
    errors.to_string()
}

#[test]
fn a_key_in_the_clear_is_told_by_its_place_only() {
    let told = errors(
        r#"
        sk_live_hunter2 = { user = "alice", tier = "pro" }
    "#,
    );
    assert!(!told.contains("hunter2"), "{told}");
    assert_snapshot!(told, @"
    keys.toml:1:1: error: keys are listed by their SHA-256, 64 digits
      = printf %s KEY | sha256sum
    ");
}

#[test]
fn a_key_in_the_clear_is_not_told_however_it_is_written() {
    for keys in [
        r#""sk live hunter2" = { user = "alice" }"#,
        r#"'sk_live_hunter2' = "alice""#,
        "[sk_live_hunter2]\nusr = \"alice\"",
        "sk_live_hunter2 = { user = 5 }",
        "sk_live_hunter2",
        "sk_live_hunter2 = ",
        "sk_live_hunter2 = { user = \"alice\" ",
        "sk_live_hunter2 = {}\nsk_live_hunter2 = {}",
        "[sk_live_hunter2]\n[sk_live_hunter2]",
        // Dots make tables of it.
        r#"sk.live.hunter2 = { user = "alice" }"#,
        r#"sk.hunter2 = "alice""#,
        "[sk.hunter2]\nuser = \"alice\"",
        "sk.hunter2 = 1\nsk.hunter2 = 2",
        "sk_live_hunter2: alice",
        "sk_live_hunter2 alice",
        "sk_live_hunter2/+== = { user = \"alice\" }",
    ] {
        let told = errors(keys);
        assert!(!told.contains("hunter2"), "{keys}\n{told}");
    }
}

#[test]
fn a_key_that_is_listed_twice_is_told() {
    let upper = DIGEST.to_uppercase();
    assert_snapshot!(errors(&format!("{DIGEST} = {{}}\n{upper} = {{}}")), @"keys.toml:2:1: error: this key is listed already");
}

#[test]
fn what_a_key_cannot_have_is_told() {
    assert_snapshot!(errors(&format!("{DIGEST} = {{ usr = \"alice\", tier = 5 }}")), @"
    keys.toml:1:70: error: unknown key
      = did you mean `user`?

    keys.toml:1:92: error: expected a text, found a number
    ");
}

#[test]
fn a_key_file_that_is_not_there_is_told() {
    let dir = TempDir::new();
    let rules = vec![Source::new("dashpot.toml", RULES)];
    let errors = RuleSet::from_sources(rules, dir.path()).expect_err("there is no such file");
    assert_snapshot!(errors, @r#"
    dashpot.toml:3:18: error: cannot read `keys.toml`: No such file or directory (os error 2)
      |
    3 | api_keys_file = "keys.toml"
      |                  ^^^^^^^^^
    "#);
}

#[test]
fn a_key_file_without_a_place_for_keys_is_told() {
    let dir = TempDir::new();
    dir.write("keys.toml", "");
    let rules = Source::new("dashpot.toml", "[identity]\napi_keys_file = \"keys.toml\"\n");
    let errors = RuleSet::from_sources(vec![rules], dir.path()).expect_err("where are keys told?");
    assert_snapshot!(errors, @r#"
    dashpot.toml:2:18: error: keys are known, but not where one is told
      |
    2 | api_keys_file = "keys.toml"
      |                  ^^^^^^^^^
      = write api_key = "header:x-api-key"
    "#);
}

#[test]
fn a_digest_with_signs_is_no_digest() {
    // `u8::from_str_radix` takes "+a" for ten.
    let told = errors(&format!("\"{}\" = {{}}", "+a".repeat(32)));
    assert!(told.contains("SHA-256"), "{told}");
}
