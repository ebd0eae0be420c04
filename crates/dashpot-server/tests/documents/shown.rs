//! Answers, headers and logs that the pages show, beside those that there are.

use std::fs;
use std::process::Command;
use std::time::Duration;

use dashpot_testkit::process::{TemporaryDirectory, free_port, start, until};
use serde_json::Value;

use crate::book::blocks_of;
use crate::service::{START, Service};
use crate::shell::expected_of;

/// Long enough for a line to be written.
const SOON: Duration = Duration::from_secs(20);

/// A service by these rules, and the directory it is in.
fn serve(rules: &str) -> (Service, TemporaryDirectory) {
    let directory = TemporaryDirectory::new();
    let service = Service::start(directory.path(), rules, &["--drain-delay", "0"]);
    (service, directory)
}

fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl").args(["-sS", "-m", "20"]).args(arguments).output().unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn check(service: &Service, question: &str) -> String {
    curl(&[&format!("http://{}/v1/check", service.address()), "-d", question])
}

/// docs/api.md: an answer, and two questions.
#[test]
fn of_the_api() {
    let (service, _directory) = serve("[[rule]]\nname = 'a'\nlimits = ['100/s']\n");
    let [answer, several, request] = &*blocks_of("docs/api.md", "json") else { panic!("three") };
    let told = check(&service, r#"{"key":"alice","limit":"10/s burst 20"}"#);
    assert_eq!(told, answer.trim_end());
    for question in [several, request] {
        let told: Value = serde_json::from_str(&check(&service, question)).unwrap();
        assert_eq!(told["outcome"], "allow", "{question}{told}");
    }
}

/// docs/headers.md: what a denied caller gets, at the door for gateways.
#[test]
fn of_a_denial() {
    let rules = "[[rule]]\nname = 'api'\nmatch = { path = '/api/*' }\nlimits = ['60/min', '1000/day']\n\
                 [[rule]]\nname = 'login'\nmatch = { path = '/login' }\nlimits = ['4/min']\n";
    let (service, _directory) = serve(rules);
    let denied = |path: &str, cost: u32| {
        // All there is, in one request.
        let question =
            format!(r#"{{"request":{{"path":"{path}","ip":"127.0.0.1"}},"cost":{cost}}}"#);
        assert!(check(&service, &question).contains("allow"));
        let door = format!("http://{}/v1/forward-auth{path}", service.address());
        curl(&["-i", &door])
    };
    let [head] = &*blocks_of("docs/headers.md", "text") else { panic!("one") };
    let told = denied("/api/books", 60).to_lowercase();
    for line in head.to_lowercase().lines() {
        expected_of(line, &told).unwrap_or_else(|wrong| panic!("{wrong}"));
    }

    let [body] = &*blocks_of("docs/headers.md", "json") else { panic!("one") };
    let told = denied("/login", 4);
    let (_, told) = told.split_once("\r\n\r\n").unwrap();
    let told: Value = serde_json::from_str(told).unwrap();
    assert_eq!(told, serde_json::from_str::<Value>(body).unwrap());
}

/// A line with the same words, and other digits.
fn shape(line: &str) -> String {
    line.chars().map(|c| if c.is_ascii_hexdigit() { '0' } else { c }).collect()
}

/// docs/operations.md: a denial in the log.
#[test]
fn of_the_log() {
    let (service, _directory) = serve("[[rule]]\nname = 'login'\nlimits = ['1/h']\n");
    for _ in 0..2 {
        check(&service, r#"{"request":{"path":"/"}}"#);
    }
    let [shown] = &*blocks_of("docs/operations.md", "text") else { panic!("one") };
    until("a line in the log", SOON, || {
        let log = service.log();
        let told = log.lines().find(|line| line.contains(" denied "))?;
        assert_eq!(shape(told), shape(shown.trim_end()));
        Some(())
    });
}

/// docs/proxy.md: a line of the access log.
#[test]
fn of_the_access_log() {
    let directory = TemporaryDirectory::new();
    let file = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (backend, proxy) = (free_port(), free_port());
    let mut backend_process = start("python3", |command| {
        let port = backend.to_string();
        command.args(["-m", "http.server", &port, "--bind", "127.0.0.1", "--directory", &file("")]);
        command.stdout(fs::File::create(file("stdout")).unwrap());
        command.stderr(fs::File::create(file("stderr")).unwrap());
    });
    let mut proxy_process = start(env!("CARGO_BIN_EXE_dashpot"), |command| {
        command.args(["proxy", "--admin-listen", "off", "--access-log", &file("log")]);
        command.args(["--upstream", &format!("http://127.0.0.1:{backend}")]);
        command.args(["--listen", &format!("127.0.0.1:{proxy}")]).current_dir(directory.path());
        command.stdout(fs::File::create(file("greeting")).unwrap());
    });
    fs::create_dir(file("api")).unwrap();
    fs::write(file("api/books"), [b'x'; 1234]).unwrap();
    let told = until("a line in the access log", START, || {
        curl(&[&format!("http://127.0.0.1:{proxy}/api/books")]);
        let log = fs::read_to_string(file("log")).ok()?;
        log.lines().find(|line| line.contains(" 200 ")).map(str::to_owned)
    });
    for process in [&mut backend_process, &mut proxy_process] {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    let shown = blocks_of("docs/proxy.md", "text").pop().unwrap();
    let shown = shown.trim_end().replace("203.0.113.7", "127.0.0.1");
    assert_eq!(shape(&told), shape(&shown));
}

/// docs/resp.md in languages that cannot be run here: they ask as those do that can.
#[test]
fn in_other_languages() {
    for language in ["go", "ruby", "php", "java"] {
        let [shown] = &*blocks_of("docs/resp.md", language) else { panic!("one in {language}") };
        let words = shown.replace(['"', '\''], "");
        assert!(words.contains("CL.THROTTLE"), "{shown}");
        assert!(words.contains("user123, 15, 30, 60"), "{shown}");
        assert!(words.contains("6380"), "{shown}");
    }
}
