//! `dashpot proxy`, started and looked at.

use std::fs;
use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::caller::Caller;
use crate::client::PATIENCE;
use crate::service::{Directory, Service, until};

pub(crate) struct Gateway {
    pub(crate) service: Service,
    pub(crate) address: SocketAddr,
    // Last: the process is gone when it is removed.
    pub(crate) home: Directory,
}

impl Gateway {
    pub(crate) fn start(upstream: SocketAddr, arguments: &[&str]) -> Self {
        Self::start_in(Directory::new(), upstream, arguments)
    }

    /// With these rules, in `rules.toml`.
    pub(crate) fn with_rules(upstream: SocketAddr, rules: &str, arguments: &[&str]) -> Self {
        let home = Directory::new();
        home.write("rules.toml", rules);
        let arguments = [&["--config", "rules.toml"], arguments].concat();
        Self::start_in(home, upstream, &arguments)
    }

    /// On ports of its own, with nothing in its environment.
    pub(crate) fn start_in(home: Directory, upstream: SocketAddr, arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dashpot"));
        command.args(["proxy", "--upstream", &format!("http://{upstream}")]);
        command.args(["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"]);
        command.args(arguments).env_clear().current_dir(home.path()).stdin(Stdio::null());
        let service = Service::run(command);
        let address = until("the gateway's address", PATIENCE, || {
            let told = service.stdout();
            let line = told.lines().find_map(|line| line.trim().strip_prefix("proxy on http"))?;
            let line = line.trim_start_matches(['s', ':', '/']);
            line.split(' ').next()?.parse().ok()
        });
        Self { service, address, home }
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::to(self.address)
    }

    /// How many sockets it has.
    pub(crate) fn sockets(&self) -> usize {
        let files = fs::read_dir(format!("/proc/{}/fd", self.service.process())).unwrap();
        let links = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    }

    /// Waits until it has no more sockets than these.
    pub(crate) fn has_sockets(&self, most: usize, bound: Duration) {
        until(&format!("no more than {most} sockets"), bound, || {
            (self.sockets() <= most).then_some(())
        });
    }

    /// Answers a plain request right, and how long that takes.
    pub(crate) fn serves(&self, path: &str) -> Duration {
        let begun = Instant::now();
        let answer = self.caller().get(path).unwrap();
        assert_eq!((answer.status(), answer.text()), (200, format!("GET {path}")));
        begun.elapsed()
    }

    /// It runs, and never panicked.
    pub(crate) fn is_well(&mut self) {
        assert!(self.service.runs());
        assert!(!self.service.log().contains("panicked"), "{}", self.service.log());
    }
}
