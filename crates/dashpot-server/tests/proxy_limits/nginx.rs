//! nginx, as Debian has it, in front of a backend.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::thread;

use dashpot_testkit::process::{TemporaryDirectory, free_port, start, until};

use crate::backend::Backend;
use crate::caller::{Caller, PATIENCE};
use crate::tools::of_the_system;

pub(crate) struct Nginx {
    process: Child,
    pub(crate) address: SocketAddr,
    // Last: the process is gone when it is removed.
    directory: TemporaryDirectory,
}

impl Nginx {
    /// With these lines in `http`, and these in `server`, where `PASS` hands on to the backend.
    pub(crate) fn start(backend: &Backend, http: &str, server: &str) -> Self {
        // Between being found free and being used, a port may be taken: then another.
        let started = (0..5).find_map(|_| Self::try_start(backend, http, server));
        started.expect("nginx starts")
    }

    fn try_start(backend: &Backend, http: &str, server: &str) -> Option<Self> {
        let directory = TemporaryDirectory::new();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let place = |name: &str| directory.path().join(name).display().to_string();
        let pass = format!("proxy_pass {};", backend.url());
        let mut text = format!("pid {};\nevents {{ worker_connections 512; }}\n", place("pid"));
        text += "http {\naccess_log off;\n";
        // The places for files that were compiled in are root's.
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            text += &format!("{kind}_temp_path {};\n", place(kind));
        }
        text += &format!("{http}\nserver {{\nlisten {address};\nserver_name localhost;\n");
        text += &format!("location = /ready {{ return 200; }}\n{server}\n}}\n}}\n");
        fs::write(directory.path().join("nginx.conf"), text.replace("PASS", &pass)).unwrap();
        let process = start(&of_the_system("nginx"), |command| {
            // One process, so that there is nobody else to be killed.
            command.args(["-e", "stderr", "-c", &place("nginx.conf"), "-p", &place("")]);
            command.args(["-g", "daemon off; master_process off;"]);
            let log = File::create(directory.path().join("log")).unwrap();
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        });
        let mut nginx = Self { process, address, directory };
        let is_ready = until("nginx to listen", PATIENCE, || {
            if std::net::TcpStream::connect(address).is_ok() {
                return Some(true);
            }
            nginx.process.try_wait().unwrap().map(|_| false)
        });
        let is_ready = is_ready && Caller::to(address).get("/ready").status == 200;
        if !is_ready {
            nginx.show();
        }
        is_ready.then_some(nginx)
    }

    fn show(&self) {
        let told = fs::read_to_string(self.directory.path().join("log")).unwrap_or_default();
        eprintln!("---- nginx ----\n{told}");
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            self.show();
        }
    }
}
