//! `dashpot rules` as people and scripts use it.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

fn dashpot(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(args).env_clear().output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A file of this test's own, gone when it is over.
struct File(PathBuf);

impl File {
    fn new(name: &str, text: &str) -> Self {
        let path = std::env::temp_dir().join(format!("dashpot-{}-{name}.toml", std::process::id()));
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

const API: &str = "\
[identity]
trusted_proxies = [\"10.0.0.0/8\"]
user = \"header:x-user-id\"

[[rule]]
name = \"login\"
match = { method = \"POST\", path = \"/login\" }
by = [\"ip\"]
limits = [\"5/5min\"]

[[rule]]
name = \"api\"
by = [\"user | ip\"]
limits = [\"60/min\"]
";

#[test]
fn a_good_file_is_fine() {
    let file = File::new("good", API);
    let output = dashpot(&["rules", "check", file.path()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let expected = format!("{}: 2 rules, 2 policies, nothing to advise\n", file.path());
    assert_eq!(text(&output.stdout), expected);
}

#[test]
fn advice_is_given_and_is_no_error() {
    let file = File::new("advice", "[[rule]]\nname = 'all'\nlimits = ['10/s']\n");
    let output = dashpot(&["rules", "check", file.path()]);
    assert_eq!(output.status.code(), Some(0));
    let told = text(&output.stdout);
    assert!(told.contains(":2:9: advice: all limits are shared by all callers"), "{told}");
    assert!(told.ends_with("1 rule, 1 policy, 2 pieces of advice\n"), "{told}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let file = File::new(
        "bad",
        "[[rule]]\nname = 'a'\nlimts = ['1/s']\n\n[[rule]]\nname = 'b'\nlimits = ['1/x']\n",
    );
    let output = dashpot(&["rules", "check", file.path()]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let told = text(&output.stderr);
    assert!(told.contains(&format!("{}:3:1: error: unknown key `limts`", file.path())), "{told}");
    assert!(told.contains("did you mean `limits`?"), "{told}");
    assert!(
        told.contains(&format!("{}:7:14: error: `x` is not a unit of time", file.path())),
        "{told}"
    );
}

#[test]
fn a_file_that_is_not_there() {
    let output = dashpot(&["rules", "check", "/nowhere/dashpot.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).starts_with("error: cannot read /nowhere/dashpot.toml: "));
}

#[test]
fn a_request_is_explained() {
    let file = File::new("explain", API);
    let explain = |args: &[&str]| {
        let args = [&["rules", "explain", "--config", file.path()], args].concat();
        let output = dashpot(&args);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let direct = ["POST", "/login", "--peer", "203.0.113.7", "-H", "x-user-id: alice"];
    assert_eq!(
        explain(&direct),
        "\
fact ip = 203.0.113.7: the peer; it is no trusted proxy, so x-forwarded-for was not read
fact user = (absent): header:x-user-id is not believed: the peer is no trusted proxy
rule `login` (POST /login): key ip=203.0.113.7
    login: 5/5min, token-bucket
rule `api` (all requests): key ip=203.0.113.7
    api: 60/min, token-bucket
"
    );
    let proxied = ["GET", "/", "--peer", "10.0.0.1", "-H", "x-user-id: alice"];
    let told = explain(&[&proxied[..], &["-H", "x-forwarded-for: 1.1.1.1, 203.0.113.9"]].concat());
    assert!(told.contains("fact ip = 203.0.113.9: the last in x-forwarded-for"), "{told}");
    assert!(told.contains("fact user = alice: a trusted proxy says so"), "{told}");
    assert!(told.contains("rule `api` (all requests): key user=alice"), "{told}");
}

#[test]
fn two_files_are_compared() {
    let before = File::new("before", API);
    let after = File::new("after", &API.replace("60/min", "90/min"));
    let output = dashpot(&["rules", "diff", before.path(), after.path()]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), "rule `api`: limits 60/min → 90/min; counts go on\n");
    let output = dashpot(&["rules", "diff", before.path(), before.path()]);
    assert_eq!(text(&output.stdout), "nothing changes\n");
}

#[test]
fn how_closely_a_rule_is_kept_to_is_told() {
    let leased = API.to_owned() + "consistency = \"leased\"\n";
    let file = File::new("leased", &leased);
    let output = dashpot(&["rules", "check", file.path()]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let output = dashpot(&["rules", "explain", "GET", "/", "--config", file.path()]);
    let told = text(&output.stdout);
    assert!(told.contains("    api: 60/min, token-bucket, leased\n"), "{told}");
    let before = File::new("exact", API);
    let output = dashpot(&["rules", "diff", before.path(), file.path()]);
    let expected = "rule `api`: consistency exact → leased; counts go on\n";
    assert_eq!(text(&output.stdout), expected);
    let wrong = File::new("wrong-leased", &(leased + "algorithm = \"sliding-log\"\n"));
    let output = dashpot(&["rules", "check", wrong.path()]);
    assert_eq!(output.status.code(), Some(2));
    let told = text(&output.stderr);
    assert!(told.contains(&format!("{}:15:16: error: leased is for", wrong.path())), "{told}");
}

#[test]
fn the_schema_is_json() {
    let output = dashpot(&["rules", "schema"]);
    let schema: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(schema["properties"]["rule"]["type"], "array");
}

#[test]
fn wrong_usage_is_pointed_at() {
    for args in [
        &["rules"][..],
        &["rules", "explain", "GET"],
        &["rules", "explain", "GET", "/", "-H", "no colon"],
        &["rules", "explain", "GET", "/", "--peer", "somebody"],
    ] {
        assert_eq!(dashpot(args).status.code(), Some(2), "{args:?}");
    }
}
