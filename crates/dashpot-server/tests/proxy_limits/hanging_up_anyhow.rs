//! Who hangs up is noticed whatever else it has sent, and however it came.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};

use crate::backend::Backend;
use crate::caller::{get, request};
use crate::home::Home;
use crate::pace::{assert_paced, await_sum, send};
use crate::proxy::{PORTS, Proxy};

const HALF: Duration = Duration::from_millis(500);
const RULES: &str =
    "[[rule]]\nname = 'q'\nlimits = ['2/s']\nalgorithm = 'leaky-bucket'\nqueue = 5\n";

/// One leaves at once, one says this and hangs up while it waits, and the one behind it gets its place.
#[track_caller]
fn assert_noticed(said: &str) {
    let backend = Backend::start();
    let proxy = Proxy::by(&backend, RULES);
    let sent = Instant::now();
    let mut first = send(&proxy, "/first");
    backend.await_count(1);
    let mut leaver = proxy.caller();
    leaver.send(said);
    await_sum(&[&proxy], &backend, 2);
    let mut last = send(&proxy, "/last");
    await_sum(&[&proxy], &backend, 3);
    drop(leaver);
    proxy.await_queued(1);
    assert!(sent.elapsed() < HALF, "it is noticed too late: {:?}", sent.elapsed());
    assert_eq!((first.answer().status, last.answer().status), (200, 200));
    assert_eq!(backend.paths(), ["/first", "/last"]);
    assert_paced(&backend.seen(), sent, HALF, 0);
}

#[test]
fn after_a_request_without_a_body() {
    assert_noticed(&get("/leaver"));
}

#[test]
fn after_a_body() {
    assert_noticed(&request("POST", "/leaver", &[], "a small body"));
}

#[test]
fn after_a_long_body() {
    assert_noticed(&request("POST", "/leaver", &[], &"x".repeat(100_000)));
}

#[test]
fn within_a_body() {
    assert_noticed("POST /leaver HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf");
}

#[test]
fn after_chunks() {
    let head = "POST /leaver HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_noticed(&format!("{head}4\r\nsome\r\n0\r\n\r\n"));
}

#[test]
fn after_the_next_request() {
    assert_noticed(&(get("/leaver") + &get("/leaver/2")));
}

/// Permits as well: a backend that never answers would keep them for as long as it is waited for.
#[test]
fn permits_are_given_back_whatever_was_sent() {
    let backend = Backend::answering(|seen, stream| {
        if seen.path() == "/" {
            return std::io::Write::write_all(stream, &crate::backend::answer("200 OK", "ok"));
        }
        let _ = std::io::Read::read(stream, &mut [0]);
        Err(std::io::ErrorKind::ConnectionAborted.into())
    });
    let rules = "[[rule]]\nname = 'one'\nlimits = ['1 concurrent']\n";
    let proxy = Proxy::by(&backend, rules);
    for said in [
        get("/leaver"),
        request("POST", "/leaver", &[], "body"),
        get("/leaver") + &get("/leaver/2"),
    ] {
        let before = backend.count();
        let mut leaver = proxy.caller();
        leaver.send(&said);
        backend.await_count(before + 1);
        assert_eq!(proxy.get("/").status, 429);
        drop(leaver);
        let begun = Instant::now();
        while proxy.get("/").status != 200 {
            assert!(begun.elapsed() < Duration::from_secs(4), "it is kept, after {said:?}");
        }
    }
}

/// Over TLS, by a caller that loses patience.
#[test]
fn over_tls() {
    let home = Home::new();
    let key = KeyPair::generate().unwrap();
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    home.write("key.pem", &key.serialize_pem());
    home.write("certificate.pem", &certificate.pem());
    home.write("rules.toml", &RULES.replace("2/s", "1/min"));
    let backend = Backend::start();
    let url = backend.url();
    let flags = ["proxy", "--upstream", &url, "--config", "rules.toml"];
    let tls = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];
    let proxy = Proxy::run(home, &[&flags, &tls[..], &PORTS].concat(), |_| {});
    for version in ["--http1.1", "--http2"] {
        let curl = |patience: &str| {
            let mut command = Command::new("curl");
            command.args(["-sk", "-m", patience, version, "-o", "/dev/null", "-w", "%{http_code}"]);
            command.arg(format!("https://{}/", proxy.address));
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
            command.spawn().unwrap().wait_with_output().unwrap().stdout
        };
        if version == "--http1.1" {
            assert_eq!(curl("20"), b"200");
        }
        assert_eq!(curl("0.7"), b"000", "it waits");
        proxy.await_queued(0);
    }
    assert_eq!(backend.count(), 1);
}

/// To wait for its turn is no reason to be sent away, however long it takes.
#[test]
fn no_timeout_ends_a_wait() {
    let backend = Backend::start();
    let flags = [
        "--client-timeout",
        "700ms",
        "--idle-timeout",
        "700ms",
        "--response-timeout",
        "700ms",
        "--connect-timeout",
        "700ms",
    ];
    let proxy = Proxy::with(&backend, &RULES.replace("2/s", "1/2s"), &flags);
    let sent = Instant::now();
    let mut callers = Vec::new();
    for nth in 0..2 {
        callers.push(proxy.caller());
        callers[nth].send(request("POST", &format!("/{nth}"), &[], "body"));
        await_sum(&[&proxy], &backend, nth + 1);
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_paced(&backend.seen(), sent, Duration::from_secs(2), 0);
    assert_eq!(backend.seen()[1].body, b"body");
}
