//! A soak that notices nothing would be worth nothing: rules that let a little too much pass, wait for too long or
//! remember for too short a time, while callers expect what they always do, are told.

use std::path::Path;
use std::process::Command;

/// With this seed a primary hangs after four seconds, and the one in memory is not killed.
const HANGS: (u32, u32) = (16, 8);
/// With this one the one in memory is killed after 5.7 s: by then a quota of its was used up for long.
const IS_KILLED: (u32, u32) = (661, 9);

fn told(instead: &str, (seed, seconds): (u32, u32)) -> String {
    let soak = env!("CARGO_BIN_EXE_dashpot-chaos");
    let program = Path::new(soak).with_file_name("dashpot");
    assert!(
        program.is_file(),
        "{} is not there: cargo build --package dashpot-server",
        program.display()
    );
    let (seed, seconds) = (seed.to_string(), seconds.to_string());
    let output = Command::new(soak)
        .arg("--program")
        .arg(program)
        .args(["--seconds", &seconds, "--seed", &seed, "--instead", instead])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

fn is_noticed(instead: &str, by: &str) {
    is_noticed_in(HANGS, instead, by);
}

fn is_noticed_in(soak: (u32, u32), instead: &str, by: &str) {
    let told = told(instead, soak);
    let noticed = told.lines().any(|line| line.contains("WRONG") && line.contains(by));
    assert!(noticed, "{told}");
}

#[test]
fn one_more_at_once_than_may_be() {
    is_noticed("burst 10=>burst 11", "10 and 20/s may be");
}

#[test]
fn one_more_in_a_year_than_may_be() {
    is_noticed(r#""40/year"=>"41/year""#, "40 and 0/s may be");
}

#[test]
fn everybody_is_let_in_without_a_store() {
    is_noticed(r#"on_error = "deny"=>on_error = "allow""#, "may be");
}

#[test]
fn answers_that_wait_for_redis() {
    is_noticed(r#"deadline = "50ms"=>deadline = "900ms""#, "answered after");
}

#[test]
fn answers_that_wait_for_redis_a_little_too_long() {
    is_noticed(r#"deadline = "50ms"=>deadline = "250ms""#, "after their deadline too often");
}

#[test]
fn more_keys_than_there_may_be() {
    is_noticed("max_keys = 10_000=>max_keys = 10_000_000", "10000 may be");
}

#[test]
fn counts_that_are_lost_when_it_is_started_again() {
    is_noticed_in(IS_KILLED, "state-every=1s=>state-every=1h", "40 and 0/s may be");
}

#[test]
fn redis_that_forgets_too_early() {
    is_noticed(r#""5/h"=>"5/10s""#, "hour");
}

#[test]
fn a_year_on_redis_that_is_over_too_early() {
    is_noticed(r#""5/year"=>"5/2s""#, "year");
}

#[test]
fn one_more_permit_than_there_may_be() {
    is_noticed("4 concurrent=>5 concurrent", "permits at once");
}
