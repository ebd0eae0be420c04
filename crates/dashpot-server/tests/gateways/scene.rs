//! A caller, a gateway, dashpot and an application, each a program of its own.

use std::process::Command;

use dashpot_testkit::process::TemporaryDirectory;

use crate::app::{App, Seen};
use crate::client::{Answer, Caller};
use crate::gateway::{Gateway, Place};
use crate::service::Service;

/// The fields are dropped in this order.
pub(crate) struct Scene {
    gateway: Gateway,
    pub(crate) service: Service,
    app: App,
    _directory: TemporaryDirectory,
}

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
        let ports = [("8080", service.port()), ("3000", app.port())];
        let gateway = Gateway::launch(directory.path(), &ports, program, prepare);
        let scene = Self { gateway, service, app, _directory: directory };
        scene.app.seen();
        scene
    }

    pub(crate) fn ask(&self, caller: Caller, first: &str, lines: &[&str]) -> Answer {
        self.tell(caller, first, lines, "")
    }

    pub(crate) fn tell(&self, caller: Caller, first: &str, lines: &[&str], body: &str) -> Answer {
        let answer = caller.send(self.gateway.port(), first, lines, body);
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
        self.service.hang();
    }
}
