//! A reader of the access log that does not keep up slows nobody down.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::backend::Backend;
use crate::caller::Caller;
use crate::home::Home;
use crate::proxy::PORTS;

fn metric(admin: SocketAddr, series: &str) -> u64 {
    let told = Caller::to(admin).get("/metrics").text();
    let value = told.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    value.map_or(0, |value| value.parse::<f64>().unwrap() as u64)
}

#[test]
fn lines_are_left_out_and_counted() {
    let backend = Backend::start();
    let home = Home::new();
    let url = backend.url();
    let flags = [&["proxy", "--upstream", &url, "--access-log", "-"], &PORTS[..]].concat();
    let mut child = home.spawn(&flags, |_| {});
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let (mut own, mut admin) = (None, None);
    let mut line = String::new();
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
    // From here on, nobody reads.
    let (own, admin): (SocketAddr, SocketAddr) = (own.unwrap(), admin.unwrap());
    let (mut caller, begun) = (Caller::to(own), Instant::now());
    let (path, mut asked) = (format!("/{}", "p".repeat(30_000)), 0_u64);
    let dropped = "dashpot_access_log_dropped_total";
    while metric(admin, dropped) < 50 {
        for _ in 0..200 {
            let before = Instant::now();
            assert_eq!(caller.get(&path).status, 200);
            let took = before.elapsed();
            assert!(took < Duration::from_secs(2), "a request took {took:?}");
            asked += 1;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "none of {asked} lines is left out");
    }
    // Now somebody reads again: those that were not left out are all there, whole, and new ones come.
    let left_out = metric(admin, dropped);
    let (lines, read) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let _ = lines.send(line);
        }
    });
    for _ in 0..asked - left_out {
        let mut line = read.recv_timeout(Duration::from_secs(10)).expect("a line that was kept");
        if line.is_empty() {
            line = read.recv_timeout(Duration::from_secs(10)).expect("the one after");
        }
        assert!(line.contains(&format!(" GET {path} HTTP/1.1 200 5 ")), "{line}");
    }
    assert_eq!(Caller::to(own).get("/again").status, 200);
    let line = read.recv_timeout(Duration::from_secs(10)).expect("a new line");
    assert!(line.contains(" GET /again HTTP/1.1 200 5 "), "{line}");
    assert_eq!(metric(admin, dropped), left_out);
    child.kill().unwrap();
    child.wait().unwrap();
}
