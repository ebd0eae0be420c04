//! What is kept and what is read again: across restarts, and while it runs.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use crate::backend::Backend;
use crate::caller::PATIENCE;
use crate::home::Home;
use crate::pace::{assert_paced, wait_in_line};
use crate::proxy::{PORTS, Proxy};

#[test]
fn counts_outlive_a_restart_if_there_is_a_file_for_them() {
    let backend = Backend::start();
    let (outside, url) = (Home::new(), backend.url());
    let file = outside.file("state").display().to_string();
    let flags = ["proxy", "--upstream", &url, "--limit", "3/day", "--state-file", &file];
    let flags = [&flags[..], &["--drain-delay", "0s"], &PORTS].concat();
    let mut proxy = Proxy::run(Home::new(), &flags, |_| {});
    assert_eq!(proxy.statuses("/", &[], 2), [200, 200]);
    proxy.signal("TERM");
    assert_eq!(proxy.end().code(), Some(0));
    let proxy = Proxy::run(Home::new(), &flags, |_| {});
    assert_eq!(proxy.statuses("/", &[], 2), [200, 429]);
}

#[test]
fn a_signal_reads_the_rules_again() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'all'\nlimits = ['1/day']\n";
    let proxy = Proxy::by(&backend, rules);
    assert_eq!(proxy.statuses("/", &[], 2), [200, 429]);
    proxy.home.write("rules.toml", &rules.replace('1', "2"));
    proxy.signal("HUP");
    until("the new rules", PATIENCE, || (proxy.get("/").status == 200).then_some(()));
    assert_eq!(proxy.get("/").status, 429);
}

/// Where it listens and to whom it passes on takes a restart, and it says so.
#[test]
fn where_it_passes_on_takes_a_restart() {
    let (backend, other) = (Backend::start(), Backend::start());
    let home = Home::new();
    let rules = |backend: &Backend| {
        format!(
            "[proxy]\nupstream = '{}'\nlisten = '127.0.0.1:0'\nadmin_listen = '127.0.0.1:0'\n",
            backend.url()
        )
    };
    home.write("dashpot.toml", &rules(&backend));
    let proxy = Proxy::run(home, &["proxy"], |_| {});
    assert_eq!(proxy.get("/").status, 200);
    let before = proxy.log();
    proxy.home.write("dashpot.toml", &rules(&other));
    until("the log to say so", PATIENCE, || {
        let log = proxy.log();
        log[before.len()..].contains("restart").then_some(())
    });
    assert_eq!(proxy.get("/").status, 200);
    assert_eq!((backend.count(), other.count()), (2, 0));
}

/// What is under way goes on.
#[test]
fn who_waits_is_served_though_the_rules_change() {
    let backend = Backend::start();
    let rules = "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 9\n";
    let proxy = Proxy::by(&backend, rules);
    let sent = Instant::now();
    let mut callers = wait_in_line(&proxy, &backend, 4);
    proxy.home.write("rules.toml", &format!("# the same\n{rules}"));
    proxy.await_metric("dashpot_reloads_total", 1.0);
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(backend.paths(), ["/0", "/1", "/2", "/3"]);
    assert_paced(&backend.seen(), sent, Duration::from_millis(500), 0);
}

#[test]
fn one_file_is_for_the_service_as_well() {
    let home = Home::new();
    home.write(
        "dashpot.toml",
        "[proxy]\nupstream = 'http://127.0.0.1:9'\nlisten = '203.0.113.1:9'\n\
         [[rule]]\nname = 'all'\nlimits = ['1/day']\n",
    );
    let mut child = home.spawn(&["serve", "--listen", "127.0.0.1:0"], |command| {
        command.env("DASHPOT_GRPC_LISTEN", "off").env("DASHPOT_RESP_LISTEN", "off");
    });
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().unwrap());
    while !line.starts_with("listening on ") {
        line.clear();
        let count = std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        assert!(count > 0, "it ends: {}", home.read("stderr"));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
