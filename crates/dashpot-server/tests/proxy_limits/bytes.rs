//! Charged by the bytes of the answer's body that were sent.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use crate::backend::{Backend, Seen};
use crate::caller::{PATIENCE, get};
use crate::proxy::Proxy;

/// Nothing to speak of comes back while a test runs.
const MILLION: &str = "[[rule]]\nname = 'bytes'\nby = ['ip']\nlimits = ['1M/year']\n\
                       settle = 'bytes'\n";

/// `/plain/N` has N bytes and says so before, `/chunked/N` does not, `/closed/N` ends with the connection. `/broken/N`
/// promises more than N, and ends there; `/stuck/N` as well, and goes on for ever. After that, the status.
fn by_path(seen: &Seen, stream: &mut TcpStream) -> io::Result<()> {
    let mut parts = seen.path()[1..].split('/');
    let (kind, count) = (parts.next().unwrap(), parts.next().unwrap());
    let count: usize = count.parse().map_err(io::Error::other)?;
    let status = parts.next().unwrap_or("200");
    let is_bodiless = seen.method() == "HEAD" || ["204", "304"].contains(&status);
    let body = vec![b'x'; if is_bodiless { 0 } else { count }];
    write!(stream, "HTTP/1.1 {status} So\r\n")?;
    match kind {
        "chunked" => {
            stream.write_all(b"transfer-encoding: chunked\r\n\r\n")?;
            for chunk in body.chunks(1000) {
                write!(stream, "{:x}\r\n", chunk.len())?;
                stream.write_all(chunk)?;
                stream.write_all(b"\r\n")?;
            }
            stream.write_all(b"0\r\nx-trailer: yes\r\n\r\n")
        }
        "closed" => {
            stream.write_all(b"connection: close\r\n\r\n")?;
            stream.write_all(&body)?;
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        "broken" | "stuck" => {
            write!(stream, "content-length: {}\r\n\r\n", count + 500_000)?;
            stream.write_all(&body)?;
            if kind == "stuck" {
                let mut byte = [0];
                let _ = io::Read::read(stream, &mut byte);
            }
            Err(io::ErrorKind::ConnectionAborted.into())
        }
        "none" => stream.write_all(b"\r\n"),
        _ => {
            // Of what there would be, if there is none.
            write!(stream, "content-length: {count}\r\n\r\n")?;
            stream.write_all(&body)
        }
    }
}

/// What is left: the next request tells it, and takes nothing.
fn left(proxy: &Proxy) -> u64 {
    let answer = proxy.get("/plain/0");
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.left() + 1
}

/// Waits until so much is left: an answer's end is known here before it is settled there.
#[track_caller]
fn await_left(proxy: &Proxy, expected: u64, what: &str) {
    let mut last = 0;
    let reached = (0..400).any(|_| {
        last = left(proxy);
        if last != expected {
            std::thread::sleep(Duration::from_millis(5));
        }
        last == expected
    });
    assert!(reached, "{what}: {last} are left, and not {expected}");
}

#[test]
fn every_byte_of_a_body_counts_however_it_comes() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, MILLION);
    let mut expected = 1_000_000;
    assert_eq!(left(&proxy), expected);
    for (kind, count) in [
        ("plain", 12_345),
        ("plain", 1),
        ("chunked", 23_456),
        ("chunked", 1),
        ("chunked", 0),
        ("closed", 34_567),
        ("plain", 300_000),
    ] {
        let answer = proxy.get(&format!("/{kind}/{count}"));
        assert_eq!((answer.status, answer.body.len() as u64), (200, count), "{kind}");
        expected -= count;
        await_left(&proxy, expected, kind);
    }
    // Failures have bodies, too.
    assert_eq!(proxy.get("/plain/1000/404").body.len(), 1000);
    await_left(&proxy, expected - 1000, "a failure");
}

#[test]
fn answers_without_a_body_cost_nothing() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, MILLION);
    let mut caller = proxy.caller();
    for _ in 0..5 {
        assert_eq!(caller.ask("HEAD", "/plain/5000", &[], "").status, 200);
        assert_eq!(caller.get("/plain/5000/304").status, 304);
        assert_eq!(caller.get("/none/0/204").status, 204);
    }
    await_left(&proxy, 1_000_000, "no bodies");
}

#[test]
fn a_gigabyte_is_written_as_one() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, &MILLION.replace("1M/year", "1G/day"));
    let answer = proxy.get("/plain/0");
    assert_eq!(answer.header("ratelimit-policy"), Some(r#""bytes";q=1000000000;w=86400"#));
}

/// What is charged is what the caller got, when nothing more is on its way.
#[test]
fn an_answer_that_the_caller_breaks_off_costs_what_was_sent() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, MILLION);
    let mut caller = proxy.caller();
    caller.send(get("/stuck/60000"));
    assert_eq!(caller.head().unwrap().status, 200);
    assert_eq!(caller.exactly(60_000).unwrap().len(), 60_000);
    drop(caller);
    await_left(&proxy, 940_000, "broken off by the caller");
}

/// The caller gets what came before, and pays for that.
#[test]
fn an_answer_that_the_backend_breaks_off_costs_what_was_sent() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, MILLION);
    for nth in 1..=5 {
        let mut caller = proxy.caller();
        caller.send(get("/broken/40000"));
        assert_eq!(caller.head().unwrap().status, 200);
        assert_eq!(caller.exactly(40_000).unwrap().len(), 40_000);
        assert!(caller.is_closed(), "it is seen that it is not whole");
        await_left(&proxy, 1_000_000 - nth * 40_000, "broken off by the backend");
    }
}

/// Whoever stops to read and goes has not got what the backend has.
#[test]
fn a_caller_that_goes_early_does_not_pay_for_all_of_it() {
    const ALL: usize = 64 << 20;
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, &MILLION.replace("1M/year", "100M/year"));
    let mut caller = proxy.caller();
    caller.send(get(&format!("/plain/{ALL}")));
    assert_eq!(caller.head().unwrap().status, 200);
    caller.exactly(200_000).unwrap();
    caller.reset();
    let charged = until("it to be charged", PATIENCE, || {
        let charged = 100_000_000 - left(&proxy);
        (charged > 0).then_some(charged)
    });
    assert!(charged >= 200_000, "{charged}");
    assert!(charged < ALL as u64 / 2, "{charged}: what lies in buffers is some megabytes at most");
}

#[test]
fn a_big_answer_denies_the_next_until_it_is_paid_off() {
    let backend = Backend::answering(by_path);
    let proxy = Proxy::by(&backend, &MILLION.replace("1M/year", "10000/s"));
    let sent = Instant::now();
    assert_eq!(proxy.get("/plain/18000").status, 200);
    // 8000 more than there were: at the earliest, there is one again after 0.8 seconds.
    let (mut denied, mut caller) = (0, proxy.caller());
    let passed = until("the debt to be paid off", PATIENCE, || {
        let answer = caller.get("/plain/0");
        let is_denied = answer.status == 429;
        denied += usize::from(is_denied);
        if is_denied {
            assert_eq!(answer.retry_after(), 1);
        }
        (!is_denied).then(Instant::now)
    });
    // Denials cost nothing, or it would never be paid.
    assert!(denied > 5, "{denied}");
    let took = passed - sent;
    assert!(took >= Duration::from_millis(798), "{took:?}");
    assert!(took < Duration::from_millis(3000), "{took:?}");
    assert_eq!(backend.count(), 2);
}

#[test]
fn beside_rules_that_count_otherwise() {
    let backend = Backend::answering(by_path);
    let plain = "[[rule]]\nname = 'requests'\nby = ['ip']\nlimits = ['4/year']\n";
    let proxy = Proxy::by(&backend, &(MILLION.to_owned() + plain));
    let mut caller = proxy.caller();
    let statuses: Vec<_> = (0..6).map(|_| caller.get("/plain/7000").status).collect();
    assert_eq!(statuses, [200, 200, 200, 200, 429, 429]);
    // Of the bytes, none were charged for those that were denied, and no request was by its bytes.
    let told = proxy
        .admin_post("/v1/keys/peek", r#"{"request":{"path":"/","ip":"127.0.0.1"},"rule":"bytes"}"#);
    assert_eq!(told.json()["policies"][0]["remaining"], 972_000, "{told:?}");
}
