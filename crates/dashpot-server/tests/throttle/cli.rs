//! redis-cli.

use std::process::{Output, Stdio};

use crate::page::blocks;
use crate::scene::{Scene, contented, run, run_with};

fn cli(scene: &Scene, arguments: &[&str]) -> Output {
    run("redis-cli", &[&["-p", &scene.port()], arguments].concat())
}

/// With this on its input.
fn piped(scene: &Scene, arguments: &[&str], input: &str) -> Output {
    let file = scene.home.write("input", input);
    run_with("redis-cli", &[&["-p", &scene.port()], arguments].concat(), |command| {
        command.stdin(Stdio::from(std::fs::File::open(file).unwrap()));
    })
}

/// The numbers of the page, without what they mean.
fn shown() -> String {
    let block = blocks(include_str!("../../../../docs/resp.md"), "text").remove(0);
    let lines =
        block.lines().map(|line| line.split("  ").next().unwrap().trim_end().to_owned() + "\n");
    lines.collect()
}

#[test]
fn one_command() {
    let scene = Scene::start(&[]);
    for (nth, version) in ["-2", "-3"].iter().enumerate() {
        let key = format!("user{nth}");
        let asked = [*version, "CL.THROTTLE", &key, "15", "30", "60"];
        assert_eq!(contented(&cli(&scene, &asked)), "0\n16\n15\n-1\n2\n");
    }
    // As people see it.
    let asked = ["--no-raw", "CL.THROTTLE", "user123", "15", "30", "60"];
    assert_eq!(contented(&cli(&scene, &asked)), shown());
    assert_eq!(contented(&cli(&scene, &["-3", "PING"])), "PONG\n");
    assert_eq!(contented(&cli(&scene, &["-n", "0", "ECHO", "a b"])), "a b\n");
}

#[test]
fn one_command_again_and_again() {
    let scene = Scene::start(&[]);
    let asked = ["-r", "5", "CL.THROTTLE", "user123", "2", "1", "86400"];
    let told = contented(&cli(&scene, &asked));
    let lines: Vec<&str> = told.split_whitespace().collect();
    let limited: Vec<&str> = lines.chunks(5).map(|five| five[0]).collect();
    assert_eq!(limited, ["0", "0", "0", "1", "1"], "{told}");
}

#[test]
fn an_error_is_told_as_one() {
    let scene = Scene::start(&[]);
    for (asked, error) in [
        (
            &["CL.THROTTLE", "k", "15", "0", "60"][..],
            "Cell error: Store error: Zero rates are not supported",
        ),
        (
            &["CL.THROTTLE", "k", "abc", "1", "60"],
            "Cell error: Store error: Couldn't parse as integer: abc",
        ),
        (&["GET", "x"], "ERR unknown command 'GET', with args beginning with: 'x'"),
    ] {
        let output = cli(&scene, &[&["-e", "--no-raw"], asked].concat());
        let told =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{told}");
        assert!(told.contains(error), "{told}");
    }
}

#[test]
fn commands_on_its_input() {
    let scene = Scene::start(&[]);
    let input =
        "CL.THROTTLE a 15 30 60\ncl.throttle \"b c\" 0 1 60\n\nCL.THROTTLE 'b c' 0 1 60\nPING\n";
    let told = contented(&piped(&scene, &[], input));
    let lines: Vec<&str> = told.split_whitespace().collect();
    let expected = "0 16 15 -1 2 0 1 0 -1 60 1 1 0 60 60 PONG";
    assert_eq!(lines.join(" "), expected, "{told}");
    // An empty line is none to redis-cli; in RESP3 the answers are the same.
    let told = contented(&piped(&scene, &["-3"], "CL.THROTTLE c 15 30 60\n"));
    assert_eq!(told.split_whitespace().collect::<Vec<_>>().join(" "), "0 16 15 -1 2");
}

/// As fast as it can, and then one `ECHO` that says when all was answered.
#[test]
fn very_many_in_a_pipe() {
    let scene = Scene::start(&[]);
    let line = "CL.THROTTLE k 999 1 86400\r\n";
    let told = contented(&piped(&scene, &["--pipe"], &line.repeat(5000)));
    assert!(told.contains("errors: 0, replies: 5000"), "{told}");
    assert_eq!(scene.service.metric(r#"dashpot_rule_allowed_total{rule="(throttle)"}"#), 1000.0);
    let words = ["CL.THROTTLE", "k", "999", "1", "86400"];
    let mut frame = format!("*{}\r\n", words.len());
    frame.extend(words.map(|word| format!("${}\r\n{word}\r\n", word.len())));
    let told = contented(&piped(&scene, &["--pipe"], &frame.repeat(5000)));
    assert!(told.contains("errors: 0, replies: 5000"), "{told}");
    assert_eq!(scene.service.metric(r#"dashpot_rule_denied_total{rule="(throttle)"}"#), 9000.0);
}

#[test]
fn a_password() {
    let scene = Scene::start(&["--resp-password", "open sesame"]);
    let asked = ["CL.THROTTLE", "user123", "15", "30", "60", "0"];
    let right: [&[&str]; 4] = [
        &["--no-auth-warning", "-a", "open sesame"],
        &["--no-auth-warning", "--user", "default", "--pass", "open sesame"],
        &["--no-auth-warning", "-3", "-a", "open sesame"],
        &["-u", &format!("redis://default:open%20sesame@127.0.0.1:{}", scene.port())],
    ];
    for flags in right {
        // Its warning about passwords in a URL is not ours.
        let flags = [&["--no-auth-warning"], flags, &asked].concat();
        assert_eq!(contented(&cli(&scene, &flags)), "0\n16\n16\n-1\n0\n", "{flags:?}");
    }
    let output = run_with("redis-cli", &[&["-p", &scene.port()], &asked[..]].concat(), |command| {
        command.env("REDISCLI_AUTH", "open sesame");
    });
    assert_eq!(contented(&output), "0\n16\n16\n-1\n0\n");

    let output = cli(&scene, &[&["--no-auth-warning", "-a", "wrong"], &asked[..]].concat());
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(
        told.contains("WRONGPASS invalid username-password pair or user is disabled."),
        "{told}"
    );
    let output = cli(&scene, &asked);
    let told = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(told.contains("NOAUTH Authentication required."), "{told}");
}
