//! `dashpot serve`, as others start it.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{await_stopped, signal, start};

/// How long a program may take to be ready.
pub(crate) const START: Duration = Duration::from_secs(30);

pub(crate) struct Service {
    process: Child,
    address: String,
    grpc: String,
    log: PathBuf,
}

#[allow(dead_code, reason = "not every test needs all of it")]
impl Service {
    /// Waits until it listens. Its rules and its log are files of the directory.
    pub(crate) fn start(directory: &Path, rules: &str, arguments: &[&str]) -> Self {
        let service = Self::launch(directory, rules, arguments);
        service.unwrap_or_else(|| panic!("`dashpot serve` does not say `listening on http://…`"))
    }

    /// The same, or nothing if it ends before it listens: a port may have been taken.
    pub(crate) fn launch(directory: &Path, rules: &str, arguments: &[&str]) -> Option<Self> {
        let file = directory.join("dashpot.toml");
        fs::write(&file, rules).unwrap();
        let log = directory.join("dashpot.log");
        let mut process = start(env!("CARGO_BIN_EXE_dashpot"), |command| {
            // Every flag can be said by the environment, and that of the test is not meant.
            for (name, _) in env::vars_os() {
                if name.to_string_lossy().starts_with("DASHPOT_") {
                    command.env_remove(name);
                }
            }
            // Many serve at once.
            command
                .env("DASHPOT_GRPC_LISTEN", "127.0.0.1:0")
                .env("DASHPOT_RESP_LISTEN", "127.0.0.1:0")
                .args(["serve", "--listen", "127.0.0.1:0", "--config"])
                .arg(&file)
                .args(arguments);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command.stderr(File::create(&log).unwrap());
        });
        let (sender, told) = mpsc::channel();
        let output = process.stdout.take().unwrap();
        thread::spawn(move || {
            // Reads on to the end, so that it never waits for somebody to read.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        let mut service = Self { process, address: String::new(), grpc: String::new(), log };
        let by_grpc = arguments.contains(&"--grpc-listen");
        while service.address.is_empty() || (by_grpc && service.grpc.is_empty()) {
            let Ok(line) = told.recv_timeout(START) else {
                service.show();
                return None;
            };
            if let Some((_, address)) = line.split_once("listening on http") {
                service.address = address.trim_start_matches(['s', ':', '/']).trim().to_owned();
            }
            if let Some((_, address)) = line.split_once("gRPC on ") {
                service.grpc = address.trim().to_owned();
            }
        }
        Some(service)
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    pub(crate) fn port(&self) -> u16 {
        port(&self.address)
    }

    /// Where it is asked by gRPC, if the arguments say so.
    pub(crate) fn grpc_port(&self) -> u16 {
        port(&self.grpc)
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// It is there, and answers no more.
    pub(crate) fn hang(&self) {
        signal(self.id(), "STOP");
        await_stopped(self.id(), true);
    }

    /// It goes on.
    pub(crate) fn resume(&self) {
        signal(self.id(), "CONT");
        await_stopped(self.id(), false);
    }

    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }

    /// What it logged, for whoever looks at a test that failed.
    fn show(&self) {
        let told = fs::read_to_string(&self.log).unwrap_or_default();
        eprintln!("---- dashpot serve ----\n{told}");
    }
}

#[allow(dead_code, reason = "not every test needs it")]
fn port(address: &str) -> u16 {
    let (_, port) = address.rsplit_once(':').unwrap();
    port.parse().unwrap()
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            self.show();
        }
    }
}
