//! The key file: keys that were handed out are believed, whoever brings them.

use std::fs;
use std::path::PathBuf;

use dashpot_rules::RuleSet;

use crate::common::{Server, get, rules_in};

/// SHA-256 of `alice-key` and `bob-key`.
const KEYS: &str = r#"
    72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20 = { user = "alice", tier = "pro" }
    9b94dc1a51a38769f135edf04033ad7f2f487b6c25929be7a861cfc1ab10cf98 = { user = "bob" }
"#;

/// A directory of its own, with the key file in it.
fn directory(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("keys.toml"), KEYS).unwrap();
    directory
}

/// Nobody is trusted; the file alone counts.
fn by(facts: &str, name: &str) -> RuleSet {
    let text = format!(
        r#"
        [identity]
        user = "header:x-user-id"
        api_key = "header:x-api-key"
        tier = "header:x-plan"
        default_tier = "free"
        api_keys_file = "keys.toml"

        [[rule]]
        name = "api"
        by = ["{facts}"]
        tiers.free = ["2/min"]
        tiers.pro = ["4/min"]
        "#
    );
    rules_in(&directory(name), &text)
}

#[tokio::test]
async fn a_known_key_is_believed_from_any_address() {
    let server = Server::limited(by("api_key | user | ip", "known")).await;
    let alice = get("/").line("x-api-key", "alice-key");
    assert_eq!(alice.statuses(&server, 3).await, [200; 3]);
    assert_eq!(alice.clone().from("127.0.0.2").statuses(&server, 2).await, [200, 429]);
    let bob = get("/").line("x-api-key", "bob-key");
    assert_eq!(bob.statuses(&server, 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn an_unknown_key_is_as_good_as_none() {
    let server = Server::limited(by("api_key | user | ip", "unknown")).await;
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    for key in [
        "mallory-key",
        "Alice-key",
        "alice-key ,",
        "alice-key, alice-key",
        "sha256:72ee9d4355ccb9d3a4c9dbf37382e38e",
        // Who has read the file has no key yet.
        "72ee9d4355ccb9d3a4c9dbf37382e38e75c1b1a225b5bd1f729ee91bbda30c20",
    ] {
        assert_eq!(get("/").line("x-api-key", key).status(&server).await, 429, "{key}");
    }
    let twice = get("/").line("x-api-key", "alice-key").line("x-api-key", "1");
    assert_eq!(twice.status(&server).await, 429);
    // The known one still passes: it was the keys that were refused.
    assert_eq!(get("/").line("x-api-key", "alice-key").status(&server).await, 200);
}

#[tokio::test]
async fn the_tier_is_that_of_the_file_whatever_the_caller_says() {
    for said in ["pro", "enterprise", "free", ""] {
        let server = Server::limited(by("api_key | user | ip", "tier")).await;
        let bob = get("/").line("x-api-key", "bob-key").line("x-plan", said);
        assert_eq!(bob.statuses(&server, 3).await, [200, 200, 429], "bob says {said}");
        let alice = get("/").line("x-api-key", "alice-key").line("x-plan", said);
        assert_eq!(
            alice.statuses(&server, 5).await,
            [200, 200, 200, 200, 429],
            "alice says {said}"
        );
    }
}

#[tokio::test]
async fn the_user_is_that_of_the_file_whatever_the_caller_says() {
    let server = Server::limited(by("user | ip", "user")).await;
    for n in 0..4 {
        let bob = get("/").line("x-api-key", "bob-key").line("x-user-id", format!("user-{n}"));
        assert_eq!(bob.status(&server).await, if n < 2 { 200 } else { 429 }, "{n}");
    }
}

/// The key itself is nobody's business: it shows in no header and no body.
#[tokio::test]
async fn a_key_is_not_told_back() {
    let server = Server::limited(by("api_key", "secret")).await;
    let bob = get("/").line("x-api-key", "bob-key");
    for _ in 0..3 {
        let answer = bob.send(&server).await;
        let all = format!("{:?} {}", answer.lines, answer.text());
        assert!(!all.contains("bob"), "{all}");
    }
}
