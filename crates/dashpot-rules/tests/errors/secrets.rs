//! What nobody should read in a log is not in a message, either.

use insta::assert_snapshot;

use super::errors;

#[test]
fn a_store_of_a_wrong_scheme_is_told_without_its_password() {
    let told = errors(
        r#"
        [store]
        url = "http://user:hunter2@cache.internal:6379"
    "#,
    );
    assert!(!told.contains("hunter2"), "{told}");
    assert_snapshot!(told, @"dashpot.toml:2:8: error: a store is a redis://, rediss://, redis-cluster:// or redis-sentinel:// URL");
}

#[test]
fn a_store_among_others_is_told_without_any_password() {
    let told = errors(
        r#"
        [store]
        url = ["redis://:hunter2@a", "htp://:hunter3@b"]
    "#,
    );
    assert!(!told.contains("hunter"), "{told}");
}

#[test]
fn another_mistake_in_the_line_of_a_store_tells_no_password() {
    for file in [
        r#"store = { url = "redis://:hunter2@a", deadlin = "1ms" }"#,
        r#"store = { url = "redis://:hunter2@a", deadline = "1 sec." }"#,
        "[store]\nurl = [\"redis://:hunter2@a\", 5]",
        "[store]\nurl = \"redis://:hunter2@a",
        "[store]\nurl = redis://:hunter2@a",
        "[store]\nurl = \"redis://:hunter2@a\" deadline = \"1ms\"",
        // Where it is taken for a key.
        "[store]\n\"redis://:hunter2@a\" = 5",
        "match = { header = { a = 5 } store]\nurl = \"redis://:hunter2@a\"",
    ] {
        let told = errors(file);
        assert!(!told.contains("hunter2"), "{told}");
    }
}

#[test]
fn a_secret_that_is_listed_in_the_clear_is_not_told() {
    let told = errors(
        r#"
        [block]
        api_key = ["sk-live-hunter2"]
        "header:authorization" = ["Bearer hunter2"]
    "#,
    );
    assert!(!told.contains("hunter2"), "{told}");
    assert_snapshot!(told, @"
    dashpot.toml:2:13: error: secrets are listed by their SHA-256, 64 digits
      = printf %s KEY | sha256sum

    dashpot.toml:3:28: error: secrets are listed by their SHA-256, 64 digits
      = printf %s KEY | sha256sum
    ");
}
