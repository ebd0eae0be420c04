//! `dashpot simulate` as people use it, by docs/simulate.md.

use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

use dashpot_testkit::process::TemporaryDirectory;
use serde_json::Value;

fn command(directory: &TemporaryDirectory, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.arg("simulate").args(args).env_clear().current_dir(directory.path());
    command
}

fn simulate(directory: &TemporaryDirectory, args: &[&str]) -> Output {
    command(directory, args).output().unwrap()
}

#[track_caller]
fn fine(directory: &TemporaryDirectory, args: &[&str]) -> String {
    let output = simulate(directory, args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[track_caller]
fn json(directory: &TemporaryDirectory, args: &[&str]) -> Value {
    serde_json::from_str(&fine(directory, &[args, &["--json"]].concat())).unwrap()
}

/// What it says when it refuses, and that it ends with 2.
#[track_caller]
fn wrong(directory: &TemporaryDirectory, args: &[&str]) -> String {
    let output = simulate(directory, args);
    assert_eq!(
        output.status.code(),
        Some(2),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    assert!(output.stdout.is_empty());
    String::from_utf8(output.stderr).unwrap()
}

fn here() -> TemporaryDirectory {
    TemporaryDirectory::new()
}

#[test]
fn without_a_word_it_shows_the_boundary_burst() {
    let told = fine(&here(), &[]);
    let page = include_str!("../../../docs/simulate.md");
    assert!(page.contains(&told), "the page is to show:\n{told}");
    assert!(
        told.contains("10/10s fixed-window                40        40         0    20 (2.00×)")
    );
}

#[test]
fn each_limit_meets_each_algorithm() {
    let directory = here();
    let args = ["--limit", "10/s", "--limit", "600/min", "--algorithm", "token-bucket,sliding-log"];
    let told =
        json(&directory, &[&args[..], &["--traffic", "steady 20/s", "--for", "1min"]].concat());
    let names: Vec<(&str, &str)> = told["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| (run["limit"].as_str().unwrap(), run["algorithm"].as_str().unwrap()))
        .collect();
    let both = |limit| [(limit, "token-bucket"), (limit, "sliding-log")];
    assert_eq!(names, [both("10/s"), both("600/min")].concat());
    for run in told["runs"].as_array().unwrap() {
        assert_eq!(run["asked"], 1200);
        assert_eq!(run["admitted"].as_u64().unwrap() + run["denied"].as_u64().unwrap(), 1200);
    }
    // A bucket begins full: its minute, and what comes back in it.
    assert_eq!(told["runs"][2]["admitted"], 1199);
    assert_eq!(told["runs"][3]["admitted"], 600);
}

#[test]
fn all_leaves_out_what_does_not_fit_and_says_so() {
    let directory = here();
    let told = json(&directory, &["--limit", "10/s burst 5", "--algorithm", "all"]);
    assert_eq!(told["runs"].as_array().unwrap().len(), 2);
    assert_eq!(told["left_out"].as_array().unwrap().len(), 3);
    assert!(told["left_out"][0].as_str().unwrap().starts_with("fixed-window with 10/s burst 5: "));
    let said = wrong(&directory, &["--limit", "10/s burst 5", "--algorithm", "fixed-window"]);
    assert!(said.contains("windows have none"), "{said}");
}

#[test]
fn a_picture_is_drawn_where_it_is_wanted() {
    let directory = here();
    fine(&directory, &["--svg", "a.svg"]);
    let svg = fs::read_to_string(directory.path().join("a.svg")).unwrap();
    assert!(svg.contains("at most 20 in 10s, 2.00 times the limit"), "{svg}");
    let output = simulate(&directory, &["--svg", "no/such/place.svg"]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("cannot write no/such/place.svg"));
}

#[test]
fn what_is_wrong_is_named() {
    let directory = here();
    fs::write(directory.path().join("bad.csv"), "1,a\nsoon,b\n").unwrap();
    for (args, said) in [
        (&["--traffic", "storm"][..], "`storm` is no kind of traffic"),
        (&["--limit", "10/fortnight"], "`fortnight` is not a unit of time"),
        (&["--algorithm", "magic"], "or `all`"),
        (&["--csv", "none.csv"], "none.csv: "),
        (&["--csv", "bad.csv"], "bad.csv: line 2: `soon` is no time"),
        (&["--limit", "5 concurrent"], "`boundary` is aimed at a limit by the window"),
        (
            &["--log", "access.log"],
            "say which rules: --config dashpot.toml, or --limit 100/min --by ip",
        ),
        (&["--log", "none.log", "--limit", "1/s"], "none.log: "),
        (
            &["--log", "bad.csv", "--limit", "1/s"],
            "no line is a request; bad.csv:1: no time in brackets",
        ),
        (&["--log", "bad.csv", "--limit", "1/s", "--algorithm", "all"], "say one --algorithm"),
        (&["--log", "bad.csv", "--limit", "1/s", "--by", "nonsense?"], "nonsense?"),
        (&["--log", "bad.csv", "--csv", "bad.csv"], "cannot be used with"),
        (&["--config", "x.toml"], "--log"),
    ] {
        let told = wrong(&directory, args);
        assert!(told.contains(said), "{args:?}: {told}");
    }
}

const DAY: &str = "[18/Nov/2026:11:06:40 +0000]";

fn line(ip: &str, request: &str, status: u16) -> String {
    format!("{ip} - - {DAY} \"{request} HTTP/1.1\" {status} 10\n")
}

/// Rules as they are: several at once, by method and path, in the shadow, and only failures of logins.
#[test]
fn a_log_against_rules() {
    let directory = here();
    let rules = "
        [[rule]]\nname = 'login'\nmatch = { method = 'POST', path = '/login' }\nby = ['ip']\nlimits = ['2/h']\ncharge_on = [401]
        [[rule]]\nname = 'all'\nby = ['ip']\nlimits = ['6/h']
        [[rule]]\nname = 'tried'\nlimits = ['3/h']\nshadow = true\n";
    fs::write(directory.path().join("dashpot.toml"), rules).unwrap();
    let mut log = String::new();
    // Who gets in is not charged by `login`; two failures are, and the third is denied.
    for status in [200, 401, 200, 401, 401] {
        log += &line("203.0.113.7", "POST /login", status);
    }
    for _ in 0..4 {
        log += &line("203.0.113.7", "GET /", 200);
    }
    log += &line("203.0.113.8", "GET /", 200);
    log += "no line of a log\n";
    fs::write(directory.path().join("access.log"), log).unwrap();
    let told = json(&directory, &["--log", "access.log"]);
    assert_eq!(
        (&told["requests"], &told["denied"], &told["left_out"]),
        (&10.into(), &3.into(), &1.into())
    );
    let rule = |number: usize| {
        let rule = &told["rules"][number];
        let count = |name: &str| rule[name].as_u64().unwrap();
        (rule["rule"].as_str().unwrap(), count("allowed"), count("denied"), count("shadow_denied"))
    };
    assert_eq!(rule(0), ("login", 4, 1, 0));
    // A denial by `login` took nothing here: four logins, two of the others, and somebody else.
    assert_eq!(rule(1), ("all", 7, 2, 0));
    assert_eq!(rule(2), ("tried", 3, 0, 4));
    assert_eq!(told["top"][0]["key"][0], "ip=203.0.113.7");
    assert_eq!(told["first_left_out"], "access.log:11: no time in brackets");
    let table =
        fine(&directory, &["--log", "access.log", "--config", "dashpot.toml", "--svg", "a.svg"]);
    assert!(table.contains("10 requests, from 2026-11-18T11:06:40Z"), "{table}");
    assert!(table.contains("3 would have been denied, 30.00 %"), "{table}");
    assert!(fs::read_to_string(directory.path().join("a.svg")).unwrap().contains("<svg "));
}

#[test]
fn a_log_against_a_limit_out_of_a_pipe() {
    let directory = here();
    let mut process = command(
        &directory,
        &["--log", "-", "--limit", "1/s", "--algorithm", "leaky-bucket", "--queue", "2", "--json"],
    )
    .stdin(Stdio::piped())
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let mut input = process.stdin.take().unwrap();
    for ip in
        ["203.0.113.7", "203.0.113.7", "203.0.113.7", "203.0.113.7", "203.0.113.7", "2001:db8::1"]
    {
        input.write_all(line(ip, "GET /", 200).as_bytes()).unwrap();
    }
    drop(input);
    let told: Value = serde_json::from_slice(&process.wait_with_output().unwrap().stdout).unwrap();
    // Spread over their second, five find three places; two of them wait.
    assert_eq!((&told["denied"], &told["delayed"]), (&2.into(), &2.into()));
    assert!(told["longest_delay"].as_f64().unwrap() > 1.0, "{told}");
}

/// The service would have done the same: each line asked about over HTTP, one right after the other, gets the same answer.
#[test]
fn the_gateway_s_own_log_is_read() {
    let directory = here();
    let log = "2026-11-18T11:06:40.000Z 203.0.113.7 GET /a HTTP/1.1 200 42 0.0012\n\
               2026-11-18T11:06:40.100Z 203.0.113.7 GET /a HTTP/1.1 200 42 0.0012\n\
               {\"time\":\"2026-11-18T11:06:40.200Z\",\"ip\":\"203.0.113.7\",\"method\":\"GET\",\"path\":\"/a\",\"version\":\"HTTP/1.1\",\"status\":200,\"bytes\":42,\"seconds\":0.1}\n";
    fs::write(directory.path().join("access.log"), log).unwrap();
    let told = json(&directory, &["--log", "access.log", "--limit", "2/h"]);
    assert_eq!((&told["requests"], &told["denied"]), (&3.into(), &1.into()));
}

/// Permits are held for as long as requests took, as the log tells.
#[test]
fn places_are_held_as_long_as_it_took() {
    let directory = here();
    let rules = "[[rule]]\nname = 'few'\nlimits = ['1 concurrent']\n";
    fs::write(directory.path().join("rules.toml"), rules).unwrap();
    let line = |millis: u32, seconds: f64| {
        format!(
            "2026-11-18T11:06:{:02}.{:03}Z 203.0.113.7 GET / HTTP/1.1 200 1 {seconds}\n",
            millis / 1000,
            millis % 1000
        )
    };
    let log =
        line(1, 0.5) + &line(400, 0.1) + &line(600, 2.0) + &line(2500, 0.1) + &line(2601, 0.1);
    fs::write(directory.path().join("access.log"), log).unwrap();
    let told = json(&directory, &["--log", "access.log", "--config", "rules.toml"]);
    assert_eq!((&told["requests"], &told["denied"]), (&5.into(), &2.into()));
}
