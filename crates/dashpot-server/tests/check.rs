//! `dashpot check` as people and scripts use it.

use std::process::{Command, Output};

fn dashpot(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(args).env_clear().output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The README's command: five allowed, three denied with the wait.
#[test]
fn the_readme_table() {
    let output = dashpot(&["check", "5/10s", "--key", "alice", "--times", "8"]);
    assert_eq!(output.status.code(), Some(1), "something was denied");
    let stdout = text(&output.stdout);
    let mut lines = stdout.lines();
    assert_eq!(lines.next(), Some("5/10s, token-bucket, key \"alice\""));
    assert_eq!(lines.next(), Some(""));
    let heading = "   #  outcome  remaining  reset after  retry after  delay";
    assert_eq!(lines.next(), Some(heading));

    let rows: Vec<Vec<_>> = lines.map(|line| line.split_whitespace().collect()).collect();
    let answers: Vec<_> = rows.iter().map(|row| (row[1], row[2])).collect();
    let allowed = ["4", "3", "2", "1", "0"].map(|remaining| ("allow", remaining));
    assert_eq!(answers, [&allowed[..], &[("deny", "0"); 3]].concat());
    for row in &rows[..5] {
        assert_eq!(row[4], "-");
    }
    for row in &rows[5..] {
        // Two seconds, less what has passed since the first check.
        let wait: f64 = row[4].strip_suffix('s').unwrap().parse().unwrap();
        assert!(wait > 0.0 && wait <= 2.0, "{wait}");
    }
}

#[test]
fn json_for_machines() {
    let output = dashpot(&["check", "2/h", "--key", "alice", "--times", "3", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["allow", "allow", "deny"]);
    let first = &lines[0]["policies"][0];
    assert_eq!(first["policy"], "alice");
    assert_eq!((first["limit"].as_u64(), first["remaining"].as_u64()), (Some(2), Some(1)));
    assert_eq!(first["reset_after"].as_f64(), Some(1800.0));
    assert!(first["retry_after"].is_null());
    let wait = lines[2]["policies"][0]["retry_after"].as_f64().unwrap();
    assert!((1700.0..=1800.0).contains(&wait), "{wait}");
}

#[test]
fn exit_codes() {
    let code = |args: &[&str]| dashpot(args).status.code();
    assert_eq!(code(&["check", "5/s", "--key", "a"]), Some(0));
    assert_eq!(code(&["check", "5/s", "--key", "a", "--cost", "6"]), Some(1));
    assert_eq!(code(&["check", "5/s"]), Some(2));
    assert_eq!(code(&["check", "5/fortnight", "--key", "a"]), Some(2));
    assert_eq!(code(&["check", "5/s", "--key", "a", "--queue", "3"]), Some(2));
    assert_eq!(code(&["check", "5/s", "--key", "a", "--algorithm", "gcra"]), Some(2));
    assert_eq!(code(&["check", "5/d", "--key", "a", "--zone", "Mars/Olympus"]), Some(2));
    assert_eq!(code(&["frobnicate"]), Some(2));
}

#[test]
fn a_wrong_limit_is_pointed_at() {
    let output = dashpot(&["check", "10/fortnight", "--key", "a"]);
    let message = text(&output.stderr);
    assert!(message.contains("column 4: `fortnight` is not a unit of time"), "{message}");
    assert!(message.contains("  10/fortnight\n     ^^^^^^^^^\n"), "{message}");
}

#[test]
fn parts_that_do_not_fit_are_explained() {
    let output = dashpot(&["check", "5/s burst 9", "--algorithm", "fixed-window", "--key", "a"]);
    assert!(text(&output.stderr).starts_with("error: `burst` is the capacity of a bucket"));
}

#[test]
fn every_flag_is_also_an_environment_variable() {
    let output = Command::new(env!("CARGO_BIN_EXE_dashpot"))
        .arg("check")
        .env_clear()
        .envs([
            ("DASHPOT_LIMIT", "10/s"),
            ("DASHPOT_KEY", "alice"),
            ("DASHPOT_ALGORITHM", "leaky-bucket"),
            ("DASHPOT_QUEUE", "2"),
            ("DASHPOT_UNDELAYED", "1"),
            ("DASHPOT_COST", "1"),
            ("DASHPOT_TIMES", "4"),
            ("DASHPOT_ZONE", "UTC"),
            ("DASHPOT_JSON", "1"),
        ])
        .output()
        .unwrap();
    let lines: Vec<serde_json::Value> =
        text(&output.stdout).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, ["allow", "allow", "allow", "deny"]);
    let delays: Vec<_> = lines.iter().map(|line| line["delay"].as_f64().unwrap() > 0.0).collect();
    assert_eq!(delays, [false, false, true, false]);
}
