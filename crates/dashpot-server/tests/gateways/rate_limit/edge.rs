//! Callers, one Envoy or more, one dashpot or more, and an application.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dashpot_testkit::process::{TemporaryDirectory, free_port, until};

use super::plan::Plan;
use crate::app::App;
use crate::client::{Answer, Caller};
use crate::envoy;
use crate::gateway::Gateway;
use crate::service::Service;
use crate::tools::installed;

pub(super) const ALICE: Caller = Caller(2);
pub(super) const BOB: Caller = Caller(3);
pub(super) const CAROL: Caller = Caller(4);

pub(super) const MINUTE: u64 = 60;
pub(super) const DAY: u64 = 86_400;

/// How long a change may take to be noticed, on a machine that has other things to do.
pub(super) const NOTICED: Duration = Duration::from_secs(15);

/// The ports of the documentation for dashpots.
const PORTS: [&str; 2] = ["8081", "8082"];

/// The fields are dropped in this order.
pub(super) struct Edge {
    gateways: Vec<Gateway>,
    pub(super) services: Vec<Service>,
    app: App,
    plan: Plan,
    directory: TemporaryDirectory,
}

impl Edge {
    pub(super) fn start(plan: Plan) -> Self {
        let directory = TemporaryDirectory::new();
        for (name, text, _) in &plan.files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        fs::create_dir(directory.path().join("config")).unwrap();
        let app = App::start();
        let (gateways, services) = (Vec::new(), Vec::new());
        let mut edge = Self { gateways, services, app, plan, directory };
        edge.write(&edge.plan.yaml);
        for nth in 0..edge.plan.dashpots {
            fs::create_dir(edge.directory.path().join(format!("dashpot-{nth}"))).unwrap();
            // Between being found free and being used, a port may be taken: then another.
            let service = (0..5).find_map(|_| edge.launch(nth, free_port()));
            edge.services.push(service.expect("dashpot starts"));
        }
        let asked =
            edge.services.iter().zip(PORTS).map(|(service, port)| (port, service.grpc_port()));
        let ports: Vec<_> = asked.chain([("3000", edge.app.port())]).collect();
        for (nth, configuration) in edge.plan.envoys.iter().enumerate() {
            let home = edge.directory.path().join(format!("envoy-{nth}"));
            fs::create_dir(&home).unwrap();
            let prepare = envoy::with(configuration);
            edge.gateways.push(Gateway::launch(&home, &ports, &installed("envoy"), prepare));
        }
        edge.app.seen();
        edge
    }

    fn launch(&self, nth: usize, port: u16) -> Option<Service> {
        let home = self.directory.path().join(format!("dashpot-{nth}"));
        let place = |name| self.directory.path().join(name).into_os_string().into_string().unwrap();
        let mut flags = vec!["--grpc-listen".to_owned(), format!("127.0.0.1:{port}")];
        flags.extend(["--envoy-config".to_owned(), place("config")]);
        for (name, _, flag) in &self.plan.files {
            flags.extend(flag.map(|flag| [flag.to_owned(), place(name)]).into_iter().flatten());
        }
        flags.extend(self.plan.flags.clone());
        let flags: Vec<_> = flags.iter().map(String::as_str).collect();
        Service::launch(&home, &self.plan.rules, &flags)
    }

    /// A dashpot that was killed comes back where it was.
    pub(super) fn restart(&mut self, nth: usize) {
        let port = self.services[nth].grpc_port();
        self.services[nth] = until("its port to be free", NOTICED, || self.launch(nth, port));
    }

    /// Puts a file in the place of that which dashpot reads.
    pub(super) fn write(&self, yaml: &str) {
        self.write_as("edge.yaml", yaml);
    }

    /// The same by another name; nobody ever sees half of it.
    pub(super) fn write_as(&self, name: &str, yaml: &str) {
        let new = self.directory.path().join("new");
        fs::write(&new, yaml).unwrap();
        fs::rename(&new, self.config(name)).unwrap();
    }

    pub(super) fn config(&self, name: &str) -> PathBuf {
        self.directory.path().join("config").join(name)
    }

    /// What a caller is told who comes with these lines, by the first Envoy.
    pub(super) fn ask(&self, caller: Caller, lines: &[&str]) -> Answer {
        self.ask_at(0, caller, lines)
    }

    pub(super) fn ask_at(&self, gateway: usize, caller: Caller, lines: &[&str]) -> Answer {
        let answer = caller.send(self.gateways[gateway].port(), "GET /", lines, "");
        answer.unwrap_or_else(|| panic!("no answer to {lines:?}"))
    }

    /// So many pass and reach the application, and one does not. The answers are returned.
    pub(super) fn exhaust(&self, caller: Caller, lines: &[&str], limit: usize) -> Vec<Answer> {
        self.seen();
        let mut answers: Vec<_> = (0..limit).map(|_| self.passes(caller, lines)).collect();
        answers.push(self.is_denied(caller, lines));
        assert_eq!(self.seen(), limit, "{lines:?}");
        answers
    }

    pub(super) fn passes(&self, caller: Caller, lines: &[&str]) -> Answer {
        let answer = self.ask(caller, lines);
        assert_eq!(answer.status, 200, "{lines:?}: {answer:?}");
        assert_eq!(answer.body, "the application's own");
        answer
    }

    pub(super) fn is_denied(&self, caller: Caller, lines: &[&str]) -> Answer {
        let answer = self.ask(caller, lines);
        assert_eq!(answer.status, 429, "{lines:?}: {answer:?}");
        assert_eq!(answer.field("x-envoy-ratelimited"), Some("true"), "{answer:?}");
        answer
    }

    /// How many reached the application since it was asked last.
    pub(super) fn seen(&self) -> usize {
        self.app.seen().len()
    }

    /// What a dashpot says over HTTP, without Envoy.
    pub(super) fn http(&self, nth: usize, first: &str, body: &str) -> Option<Answer> {
        Caller(1).send(self.services[nth].port(), first, &[], body)
    }

    /// The sum of a metric's values of one rule; `_total` need not be said.
    pub(super) fn metric(&self, nth: usize, name: &str, rule: &str) -> Option<f64> {
        let told = self.http(nth, "GET /metrics", "")?.body;
        let rule = format!("rule=\"{rule}\"");
        let lines = told.lines().filter(|line| line.starts_with(name) && line.contains(&rule));
        Some(lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum())
    }

    /// Whether a dashpot says that its store is up.
    pub(super) fn store_is_up(&self, nth: usize) -> Option<bool> {
        let told = self.http(nth, "GET /v1/health", "")?.body;
        let health: serde_json::Value = serde_json::from_str(&told).ok()?;
        health["up"].as_bool()
    }

    /// Waits until all of them say so.
    pub(super) fn await_store(&self) {
        for nth in 0..self.services.len() {
            until("the store to be up", NOTICED, || self.store_is_up(nth)?.then_some(()));
        }
    }
}

/// Waits, if need be, until so much of the clock's window is left that no test sees its end.
pub(super) fn begin_in(window: u64) {
    const ENOUGH: u64 = 25;
    until("the next window", Duration::from_secs(ENOUGH + 5), || {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        (window - now.as_secs() % window >= ENOUGH).then_some(())
    });
}
