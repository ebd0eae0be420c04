//! What docs/proxy.md and docs/from-nginx.md tell people to write and to try.

use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};

use dashpot_testkit::process::{TemporaryDirectory, free_port, start, until};

use crate::caller::PATIENCE;
use crate::home::Home;
use crate::page::{block, blocks, with_ports};

const PROXY: &str = include_str!("../../../../docs/proxy.md");
const FROM_NGINX: &str = include_str!("../../../../docs/from-nginx.md");

#[test]
fn every_rule_file_that_is_shown_can_be_used() {
    for (name, page) in [("proxy", PROXY), ("from-nginx", FROM_NGINX)] {
        let files = blocks(page, "toml");
        assert!(!files.is_empty(), "{name}");
        for text in files {
            let home = Home::new();
            home.write("dashpot.toml", &text);
            let output = home.run(&["rules", "check", "dashpot.toml"]);
            assert_eq!(output.status.code(), Some(0), "{name}: {text}\n{output:?}");
        }
    }
}

/// The right column of the table, as a rule: each can be written so.
#[test]
fn every_line_of_the_table_can_be_used() {
    let mut tried = 0;
    for line in FROM_NGINX.lines().filter(|line| line.starts_with("| `limit_req")) {
        let dashpot = line.split_once(" | ").unwrap().1;
        for way in dashpot.split("; or ") {
            let mut rule = String::new();
            for code in way.split('`').skip(1).step_by(2).filter(|code| code.contains(" = ")) {
                rule += &format!("{code}\n");
            }
            if !rule.contains("limits") {
                rule += "limits = [\"10/s\"]\n";
            }
            let home = Home::new();
            home.write("dashpot.toml", &format!("[[rule]]\nname = 'a'\n{rule}"));
            let output = home.run(&["rules", "check"]);
            assert_eq!(output.status.code(), Some(0), "{line}\n{rule}{output:?}");
            tried += 1;
        }
    }
    assert!(tried >= 8, "{tried}");
}

/// A shell in which the commands of the page mean the ports of this test.
struct Shell {
    ports: [(&'static str, u16); 3],
    running: Vec<Child>,
    // Last: the processes are gone when it is removed.
    directory: TemporaryDirectory,
}

impl Shell {
    fn new() -> Self {
        let directory = TemporaryDirectory::new();
        let program = directory.path().join("dashpot");
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_dashpot"), program).unwrap();
        let ports = [("8000", free_port()), ("8090", free_port()), ("3000", free_port())];
        Self { ports, running: Vec::new(), directory }
    }

    fn prepare(&self, command: &mut Command, line: &str) {
        let path = std::env::var("PATH").unwrap();
        let port = |nth: usize| format!("127.0.0.1:{}", self.ports[nth].1);
        command.args(["-c", &with_ports(line, &self.ports)]);
        command.env("PATH", format!("{}:{path}", self.directory.path().display()));
        command.env("DASHPOT_PROXY_LISTEN", port(0)).env("DASHPOT_ADMIN_LISTEN", port(1));
        command.current_dir(self.directory.path()).stdin(Stdio::null());
    }

    /// One that goes on, until this port is open.
    fn begin(&mut self, line: &str, nth: usize) {
        let line = format!("exec {}", line.trim_end_matches(['&', ' ']));
        let child = start("sh", |command| {
            self.prepare(command, &line);
            command.stdout(Stdio::null()).stderr(Stdio::null());
        });
        self.running.push(child);
        let port = self.ports[nth].1;
        until("it to listen", PATIENCE, || TcpStream::connect(("127.0.0.1", port)).ok());
    }

    fn run(&self, line: &str) -> (Output, String) {
        let mut command = Command::new("timeout");
        command.args(["20", "sh"]);
        self.prepare(&mut command, line);
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        (output, told)
    }
}

impl Drop for Shell {
    fn drop(&mut self) {
        for child in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn in_five_minutes() {
    let commands = blocks(PROXY, "sh");
    let [begin, ask, check] = &commands[..] else { panic!("three blocks: {commands:?}") };
    let mut shell = Shell::new();
    let lines: Vec<&str> = begin.lines().collect();
    let [backend, proxy] = lines[..] else { panic!("two lines: {begin}") };
    shell.begin(backend, 2);
    shell.begin(proxy, 1);

    let lines: Vec<&str> = ask.lines().collect();
    let [six, denied, metrics] = lines[..] else { panic!("three lines: {ask}") };
    let (output, told) = shell.run(six);
    let shown = six.split_once("# ").unwrap().1.trim();
    assert_eq!(told.trim(), shown, "{output:?}");
    let (output, told) = shell.run(denied);
    assert!(output.status.success(), "{output:?}");
    assert!(told.starts_with("HTTP/1.1 429 Too Many Requests\r\n"), "{told}");
    assert!(told.contains("ratelimit: \"limit\";r=0;t="), "{told}");
    assert!(told.contains("retry-after: "), "{told}");
    let (_, told) = shell.run(metrics);
    let denied = "dashpot_rule_denied_total{rule=\"limit\"} 2";
    assert!(told.lines().any(|line| line == denied), "{told}");

    // Now by the file.
    let mut proxy_by_flags = shell.running.pop().unwrap();
    proxy_by_flags.kill().unwrap();
    proxy_by_flags.wait().unwrap();
    let rules = with_ports(&block(PROXY, "toml"), &shell.ports);
    std::fs::write(shell.directory.path().join("dashpot.toml"), rules).unwrap();
    let lines: Vec<&str> = check.lines().collect();
    let [check, proxy] = lines[..] else { panic!("two lines: {check}") };
    let (output, told) = shell.run(check);
    assert!(output.status.success(), "{told} {output:?}");
    shell.begin(proxy, 1);
    for (path, expected) in [("/", "200"), ("/webhooks/none", "404"), ("/api/none", "404")] {
        let line = format!("curl -s -o /dev/null -w '%{{http_code}}' 127.0.0.1:8000{path}");
        assert_eq!(shell.run(&line).1, expected, "{path}");
    }
}
