//! A reader of the access log that does not keep up slows nobody down, and costs nobody memory.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::caller::{Caller, get};
use crate::home::Home;
use crate::proxy::PORTS;

/// One whose standard output is read up to the greeting, and then no more.
struct Unread {
    child: Child,
    own: SocketAddr,
    admin: SocketAddr,
    output: Option<BufReader<ChildStdout>>,
    // Last: the process is gone when it is removed.
    _home: Home,
}

impl Unread {
    fn start(backend: &Backend, more: &[&str]) -> Self {
        let home = Home::new();
        let url = backend.url();
        let flags = ["proxy", "--upstream", &url, "--access-log", "-"];
        let flags = [&flags[..], &PORTS, more].concat();
        let mut child = home.spawn(&flags, |_| {});
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (mut own, mut admin, mut line) = (None, None, String::new());
        while !line.contains("  curl ") {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it ends");
            let address = || line.split("://").nth(1)?.split_whitespace().next()?.parse().ok();
            if line.starts_with("proxy on ") {
                own = address();
            } else if line.starts_with("listening on ") {
                admin = address();
            }
        }
        let (own, admin, output) = (own.unwrap(), admin.unwrap(), Some(output));
        Self { child, own, admin, output, _home: home }
    }

    fn dropped(&self) -> u64 {
        let told = Caller::to(self.admin).get("/metrics").text();
        let series = "dashpot_access_log_dropped_total ";
        let value = told.lines().find_map(|line| line.strip_prefix(series));
        value.unwrap_or_else(|| panic!("{told}")).parse().unwrap()
    }

    /// Kilobytes of memory.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Asks a hundred times.
fn ask_a_hundred(caller: &mut Caller, path: &str) {
    let begun = Instant::now();
    caller.send(get(path).repeat(100));
    for _ in 0..100 {
        assert_eq!(caller.answer().status, 200);
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?} for a hundred", begun.elapsed());
}

#[test]
fn lines_are_left_out_and_counted() {
    let backend = Backend::start();
    let mut proxy = Unread::start(&backend, &[]);
    let (mut caller, path, mut asked) = (Caller::to(proxy.own), format!("/{}", "p".repeat(200)), 0);
    let begun = Instant::now();
    while proxy.dropped() < 50 {
        for _ in 0..10 {
            ask_a_hundred(&mut caller, &path);
            asked += 100;
        }
        assert!(begun.elapsed() < Duration::from_secs(40), "none of {asked} lines is left out");
    }
    // Now somebody reads again: those that were not left out are all there, whole, and new ones come.
    let left_out = proxy.dropped();
    let (lines, read) = mpsc::channel();
    let output = proxy.output.take().unwrap();
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok).filter(|line| !line.is_empty()) {
            let _ = lines.send(line);
        }
    });
    let next = || read.recv_timeout(Duration::from_secs(10)).expect("a line that was kept");
    for _ in 0..asked - left_out {
        let line = next();
        assert!(line.contains(&format!(" GET {path} HTTP/1.1 200 5 ")), "{line}");
    }
    assert_eq!(Caller::to(proxy.own).get("/again").status, 200);
    let line = next();
    assert!(line.contains(" GET /again HTTP/1.1 200 5 "), "{line}");
    assert_eq!(proxy.dropped(), left_out);
}

/// Lines that wait for a reader may be long, and are not kept without bounds for that.
#[test]
fn long_lines_do_not_fill_the_memory() {
    let backend = Backend::start();
    let proxy = Unread::start(&backend, &["--limit", "1/day"]);
    let before = proxy.memory();
    let (mut caller, path) = (Caller::to(proxy.own), format!("/{}", "p".repeat(60_000)));
    caller.get("/");
    for _ in 0..1500 {
        assert_eq!(caller.get(&path).status, 429);
    }
    let grown = proxy.memory().saturating_sub(before);
    assert!(grown < 45_000, "{grown} kB more, for 90 MB of lines that nobody reads");
}
