//! Those who take their time: each has a limit, and nobody else waits for them.

use std::io::{ErrorKind, Write};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::client::{Client, get};
use crate::service::Service;

/// How long a head may take, and when it is noticed at the latest, with something to spare for a
/// machine that has other things to do.
const HEAD: Duration = Duration::from_secs(30 + 5 + 10);
/// The same for a body.
const BODY: Duration = Duration::from_secs(10 + 5 + 10);
/// Nobody is thrown out before this.
const SOON: Duration = Duration::from_secs(5);

/// How long until the other side has closed; what it says before does not matter.
fn closed_after(client: &mut Client, bound: Duration) -> Duration {
    let begun = Instant::now();
    client.patience(bound);
    let (said, closed) = client.rest();
    let took = begun.elapsed();
    let said = String::from_utf8_lossy(&said).into_owned();
    assert!(closed && took < bound, "still open after {took:?}, having said {said:?}");
    assert!(!said.contains(" 200 "), "{said}");
    took
}

/// A byte a second, for as long as it is taken.
fn dribble(mut client: Client, before: &str, bytes: &'static [u8], bound: Duration) -> Duration {
    client.send(before);
    let begun = Instant::now();
    let mut writer = client.stream.try_clone().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in bytes.iter().cycle() {
                if over.load(Ordering::Relaxed) || writer.write_all(&[*byte]).is_err() {
                    return;
                }
                thread::sleep(Duration::from_millis(500));
            }
        });
        client.patience(bound);
        let (said, closed) = client.rest();
        over.store(true, Ordering::Relaxed);
        let said = String::from_utf8_lossy(&said).into_owned();
        assert!(closed, "still open after {:?}, having said {said:?}", begun.elapsed());
        assert!(!said.contains(" 200 "), "{said}");
    });
    begun.elapsed()
}

/// One test for all, since they wait for the same time to pass.
#[test]
fn whoever_is_slow_is_let_go_and_nobody_waits_for_them() {
    let service = Service::start::<&str>(&[]);
    let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\ncontent-length: 35\r\n";
    for _ in 0..100 {
        service.client().get("/healthz");
    }
    let before = service.memory();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let told = |what: &'static str, took: Duration| {
            println!("{what}: closed after {took:?}");
            assert!(took > SOON, "{what}: closed after {took:?} already");
        };
        let service = &service;
        let slow = [
            scope.spawn(move || {
                let took =
                    dribble(service.client(), "GET /healthz HTTP/1.1\r\nx-slow: ", b"a", HEAD);
                told("a head by the byte", took);
            }),
            scope.spawn(move || {
                let took = dribble(service.client(), "", b"\r\n", HEAD);
                told("nothing but empty lines", took);
            }),
            scope.spawn(move || {
                let mut client = service.client();
                client.send("GET /heal");
                told("half a head", closed_after(&mut client, HEAD));
            }),
            scope.spawn(move || {
                let mut client = service.client();
                client.send(format!("{head}\r\n{{\"key\":"));
                told("half a body", closed_after(&mut client, BODY));
            }),
            scope.spawn(move || {
                let long = head.replace("35", "60000");
                told(
                    "a body by the byte",
                    dribble(service.client(), &format!("{long}\r\n"), b" ", BODY),
                );
            }),
            scope.spawn(move || {
                let mut client = service.client();
                let head = "POST /v1/check HTTP/1.1\r\nhost: localhost\r\n";
                client.send(format!("{head}transfer-encoding: chunked\r\n\r\n5\r\n{{\"key"));
                told("half a chunk", closed_after(&mut client, BODY));
            }),
            scope.spawn(move || {
                // The second head on a connection has the same limit as the first.
                let mut client = service.client();
                assert_eq!(client.get("/healthz").status, 200);
                client.send("GET /heal");
                told("half of a second head", closed_after(&mut client, HEAD));
            }),
            scope.spawn(move || {
                // Half-closed with half a request: there is nothing left to wait for.
                let mut client = service.client();
                client.send("GET /heal");
                client.stream.shutdown(Shutdown::Write).unwrap();
                let took = closed_after(&mut client, SOON);
                println!("half a head, half closed: closed after {took:?}");
            }),
            scope.spawn(move || told("answers nobody reads", never_read(service))),
        ];
        scope.spawn(|| {
            let mut client = service.client();
            let (mut longest, mut most) = (Duration::ZERO, 0);
            while !over.load(Ordering::Relaxed) {
                let begun = Instant::now();
                assert!(client.check(r#"{"key":"alice","limit":"1000000/s"}"#).allowed());
                assert_eq!(service.client().get("/healthz").status, 200);
                longest = longest.max(begun.elapsed());
                most = most.max(service.memory());
                thread::sleep(Duration::from_millis(20));
            }
            println!("others waited {longest:?} at most; {before} bytes became {most} at most");
            assert!(longest < Duration::from_secs(3), "others waited {longest:?}");
            assert!(most < before + 32 * 1024 * 1024, "{before} bytes became {most}");
        });
        let ends = slow.map(thread::ScopedJoinHandle::join);
        over.store(true, Ordering::Relaxed);
        let failed = ends.iter().filter(|end| end.is_err()).count();
        assert_eq!(failed, 0, "of {} who are slow", ends.len());
    });
}

/// Asks for more than anybody keeps for it, and never listens.
fn never_read(service: &Service) -> Duration {
    let mut client = service.client();
    client.stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let _ = client.stream.write_all(get("/openapi.json").repeat(800).as_bytes());
    // It is over when a write fails for good. The other side sees to that, since nothing is read here.
    let begun = Instant::now();
    loop {
        let took = begun.elapsed();
        assert!(took < HEAD, "answers nobody reads: still open after {took:?}");
        match client.stream.write(b"G") {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return took,
            _ => thread::sleep(Duration::from_millis(500)),
        }
    }
}
