//! A soak that notices nothing would be worth nothing: rules that let a little too much pass, or wait for too long,
//! while callers expect what they always do, are told.

use std::path::Path;
use std::process::Command;

fn told(instead: &str) -> String {
    let soak = env!("CARGO_BIN_EXE_dashpot-chaos");
    let program = Path::new(soak).with_file_name("dashpot");
    assert!(
        program.is_file(),
        "{} is not there: cargo build --package dashpot-server",
        program.display()
    );
    // With this seed a primary hangs after four seconds, and the one in memory is not killed.
    let output = Command::new(soak)
        .arg("--program")
        .arg(program)
        .args(["--seconds", "8", "--seed", "16", "--instead", instead])
        .output()
        .unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{told}");
    told
}

fn is_noticed(instead: &str, by: &str) {
    let told = told(instead);
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
