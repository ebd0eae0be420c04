//! A gateway, whichever it is: its files, its ports, its process.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{self, free_port, until};

use crate::client::Caller;
use crate::page::with_ports;
use crate::service::START;

/// Where a gateway finds its files, and which ports it is to use.
pub(crate) struct Place<'a> {
    directory: &'a Path,
    ports: Vec<(&'static str, u16)>,
}

impl Place<'_> {
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).into_os_string().into_string().unwrap()
    }

    /// Writes a file of the documentation, with ports that are free.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.directory.join(name), with_ports(text, &self.ports)).unwrap();
        self.path(name)
    }
}

pub(crate) struct Gateway {
    process: Child,
    port: u16,
    log: PathBuf,
}

/// Who asks whether a gateway is ready; no test does it by this address.
const NOBODY: Caller = Caller(99);

impl Gateway {
    /// Starts one; `ports` are those of the documentation but its own, each with the one to use
    /// instead, and `prepare` writes its files and says how to run it.
    pub(crate) fn launch(
        directory: &Path,
        ports: &[(&'static str, u16)],
        program: &str,
        prepare: impl Fn(&Place<'_>, &mut Command),
    ) -> Self {
        // Between being found free and being used, a port may be taken: then another.
        let gateway = (0..5).find_map(|_| {
            let port = free_port();
            let ports = [&[("8000", port)], ports].concat();
            Self::start(port, &Place { directory, ports }, program, &prepare)
        });
        gateway.expect("the gateway starts")
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    fn start(
        port: u16,
        place: &Place<'_>,
        program: &str,
        prepare: impl Fn(&Place<'_>, &mut Command),
    ) -> Option<Self> {
        let log = place.directory.join("gateway.log");
        let process = process::start(program, |command| {
            prepare(place, command);
            let file = File::create(&log).unwrap();
            command.current_dir(place.directory).stdin(Stdio::null());
            command.stdout(file.try_clone().unwrap()).stderr(file);
        });
        let mut gateway = Self { process, port, log };
        let ready = until("the gateway to be ready", START, || {
            // It is no good before all of it is read, so to listen is not enough.
            match NOBODY.send(port, "GET /ready", &[], "") {
                Some(answer) if answer.status == 200 => Some(true),
                _ => {
                    thread::sleep(Duration::from_millis(20));
                    gateway.process.try_wait().unwrap().map(|_| false)
                }
            }
        });
        if !ready {
            gateway.show();
        }
        ready.then_some(gateway)
    }

    /// What it wrote, for whoever looks at a test that failed.
    fn show(&self) {
        let told = fs::read_to_string(&self.log).unwrap_or_default();
        eprintln!("---- the gateway ----\n{told}");
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        if thread::panicking() {
            self.show();
        }
    }
}
