//! A caller, a gateway, dashpot and an application, each a program of its own.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{self, TemporaryDirectory, await_stopped, free_port, signal, until};

use crate::app::{App, Seen};
use crate::client::{Answer, Caller};
use crate::page::with_ports;
use crate::service::{START, Service};

/// Where a gateway finds its files, and which ports it is to use.
pub(crate) struct Place<'a> {
    directory: &'a Path,
    ports: [(&'static str, u16); 3],
}

impl Place<'_> {
    pub(crate) fn path(&self, name: &str) -> String {
        self.directory.join(name).into_os_string().into_string().unwrap()
    }

    /// Writes a file of the documentation, with ports that are free.
    pub(crate) fn write(&self, name: &str, text: &str) -> String {
        fs::write(self.directory.join(name), with_ports(text, self.ports)).unwrap();
        self.path(name)
    }
}

/// The fields are dropped in this order.
pub(crate) struct Scene {
    gateway: Gateway,
    pub(crate) service: Service,
    app: App,
    _directory: TemporaryDirectory,
}

struct Gateway {
    process: Child,
    port: u16,
    log: PathBuf,
}

/// Who asks whether a gateway is ready; no test does it by this address.
const NOBODY: Caller = Caller(99);

impl Scene {
    /// Starts everything; `prepare` writes the gateway's files and says how to run it.
    pub(crate) fn start(
        rules: &str,
        program: &str,
        prepare: impl Fn(&Place<'_>, &mut Command),
    ) -> Self {
        let directory = TemporaryDirectory::new();
        let app = App::start();
        let service = Service::start(directory.path(), rules, &[]);
        let (_, service_port) = service.address().rsplit_once(':').unwrap();
        let service_port = service_port.parse().unwrap();

        // Between being found free and being used, a port may be taken: then another.
        let gateway = (0..5).find_map(|_| {
            let port = free_port();
            let ports = [("8000", port), ("8080", service_port), ("3000", app.port())];
            let place = Place { directory: directory.path(), ports };
            Gateway::start(port, &place, program, &prepare)
        });
        let gateway = gateway.expect("the gateway starts");
        let scene = Self { gateway, service, app, _directory: directory };
        scene.app.seen();
        scene
    }

    pub(crate) fn ask(&self, caller: Caller, first: &str, lines: &[&str]) -> Answer {
        self.tell(caller, first, lines, "")
    }

    pub(crate) fn tell(&self, caller: Caller, first: &str, lines: &[&str], body: &str) -> Answer {
        let answer = caller.send(self.gateway.port, first, lines, body);
        answer.unwrap_or_else(|| panic!("no answer to {first} {lines:?}"))
    }

    pub(crate) fn get(&self, caller: Caller, target: &str) -> Answer {
        self.ask(caller, &format!("GET {target}"), &[])
    }

    /// What reached the application since it was asked last.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.app.seen()
    }

    /// Dashpot is there, and answers no more.
    pub(crate) fn hang(&self) {
        signal(self.service.id(), "STOP");
        await_stopped(self.service.id(), true);
    }
}

impl Gateway {
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
