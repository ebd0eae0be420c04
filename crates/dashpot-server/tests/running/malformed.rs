//! What no client should send. Whatever it is, it is refused or ignored, and the next one is served.

use std::io::Write;
use std::net::Shutdown;
use std::thread;
use std::time::Duration;

use crate::client::{Client, check, get};
use crate::service::Service;

/// How many answers there are, and the status of the first. The connection has to end.
pub(crate) fn answers(service: &Service, bytes: &[u8]) -> (usize, Option<u16>, String) {
    let mut client = service.client();
    let mut writer = client.stream.try_clone().unwrap();
    let (said, closed) = thread::scope(|scope| {
        // What is refused early may not be read to its end, and the answer is to be read before that.
        scope.spawn(move || writer.write_all(bytes));
        client.patience(Duration::from_millis(700));
        match client.rest() {
            (said, true) => (said, true),
            (mut said, false) => {
                // It may wait for more. Then it is told that there is none.
                let _ = client.stream.shutdown(Shutdown::Write);
                client.patience(Duration::from_secs(15));
                let (rest, closed) = client.rest();
                said.extend(rest);
                (said, closed)
            }
        }
    });
    let said = String::from_utf8_lossy(&said).into_owned();
    let sent = String::from_utf8_lossy(bytes.get(..200).unwrap_or(bytes)).into_owned();
    assert!(closed, "still open after {sent:?}: {said:?}");
    let status = said.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)?.parse().ok());
    (said.matches("HTTP/1.").count(), status, said)
}

/// Refused with one of these, or by closing if that is in the list as 0; and never more than that.
pub(crate) fn refused(service: &Service, what: &str, bytes: &[u8], with: &[u16]) {
    let (count, status, said) = answers(service, bytes);
    assert!(count <= 1, "{what}: {count} answers: {said}");
    let status = status.unwrap_or(0);
    assert!(with.contains(&status), "{what}: {status} and not one of {with:?}: {said}");
}

/// It runs, and what it says is right.
pub(crate) fn is_well(service: &mut Service) {
    assert!(service.runs());
    let mut client = service.client();
    let left = client.check(r#"{"key":"left","limit":"100/day","cost":0}"#).remaining();
    assert_eq!(client.check(r#"{"key":"left","limit":"100/day"}"#).remaining(), left - 1);
    assert!(!service.log().contains("panicked"), "{}", service.log());
}

#[test]
fn heads_that_are_too_long_are_refused() {
    let mut service = Service::start::<&str>(&[]);
    let line = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n";
    let many = |count| (0..count).map(|nth| format!("x-{nth}: a\r\n")).collect::<String>();
    let huge = "a".repeat(2 << 20);
    let cases = [
        ("many headers", format!("{line}{}\r\n", many(1000))),
        ("very many headers", format!("{line}{}\r\n", many(100_000))),
        ("a huge header", format!("{line}x: {huge}\r\n\r\n")),
        ("a huge name", format!("{line}{huge}: x\r\n\r\n")),
        ("a long path", format!("GET /{huge} HTTP/1.1\r\nhost: localhost\r\n\r\n")),
        ("a head without an end", huge.clone()),
    ];
    let wrong: Vec<_> = cases
        .iter()
        .filter_map(|(what, bytes)| {
            let (count, status, said) = answers(&service, bytes.as_bytes());
            let told = matches!(status, Some(400 | 414 | 431)) && count == 1;
            (!told).then(|| format!("{what}: {count} answers: {said:?}"))
        })
        .collect();
    is_well(&mut service);
    assert!(wrong.is_empty(), "closed without a word, or worse: {wrong:#?}");
}

#[test]
fn malformed_heads_are_refused() {
    let mut service = Service::start::<&str>(&[]);
    let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n";
    let cases: &[(&str, Vec<u8>)] = &[
        ("a method of strange bytes", b"G\xff\x00T /healthz HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()),
        ("no method", b" /healthz HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()),
        ("no such protocol", b"GET /healthz HTTP/9.9\r\nhost: a\r\n\r\n".to_vec()),
        ("no protocol at all", b"GET /healthz\r\n\r\n".to_vec()),
        ("spaces in the path", b"GET /heal thz HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()),
        ("a NUL in the path", b"GET /heal\0thz HTTP/1.1\r\nhost: a\r\n\r\n".to_vec()),
        ("a NUL in a header", format!("{head}x: a\0b\r\n\r\n").into_bytes()),
        ("a NUL in a name", format!("{head}x\0: a\r\n\r\n").into_bytes()),
        ("a header without a name", format!("{head}: a\r\n\r\n").into_bytes()),
        ("a header without a colon", format!("{head}nonsense\r\n\r\n").into_bytes()),
        ("a space before the colon", format!("{head}x : a\r\n\r\n").into_bytes()),
        ("a folded header", format!("{head}x: a\r\n b\r\n\r\n").into_bytes()),
        ("a carriage return alone", format!("{head}x: a\rb\r\n\r\n").into_bytes()),
    ];
    for (what, bytes) in cases {
        let followed = [bytes.as_slice(), get("/readyz").as_bytes()].concat();
        refused(&service, what, &followed, &[400, 505, 501, 0]);
    }
    is_well(&mut service);
}

/// Lines that end without a carriage return are read by many, and refused by some. Either will do,
/// as long as it is one answer to each request.
#[test]
fn bare_line_feeds_do_not_confuse_it() {
    let mut service = Service::start::<&str>(&[]);
    let (count, _, said) = answers(&service, b"GET /healthz HTTP/1.1\nhost: localhost\n\n");
    assert!(count <= 1, "{said}");
    is_well(&mut service);
}

#[test]
fn other_protocols_are_refused() {
    let mut service = Service::start::<&str>(&[]);
    let hello: &[u8] =
        b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03abcdefghijklmnopqrstuvwxyz012345\x20";
    for (what, bytes) in [
        ("TLS", hello),
        ("HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0"),
        ("Redis", b"*1\r\n$4\r\nPING\r\n"),
        ("SSH", b"SSH-2.0-OpenSSH_9.0\r\n"),
    ] {
        refused(&service, what, bytes, &[400, 505, 0]);
    }
    is_well(&mut service);
}

/// A small generator of numbers: the same ones every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[test]
fn random_bytes_do_no_harm() {
    let mut service = Service::start::<&str>(&[]);
    let mut numbers = Numbers(0x005e_ed0f_da54_9071);
    let good = check(r#"{"key":"a","limit":"100000/day"}"#).into_bytes();
    let before = service.memory();
    for nth in 0..2000 {
        let mut bytes = good.clone();
        if nth % 2 == 0 {
            // Nothing but noise.
            bytes = (0..numbers.below(400)).map(|_| numbers.next() as u8).collect();
        } else {
            // A request with some bytes that are others, missing or too many.
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(bytes.len());
                match numbers.below(3) {
                    0 => bytes[at] = numbers.next() as u8,
                    1 => drop(bytes.remove(at)),
                    _ => bytes.insert(at, numbers.next() as u8),
                }
            }
        }
        let mut client = Client::to(service.address);
        client.send(&bytes);
        if nth % 10 == 0 {
            let _ = client.stream.shutdown(Shutdown::Write);
            let (said, closed) = client.rest();
            let said = String::from_utf8_lossy(&said).into_owned();
            assert!(closed, "{nth}: still open after {bytes:?}, having said {said}");
            assert!(said.is_empty() || said.starts_with("HTTP/1."), "{nth}: {bytes:?} {said}");
            assert!(!said.contains(" 500 "), "{nth}: {bytes:?} {said}");
        }
    }
    is_well(&mut service);
    assert!(service.log().lines().count() < 100, "strangers fill the log: {}", service.log());
    let after = service.memory();
    println!("{before} bytes, then {after}");
    assert!(after < before + 32 * 1024 * 1024, "{before} bytes became {after}");
}
