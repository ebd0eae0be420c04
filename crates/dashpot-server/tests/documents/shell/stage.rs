//! A directory that looks like the repository, and a shell in it that means other ports.

use std::env;
use std::fs::{self, File};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use dashpot_testkit::RedisServer;
use dashpot_testkit::process::{TemporaryDirectory, free_port, of_the_system, start, until};

use crate::book::{files_below, root};

/// How long a server may take to listen, and to say what is shown.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a command may take, in seconds: those that simulate are built without optimizations.
const LONGEST: &str = "120";

/// Ports of the pages.
const PORTS: [&str; 7] = ["8080", "8081", "6380", "8000", "8090", "6379", "3000"];

/// Who listens where, as the environment tells programs that are not told otherwise.
const LISTENS: [(&str, &str); 5] = [
    ("DASHPOT_LISTEN", "8080"),
    ("DASHPOT_GRPC_LISTEN", "8081"),
    ("DASHPOT_RESP_LISTEN", "6380"),
    ("DASHPOT_PROXY_LISTEN", "8000"),
    ("DASHPOT_ADMIN_LISTEN", "8090"),
];

/// A program that goes on.
struct Server {
    /// The port by which it is known.
    port: &'static str,
    process: Child,
    log: String,
}

pub(super) struct Stage {
    ports: Vec<(&'static str, u16)>,
    running: Vec<Server>,
    redis: Option<RedisServer>,
    /// Variables that were set, as the lines that set them.
    variables: String,
    /// The last reservation that was told.
    reservation: Option<String>,
    // Last: all are gone when it is removed.
    directory: TemporaryDirectory,
}

impl Stage {
    pub(super) fn new() -> Self {
        let directory = TemporaryDirectory::new();
        let place = directory.path();
        // Copies, since commands write where they like.
        for file in ["docs", "examples", "packaging"].into_iter().flat_map(files_below) {
            let copy = place.join(&file);
            fs::create_dir_all(copy.parent().unwrap()).unwrap();
            fs::copy(root().join(&file), copy).unwrap();
        }
        for name in ["bin", "heads", "logs", "target", "etc/dashpot"] {
            fs::create_dir_all(place.join(name)).unwrap();
        }
        fs::copy(root().join("packaging/dashpot.toml"), place.join("etc/dashpot/dashpot.toml"))
            .unwrap();
        symlink(env!("CARGO_BIN_EXE_dashpot"), place.join("bin/dashpot")).unwrap();
        // Notes what was answered, also where a page does not print it.
        let curl = format!(
            "#!/bin/sh\nexec {} -sS -D '{}'/$$ \"$@\"\n",
            of_the_system("curl"),
            place.join("heads").display()
        );
        fs::write(place.join("bin/curl"), curl).unwrap();
        fs::set_permissions(place.join("bin/curl"), fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            ports: PORTS.into_iter().map(|port| (port, free_port())).collect(),
            running: Vec::new(),
            redis: None,
            variables: String::new(),
            reservation: None,
            directory,
        }
    }

    pub(super) fn write(&self, name: &str, text: &str) {
        let file = self.directory.path().join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, self.here(text)).unwrap();
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.directory.path().join(name).exists()
    }

    fn port(&self, documented: &str) -> u16 {
        self.ports.iter().find(|(known, _)| *known == documented).unwrap().1
    }

    /// A text of a page, with the ports of this stage.
    fn here(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // In two steps: one of the new ports may begin with the digits of an old one.
        for (nth, (documented, _)) in self.ports.iter().enumerate() {
            for before in ["127.0.0.1:", "redis:", "-p ", "http.server "] {
                text = text.replace(&format!("{before}{documented}"), &format!("{before}<{nth}>"));
            }
        }
        for (nth, (_, port)) in self.ports.iter().enumerate() {
            text = text.replace(&format!("<{nth}>"), &port.to_string());
        }
        text.replace("redis://redis:", "redis://127.0.0.1:")
    }

    /// What a program of this stage said, with the ports of the pages.
    fn there(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (documented, port) in &self.ports {
            text = text.replace(&format!(":{port}"), &format!(":{documented}"));
        }
        text
    }

    /// A command of a page, as it is meant here.
    fn command_here(&self, command: &str) -> String {
        // Nobody else is to reach it; and what is root's is here.
        let command = command
            .replace("cargo run --release -- ", "dashpot ")
            .replace("0.0.0.0:", "127.0.0.1:")
            .replace(" /etc/", " etc/");
        let mut command = self.here(&command);
        if let Some(reservation) = &self.reservation {
            command = command
                .replace("\"reservation\":\"…\"", &format!("\"reservation\":\"{reservation}\""));
        }
        command
    }

    fn prepare(&self, command: &mut Command, line: &str) {
        let place = self.directory.path();
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("DASHPOT_") {
                command.env_remove(name);
            }
        }
        for (name, port) in LISTENS {
            command.env(name, format!("127.0.0.1:{}", self.port(port)));
        }
        // By default they ask at 8080. To others it would be an order to ask a server at all.
        if [" key top", " rules list", " rules reload"].iter().any(|asks| line.contains(asks)) {
            command.env("DASHPOT_SERVER", format!("http://127.0.0.1:{}", self.port("8080")));
        }
        let path = env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", place.join("bin").display()));
        command.args(["-c", &format!("{}{line}", self.variables)]);
        command.current_dir(place).stdin(Stdio::null());
    }

    /// Runs a line, whatever it is; what it prints, with the ports of the pages.
    pub(super) fn run(&mut self, command: &str, status: i32) -> String {
        if command.starts_with("redis-server ") {
            self.start_redis();
            return String::new();
        }
        if is_assignment(command) {
            self.variables += &format!("{command}\n");
            return String::new();
        }
        self.provide(command);
        let line = self.command_here(command);
        if let Some(port) = server_of(&line) {
            return self.begin(port, &line);
        }
        self.end(&line, status)
    }

    /// A command that ends by itself.
    fn end(&mut self, line: &str, status: i32) -> String {
        let mut command = Command::new("timeout");
        command.args([LONGEST, "sh"]);
        self.prepare(&mut command, line);
        let output = command.output().unwrap();
        let told = told(&output);
        assert_eq!(output.status.code(), Some(status), "{line}\n{told}");
        let statuses = self.statuses();
        assert!(!line.contains("curl ") || !statuses.is_empty(), "{line}\n{told}");
        for status in statuses {
            assert!(["200", "429"].contains(&&*status), "{line}: {status}\n{told}");
        }
        if let Some((_, rest)) = told.split_once("\"reservation\":\"") {
            self.reservation = rest.split('"').next().map(str::to_owned);
        }
        self.there(&told)
    }

    /// What was answered to each curl since the last time.
    fn statuses(&self) -> Vec<String> {
        let mut found = Vec::new();
        for file in fs::read_dir(self.directory.path().join("heads")).unwrap() {
            let file = file.unwrap().path();
            let head = fs::read_to_string(&file).unwrap();
            let status = head.split(' ').nth(1).unwrap_or("no answer");
            found.push(status.split_whitespace().next().unwrap_or_default().to_owned());
            fs::remove_file(file).unwrap();
        }
        found
    }

    /// What a page takes for granted is started: the Redis or the service that a command asks.
    fn provide(&mut self, command: &str) {
        if command.contains(":6379") && self.redis.is_none() {
            self.start_redis();
        }
        let asks = |port: &str| command.contains(&format!("127.0.0.1:{port}"));
        let is_asked = asks("8080") || command.contains("-p 6380") || command.contains(" key top");
        let serves = server_of(&self.command_here(command)).is_some();
        if is_asked && !serves && !self.is_running("8080") {
            let token = self.has("secrets/admin-token");
            let flag = if token { " --admin-token-file secrets/admin-token" } else { "" };
            self.run(&format!("dashpot serve{flag} &"), 0);
        }
        if command.contains("\"reservation\":\"…\"") && self.reservation.is_none() {
            let question = r#"{"key":"bob","limit":"1000/h","reserve":true}"#;
            self.run(&format!("curl 127.0.0.1:8080/v1/check -d '{question}'"), 0);
        }
    }

    fn is_running(&self, port: &str) -> bool {
        self.running.iter().any(|server| server.port == port)
    }

    fn start_redis(&mut self) {
        let redis = RedisServer::start();
        let place = self.ports.iter_mut().find(|(known, _)| *known == "6379").unwrap();
        place.1 = redis.port();
        self.redis = Some(redis);
    }

    /// One that goes on. Whoever had its port is ended before, as whoever types it would have to.
    fn begin(&mut self, port: &'static str, line: &str) -> String {
        self.stop(port);
        let log = self.directory.path().join("logs").join(port);
        let file = File::create(&log).unwrap();
        let process = start("sh", |command| {
            self.prepare(command, &format!("exec {}", line.trim_end_matches(['&', ' '])));
            command.stderr(file.try_clone().unwrap()).stdout(file);
        });
        let log = log.to_str().unwrap().to_owned();
        self.running.push(Server { port, process, log });
        let address = ("127.0.0.1", self.port(port));
        let server = self.running.last_mut().unwrap();
        until(line, PATIENCE, || {
            let ended = server.process.try_wait().unwrap();
            assert!(ended.is_none(), "{line}: {ended:?}\n{}", server.told());
            // What it greets with comes once it listens; python says nothing.
            let greets = port == "3000" || server.told().contains("  curl ");
            (greets && TcpStream::connect(address).is_ok()).then_some(())
        });
        let told = self.running.last().unwrap().told();
        self.there(&told)
    }

    fn stop(&mut self, port: &str) {
        self.running.retain_mut(|server| {
            let stays = server.port != port;
            if !stays {
                server.stop();
            }
            stays
        });
    }
}

impl Server {
    fn told(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    fn stop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        for server in &mut self.running {
            if std::thread::panicking() {
                eprintln!("---- on {} ----\n{}", server.port, server.told());
            }
            server.stop();
        }
    }
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// The port by which it is seen that it listens, if it is one that goes on.
fn server_of(line: &str) -> Option<&'static str> {
    let known =
        [("dashpot serve", "8080"), ("dashpot proxy", "8090"), ("python3 -m http.server", "3000")];
    let port = known.iter().find(|(start, _)| line.starts_with(start)).map(|(_, port)| *port);
    assert!(port.is_some() || !line.ends_with('&'), "who is this: {line}");
    port
}

/// As in `rules=examples/rules.toml`.
fn is_assignment(command: &str) -> bool {
    let name = command.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty()
        && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
        && !command.contains(' ')
}

#[test]
fn ports_are_others() {
    let mut stage = Stage::new();
    stage.ports = vec![("8080", 18_000), ("3000", 30_001), ("8000", 30_005), ("6379", 30_000)];
    let text = "127.0.0.1:8080 redis://redis:6379 3000/min 80800 -p 8000";
    let here = "127.0.0.1:18000 redis://127.0.0.1:30000 3000/min 80800 -p 30005";
    assert_eq!(stage.here(text), here);
    assert_eq!(stage.there("on 127.0.0.1:30005 and :18000"), "on 127.0.0.1:8000 and :8080");
    assert!(stage.has("docs/rules.md"));
}
