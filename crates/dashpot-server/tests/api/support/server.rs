//! `dashpot serve`, started for a test and ended with it.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::{env, process, thread};

use serde_json::Value;

use super::{Answer, Client, PATIENCE, until};

/// A running service with a directory of its own, where its rules are.
pub(crate) struct Server {
    child: Child,
    directory: PathBuf,
    address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Server {
    /// Without rules.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(&[], arguments)
    }

    /// With a rule file.
    pub(crate) fn by(rules: &str) -> Self {
        Self::with(rules, &[])
    }

    /// With a rule file and flags.
    pub(crate) fn with(rules: &str, arguments: &[&str]) -> Self {
        Self::start_with(&[("dashpot.toml", rules)], arguments)
    }

    /// With files beside it, of which `dashpot.toml` is found by itself.
    pub(crate) fn start_with(files: &[(&str, &str)], arguments: &[&str]) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let started = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let directory = directory.join(format!("api-{}-{started}", process::id()));
        fs::create_dir_all(&directory).unwrap();
        for (name, text) in files {
            fs::write(directory.join(name), text).unwrap();
        }
        let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
        for (name, _) in env::vars_os() {
            if name.to_string_lossy().starts_with("DASHPOT_") {
                command.env_remove(name);
            }
        }
        // Many serve at once.
        command.env("DASHPOT_GRPC_LISTEN", "127.0.0.1:0").env("DASHPOT_RESP_LISTEN", "127.0.0.1:0");
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(arguments);
        command.current_dir(&directory).stdin(Stdio::null());
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

        let log = Arc::new(Mutex::new(String::new()));
        let (tell, told) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || out.lines().map_while(Result::ok).for_each(|l| drop(tell.send(l))));
        let (err, to) = (BufReader::new(child.stderr.take().unwrap()), Arc::clone(&log));
        thread::spawn(move || {
            for line in err.lines().map_while(Result::ok) {
                *to.lock().unwrap() += &format!("{line}\n");
            }
        });
        let unknown = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut server = Self { child, directory, address: unknown, log };
        server.address = loop {
            let line = told.recv_timeout(PATIENCE).expect("it never said where it listens");
            if let Some(address) = line.strip_prefix("listening on http://") {
                break address.parse().unwrap();
            }
        };
        server
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn client(&self) -> Client {
        Client::connect(self.address)
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.client().get(path)
    }

    #[track_caller]
    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.client().post(path, body)
    }

    #[track_caller]
    pub(crate) fn check(&self, body: &Value) -> Answer {
        self.client().check(body)
    }

    /// Asks by the rules.
    #[track_caller]
    pub(crate) fn request(&self, request: &Value) -> Answer {
        self.check(&serde_json::json!({ "request": request }))
    }

    #[track_caller]
    pub(crate) fn settle(&self, reservation: &str, used: u64) -> Answer {
        let body = serde_json::json!({ "reservation": reservation, "used": used });
        self.post("/v1/settle", &body)
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.client().ask(method, path, headers, b"")
    }

    /// Replaces a file beside it.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let new = self.directory.join("new");
        fs::write(&new, text).unwrap();
        fs::rename(new, self.directory.join(name)).unwrap();
    }

    /// All it has logged until now.
    pub(crate) fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits for a line in the log, which another thread of the server may write.
    pub(crate) fn until_log(&self, has: &str) {
        until(&format!("`{has}` in the log"), || self.log().contains(has));
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    /// Waits until it ends by itself.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let mut status = None;
        until("the end of the server", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.directory);
        if thread::panicking() {
            eprintln!("the server's log:\n{}", self.log());
        }
    }
}
