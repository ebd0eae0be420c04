//! SECURITY.md names a test for every promise.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::book::{read, root};

/// `` `FILE: TEST` `` wherever it is.
fn named(page: &str) -> Vec<(&str, &str)> {
    let quoted = page.split('`').skip(1).step_by(2);
    quoted.filter(|quoted| quoted.contains(".rs: ")).filter_map(|it| it.split_once(": ")).collect()
}

/// `#[test]`, or that of an executor.
fn is_attribute(line: &str) -> bool {
    let line = line.trim();
    line.starts_with("#[") && (line.contains("test]") || line.contains("test("))
}

#[test]
fn every_test_that_is_named_is_there() {
    let page = read("SECURITY.md");
    let tests = named(&page);
    for (file, test) in &tests {
        let text = read(file);
        let lines: Vec<&str> = text.lines().collect();
        let is_test = |place: usize| {
            lines[place.saturating_sub(3)..place].iter().any(|line| is_attribute(line))
        };
        let signature = format!("fn {test}(");
        let mut places = (0..lines.len()).filter(|place| lines[*place].contains(&signature));
        assert!(places.any(is_test), "SECURITY.md: {file} has no test {test}");
    }
    assert!(tests.len() >= 40, "{}", tests.len());
}

#[test]
fn every_threat_has_a_test_for_each_promise() {
    let page = read("SECURITY.md");
    let threats = page.split("\n## ").find(|part| part.starts_with("Threats")).unwrap();
    let rows = threats.lines().filter(|line| line.starts_with("| ") && !line.contains("seen by"));
    for row in rows {
        let cell = row.rsplit(" | ").next().unwrap();
        let script = cell.split('`').find_map(|word| word.strip_prefix("scripts/"));
        let known = script.is_some_and(|name| root().join("scripts").join(name).is_file());
        assert!(known || !named(cell).is_empty(), "{row}");
    }
}

/// What it says up to the first empty line, or what it complains of: where it listens is in either.
fn first_words(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
    let command = command.args(arguments).env_clear().stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
    let mut said: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    process.kill().unwrap();
    let rest = process.wait_with_output().unwrap();
    said.push(String::from_utf8(rest.stderr).unwrap());
    said.join("\n")
}

#[test]
fn services_listen_on_loopback_unless_told_otherwise() {
    let proxy = ["proxy", "--upstream", "http://127.0.0.1:9", "--limit", "1/s"];
    for arguments in [&["serve"][..], &proxy] {
        let said = first_words(arguments);
        assert!(said.contains("127.0.0.1:80"), "{said}");
        assert!(!said.contains("0.0.0.0") && !said.contains("[::"), "{said}");
    }
}
