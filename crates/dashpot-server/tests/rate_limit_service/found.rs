//! What was wrong once.

use crate::door::{descriptor, request};
use crate::scene::{both, both_by_rules, home, refusal};
use crate::service;

const YAML: &str = "
domain: d
descriptors:
  - key: tried
    shadow_mode: true
    rate_limit: { unit: day, requests_per_unit: 5 }
  - key: user
    rate_limit: { unit: day, requests_per_unit: 5 }
";

/// Its time was told as if it were 1970.
#[test]
fn what_only_counts_is_told_when_its_window_ends() {
    both(YAML, &[], |scene| {
        let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let answer = scene.hit("d", &[("tried", "v")]);
        let left = 86_400 - now % 86_400;
        let told = answer.status().reset.unwrap();
        // A day may have ended in between.
        assert!(told.abs_diff(left) <= 5 || told > 86_390 || left < 10, "{told} and {left}");
    });
}

/// Two descriptors of one limit were two policies of one name.
#[test]
fn a_name_is_told_once_and_is_the_one_that_is_closest() {
    both(YAML, &[], |scene| {
        scene.cost("d", &[("user", "ann")], 3).passes(2);
        let two = [descriptor(&[("user", "ben")]), descriptor(&[("user", "ann")])];
        let answer = scene.ask(&request("d", &two));
        assert_eq!(answer.left(), [4, 1]);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"d.user\";q=5;w=86400"));
        assert!(answer.header("ratelimit").unwrap().starts_with("\"d.user\";r=1;"), "{answer:?}");
    });
    let rules = "[[rule]]\nname = 'all'\nlimits = '5/day'";
    both_by_rules(rules, "domain: other", |scene| {
        let two = [descriptor(&[("a", "1")]), descriptor(&[("b", "2")])];
        let answer = scene.ask(&request("d", &two));
        assert_eq!(answer.left(), [4, 4]);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"all\";q=5;w=86400"));
    });
}

/// Whoever asks could have keys of any length kept.
#[test]
fn long_values_are_told_apart_and_not_kept() {
    both(YAML, &[], |scene| {
        let (one, other) = ("x".repeat(5000), format!("{}y", "x".repeat(4999)));
        scene.apart("d", &[("user", &one)], &[("user", &other)]);
        let denied = scene.cost("d", &[("user", &one)], 9);
        assert!(denied.over);
        let top = scene.service.client().get("/v1/keys/top").body;
        assert!(!top.contains("xxxxx") && top.contains("sha256:"), "{top}");
    });
}

/// There was no way to see whether a file is right without serving by it.
#[test]
fn a_file_can_be_checked_before() {
    let home = home(&[("limits.yaml", YAML)]);
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(["rules", "check", "--envoy", "config"]).current_dir(home.path());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "config: 2 limits\n");
    home.write("config/limits.yaml", "domain: d\ndescriptors:\n  - kee: k\n");
    let (status, told) = service::ended(command);
    assert_eq!(status, Some(2));
    assert!(told.starts_with("config/limits.yaml:3:5: unknown field `kee`"), "{told}");
    assert!(refusal(&[("limits.yaml", "domain: ''")], &[]).contains(":1:9: "));
}
