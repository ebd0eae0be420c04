//! `dashpot proxy`, started and ended.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use dashpot_testkit::process::{signal, until};

use crate::backend::Backend;
use crate::caller::{Answer, Caller, PATIENCE};
use crate::home::Home;

/// Ports of its own, since many run at once.
pub(crate) const PORTS: [&str; 4] = ["--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"];

/// One that runs. It is killed when it is dropped.
pub(crate) struct Proxy {
    child: Child,
    pub(crate) address: SocketAddr,
    admin: Option<SocketAddr>,
    stdout: Arc<Mutex<String>>,
    // Last: the process is gone when it is removed.
    pub(crate) home: Home,
}

impl Proxy {
    /// In front of a backend, with these flags.
    pub(crate) fn start(backend: &Backend, arguments: &[&str]) -> Self {
        let url = backend.url();
        let all = [&["proxy", "--upstream", &url], &PORTS[..], arguments].concat();
        Self::run(Home::new(), &all, |_| {})
    }

    /// In front of a backend, by these rules.
    pub(crate) fn by(backend: &Backend, rules: &str) -> Self {
        Self::with(backend, rules, &[])
    }

    pub(crate) fn with(backend: &Backend, rules: &str, arguments: &[&str]) -> Self {
        let home = Home::new();
        home.write("rules.toml", rules);
        let url = backend.url();
        let rules = ["proxy", "--config", "rules.toml", "--upstream", &url];
        Self::run(home, &[&rules, &PORTS[..], arguments].concat(), |_| {})
    }

    /// With exactly these arguments.
    pub(crate) fn run(home: Home, arguments: &[&str], prepare: impl FnOnce(&mut Command)) -> Self {
        let mut child = home.spawn(arguments, prepare);
        let stdout = Arc::default();
        gather(child.stdout.take().unwrap(), &stdout);
        let address = SocketAddr::from(([0; 4], 0));
        let mut proxy = Self { child, address, admin: None, stdout, home };
        // What it prints last is the command to try.
        until("the proxy to listen", PATIENCE, || {
            let ended = proxy.child.try_wait().unwrap();
            assert!(ended.is_none(), "it ends: {ended:?}");
            proxy.stdout().contains("  curl ").then_some(())
        });
        let told = proxy.stdout();
        let of = |start: &str| {
            let line = told.lines().find_map(|line| line.strip_prefix(start))?;
            line.split("://").nth(1)?.split(' ').next()?.parse().ok()
        };
        proxy.address = of("proxy on ").unwrap_or_else(|| panic!("no `proxy on`: {told}"));
        proxy.admin = of("listening on ");
        proxy
    }

    pub(crate) fn caller(&self) -> Caller {
        Caller::to(self.address)
    }

    /// One that connects from 127.0.0.`last`.
    pub(crate) fn caller_from(&self, last: u8) -> Caller {
        Caller::from(last, self.address)
    }

    /// The statuses of so many requests, one after another.
    #[track_caller]
    pub(crate) fn statuses(&self, path: &str, lines: &[&str], count: usize) -> Vec<u16> {
        let mut caller = self.caller();
        (0..count).map(|_| caller.ask("GET", path, lines, "").status).collect()
    }

    #[track_caller]
    pub(crate) fn get(&self, path: &str) -> Answer {
        self.caller().get(path)
    }

    #[track_caller]
    pub(crate) fn admin(&self) -> SocketAddr {
        self.admin.unwrap_or_else(|| panic!("no admin port: {}", self.stdout()))
    }

    pub(crate) fn has_admin(&self) -> bool {
        self.admin.is_some()
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin())
    }

    #[track_caller]
    pub(crate) fn admin_get(&self, path: &str) -> Answer {
        Caller::to(self.admin()).get(path)
    }

    #[track_caller]
    pub(crate) fn admin_post(&self, path: &str, body: &str) -> Answer {
        Caller::to(self.admin()).ask("POST", path, &["content-type: application/json"], body)
    }

    /// What `/metrics` says of a series, by its name and labels, in any order; 0 if it is not there.
    #[track_caller]
    pub(crate) fn metric(&self, series: &str) -> f64 {
        let told = self.admin_get("/metrics").text();
        let wanted = sorted(series);
        let line = told.lines().find_map(|line| {
            let (name, value) = line.rsplit_once(' ')?;
            (!line.starts_with('#') && sorted(name) == wanted).then_some(value)
        });
        line.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits until a series has this value.
    #[track_caller]
    pub(crate) fn await_metric(&self, series: &str, value: f64) {
        let mut last = 0.0;
        let reached = (0..2000).any(|_| {
            last = self.metric(series);
            if last != value {
                thread::sleep(Duration::from_millis(5));
            }
            last == value
        });
        assert!(reached, "{series} is {last}, and not {value}");
    }

    /// Waits until so many wait for their turn.
    #[track_caller]
    pub(crate) fn await_queued(&self, count: usize) {
        self.await_metric("dashpot_queued", count as f64);
    }

    pub(crate) fn stdout(&self) -> String {
        self.stdout.lock().unwrap().clone()
    }

    pub(crate) fn log(&self) -> String {
        self.home.read("stderr")
    }

    pub(crate) fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// How it ends.
    #[track_caller]
    pub(crate) fn end(&mut self) -> ExitStatus {
        until("it to end", PATIENCE, || self.child.try_wait().unwrap())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            eprintln!("---- dashpot proxy ----\n{}{}", self.stdout(), self.log());
        }
    }
}

/// A series with its labels in one order.
fn sorted(series: &str) -> (String, Vec<String>) {
    let (name, labels) = series.split_once('{').unwrap_or((series, ""));
    let labels = labels.trim_end_matches('}').split(',').filter(|label| !label.is_empty());
    let mut labels: Vec<String> = labels.map(str::to_owned).collect();
    labels.sort();
    (name.to_owned(), labels)
}

/// Keeps what it writes, so that it never waits for a reader.
fn gather(from: ChildStdout, to: &Arc<Mutex<String>>) {
    let to = Arc::clone(to);
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            *to.lock().unwrap() += &format!("{line}\n");
        }
    });
}
