//! `dashpot serve`, as others start it.

use std::env;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::start;

/// How long a program may take to be ready.
pub(crate) const START: Duration = Duration::from_secs(30);

pub(crate) struct Service {
    process: Child,
    address: String,
    log: PathBuf,
}

impl Service {
    /// Waits until it listens. Its rules and its log are files of the directory.
    pub(crate) fn start(directory: &Path, rules: &str, arguments: &[&str]) -> Self {
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
            command
                .args(["serve", "--listen", "127.0.0.1:0", "--config"])
                .arg(&file)
                .args(arguments);
            command.stdin(Stdio::null()).stdout(Stdio::piped());
            command.stderr(File::create(&log).unwrap());
        });
        let (sender, first) = mpsc::channel();
        let output = process.stdout.take().unwrap();
        thread::spawn(move || {
            // Reads on to the end, so that it never waits for somebody to read.
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Some((_, address)) = line.split_once("listening on http://") {
                    let _ = sender.send(address.trim().to_owned());
                }
            }
        });
        let mut service = Self { process, address: String::new(), log };
        service.address = first.recv_timeout(START).unwrap_or_else(|_| {
            panic!("`dashpot serve` does not say `listening on http://…`");
        });
        service
    }

    /// `127.0.0.1:PORT`
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn id(&self) -> u32 {
        self.process.id()
    }

    #[allow(dead_code, reason = "not every test needs it")]
    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            let told = fs::read_to_string(&self.log).unwrap_or_default();
            eprintln!("---- dashpot serve ----\n{told}");
        }
    }
}
