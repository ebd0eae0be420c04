//! nginx, as Debian has it.

use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use crate::process::{TemporaryDirectory, free_port, of_the_system, start, until};

/// Longer than this it does not take to start.
const PATIENCE: Duration = Duration::from_secs(20);

/// A real nginx, which is killed when it is dropped.
#[derive(Debug)]
pub struct Nginx {
    process: Child,
    address: SocketAddr,
    // Last: the process is gone when it is removed.
    directory: TemporaryDirectory,
}

impl Nginx {
    /// With these lines in `http`, and these in `server`. `DIRECTORY` in them is a directory of its own.
    pub fn start(http: &str, server: &str) -> Self {
        // Between being found free and being used, a port may be taken: then another.
        let started = (0..5).find_map(|_| Self::try_start(http, server));
        started.expect("nginx starts")
    }

    fn try_start(http: &str, server: &str) -> Option<Self> {
        let directory = TemporaryDirectory::new();
        let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
        let place = |name: &str| directory.path().join(name).display().to_string();
        let mut text =
            format!("pid {};\nevents {{ worker_connections 512; }}\nhttp {{\n", place("pid"));
        // The places for files that were compiled in are root's.
        for kind in ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"] {
            text += &format!("{kind}_temp_path {};\n", place(kind));
        }
        text +=
            &format!("{http}\nserver {{\nlisten {address};\nserver_name localhost;\n{server}\n");
        text += "location = /ready { access_log off; return 200 DIRECTORY; }\n}\n}\n";
        let text = text.replace("DIRECTORY", &directory.path().display().to_string());
        fs::write(directory.path().join("nginx.conf"), text).expect("a file");
        let process = start(&of_the_system("nginx"), |command| {
            // One process, so that there is nobody else to be killed.
            command.args(["-e", "stderr", "-c", &place("nginx.conf"), "-p", &place("")]);
            command.args(["-g", "daemon off; master_process off;"]);
            let log = File::create(directory.path().join("log")).expect("a file");
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        });
        let mut nginx = Self { process, address, directory };
        let is_ready = until("nginx to listen", PATIENCE, || {
            if nginx.is_ready() {
                return Some(true);
            }
            nginx.process.try_wait().expect("a process of ours").map(|_| false)
        });
        if !is_ready {
            nginx.show();
        }
        is_ready.then_some(nginx)
    }

    /// Whether it is this one that answers there, and not somebody else who took the port.
    fn is_ready(&self) -> bool {
        let answer = || {
            let mut stream = TcpStream::connect(self.address)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.write_all(b"GET /ready HTTP/1.0\r\n\r\n")?;
            io::read_to_string(stream)
        };
        let own = self.directory.path().display().to_string();
        answer().is_ok_and(|answer| answer.ends_with(&own))
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The directory of its own.
    pub fn directory(&self) -> &Path {
        self.directory.path()
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
