//! The command on Redis.

use std::process::{Command, Output};

use dashpot_testkit::RedisServer;

fn dashpot(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    command.args(arguments).env_remove("DASHPOT_STORE").output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

#[test]
fn what_one_run_takes_the_next_does_not_have() {
    let server = RedisServer::start();
    let url = server.url();
    let check = |times| {
        dashpot(&["check", "5/day", "--key", "alice", "--times", times, "--store", &url])
            .status
            .code()
    };
    assert_eq!(check("3"), Some(0));
    assert_eq!(check("3"), Some(1));
    assert!(server.keys_without_ttl().is_empty());
    assert_eq!(server.keys(), [b"dashpot:{alice}:check:t86400000000".to_vec()], "no instance");
}

#[test]
fn a_key_is_looked_at_blocked_and_forgotten() {
    let server = RedisServer::start();
    let url = server.url();
    let key = |wish: &[&str]| {
        let limit = ["5/day", "--policy", "api", "--key", "alice", "--store", &url, "--json"];
        let output = dashpot(&[&["key"], wish, &limit].concat());
        assert_eq!(output.status.code(), Some(0), "{}", told(&output));
        told(&output)
    };
    let check = || {
        let limit = ["check", "5/day", "--policy", "api", "--key", "alice", "--store", &url];
        dashpot(&limit).status.code()
    };
    assert_eq!(check(), Some(0));
    assert!(key(&["peek"]).contains("\"remaining\":4"));
    assert!(key(&["block", "--for", "10min"]).contains("\"remaining\":0"));
    assert_eq!(check(), Some(1));
    assert!(key(&["unblock"]).contains("\"remaining\":4"));
    assert!(key(&["reset"]).contains("\"remaining\":5"));
}

#[test]
fn a_store_that_cannot_be_reached_is_an_end_of_its_own() {
    let output = dashpot(&["check", "5/s", "--key", "a", "--store", "redis://:hush@127.0.0.1:1"]);
    assert_eq!(output.status.code(), Some(3));
    assert!(told(&output).contains("Connection refused"), "{}", told(&output));
    assert!(!told(&output).contains("hush"));
}

#[test]
fn wrong_usage_is_told() {
    let wrong = |arguments: &[&str], message: &str| {
        let output = dashpot(arguments);
        assert_eq!(output.status.code(), Some(2), "{}", told(&output));
        assert!(told(&output).contains(message), "{}", told(&output));
    };
    let store = ["--store", "redis://127.0.0.1:1"];
    wrong(&["key", "peek", "5/s", "--key", "a"], "--store redis");
    wrong(&["check", "5/s", "--key", "a", "--store", "http://a"], "not a URL of Redis");
    let block = ["key", "block", "5/s", "--key", "a", "--for", "soon"];
    wrong(&[&block[..], &store].concat(), "10min");
    let much = ["check", "10000000000000000/s", "--key", "a"];
    wrong(&[&much[..], &store].concat(), "more than Redis counts exactly");
}
