//! Callers who take their time, by the hundred. Each has a limit, and nobody else waits for them.

use std::io::{ErrorKind, Read as _, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use crate::backend::{Backend, Seen};
use crate::caller::Caller;
use crate::echo;
use crate::gateway::Gateway;
use crate::service::until;

/// How long they may take, and when it is noticed at the latest on a machine with other things to do.
const LIMIT: Duration = Duration::from_secs(2);
const NOTICED: Duration = Duration::from_secs(12);

fn start() -> (Backend, Gateway) {
    let backend = echo::backend();
    let timeouts = ["--client-timeout", "2s", "--idle-timeout", "30s", "--response-timeout", "30s"];
    let gateway = Gateway::start(backend.address, &timeouts);
    gateway.serves("/warm");
    (backend, gateway)
}

/// Many who have sent this much.
fn crowd(gateway: &Gateway, count: usize, sent: &str) -> Vec<Caller> {
    let begin = |_| {
        let mut caller = gateway.caller();
        caller.send(sent);
        caller.stream.set_nonblocking(true).unwrap();
        caller
    };
    (0..count).map(begin).collect()
}

/// What it has said until it closed; nothing while it is open.
fn said(caller: &mut Caller) -> Option<String> {
    let mut some = [0; 4096];
    loop {
        match caller.stream.read(&mut some) {
            Ok(0) => break,
            Ok(count) => caller.buffer.extend_from_slice(&some[..count]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
            Err(_) => break,
        }
    }
    Some(String::from_utf8_lossy(&caller.buffer).into_owned())
}

/// Sends each of them this byte every now and then, until all are closed. What each was told, and after
/// how long the first and the last were closed. Meanwhile somebody else is served.
fn dribble(
    gateway: &Gateway,
    mut slow: Vec<Caller>,
    byte: Option<u8>,
) -> (Vec<String>, Duration, Duration) {
    let over = AtomicBool::new(false);
    let begun = Instant::now();
    let (mut told, mut first) = (Vec::new(), Duration::ZERO);
    thread::scope(|scope| {
        let honest = scope.spawn(|| {
            let mut longest = Duration::ZERO;
            while !over.load(Ordering::Relaxed) {
                longest = longest.max(gateway.serves("/honest"));
                thread::sleep(Duration::from_millis(10));
            }
            longest
        });
        while !slow.is_empty() && begun.elapsed() < NOTICED {
            slow.retain_mut(|caller| match said(caller) {
                Some(said) => {
                    told.push(said);
                    false
                }
                None => {
                    let _ = byte.map(|byte| caller.stream.write(&[byte]));
                    true
                }
            });
            if first.is_zero() && !told.is_empty() {
                first = begun.elapsed();
            }
            thread::sleep(Duration::from_millis(50));
        }
        over.store(true, Ordering::Relaxed);
        let longest = honest.join().unwrap();
        println!(
            "the first after {first:?}, the last after {:?}; others: {longest:?}",
            begun.elapsed()
        );
        assert!(longest < Duration::from_secs(2), "others waited {longest:?}");
    });
    assert!(slow.is_empty(), "{} are still there", slow.len());
    (told, first, begun.elapsed())
}

#[test]
fn heads_by_the_byte_are_closed_without_a_word() {
    let (backend, mut gateway) = start();
    let sockets = gateway.sockets();
    for (begin, byte) in [
        ("GET /slow HTTP/1.1\r\nHost: a.example\r\nX: ", Some(b'x')),
        ("GET /slow", Some(b'x')),
        ("G", None),
        ("GET /slow HTTP/1.1\r\nHost: a.example\r\n", None),
    ] {
        let slow = crowd(&gateway, 300, begin);
        let (told, first, _) = dribble(&gateway, slow, byte);
        assert!(told.iter().all(String::is_empty), "{told:?}");
        assert!(first > LIMIT / 2, "closed after {first:?} already");
    }
    gateway.has_sockets(sockets + 2, Duration::from_secs(10));
    assert!(backend.take().iter().all(|seen| *seen != Seen::Whole("GET /slow".to_owned())));
    gateway.is_well();
}

#[test]
fn bodies_that_stop_are_told_that_they_are_late() {
    let (backend, mut gateway) = start();
    let sockets = gateway.sockets();
    let head = "POST /slow HTTP/1.1\r\nHost: a.example\r\n";
    for begin in [
        format!("{head}Content-Length: 100\r\n\r\nhello"),
        format!("{head}Content-Length: 100\r\n\r\n"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhe"),
        format!("{head}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    ] {
        let slow = crowd(&gateway, 100, &begin);
        let (told, first, _) = dribble(&gateway, slow, None);
        let late = |told: &String| told.starts_with("HTTP/1.1 408 ");
        assert!(told.iter().all(late), "{begin:?}: {told:?}");
        assert!(first > LIMIT / 2, "closed after {first:?} already");
        let whole = |seen: &Seen| matches!(seen, Seen::Whole(one) if one.contains("/slow"));
        assert!(!backend.take().iter().any(whole));
    }
    gateway.has_sockets(sockets + 2, Duration::from_secs(10));
    gateway.is_well();
}

/// Each wait counts, and not all of them together: a slow line is no attack.
#[test]
fn bodies_by_the_byte_may_take_longer_than_one_wait() {
    let (_backend, gateway) = start();
    let body = "x".repeat(40);
    let mut slow: Vec<_> = (0..100).map(|_| gateway.caller()).collect();
    let head = "POST /slow HTTP/1.1\r\nHost: a.example\r\nContent-Length: 40\r\n\r\n";
    slow.iter_mut().for_each(|caller| caller.send(head));
    let begun = Instant::now();
    for _ in 0..40 {
        slow.iter_mut().for_each(|caller| caller.send("x"));
        assert!(gateway.serves("/honest") < Duration::from_secs(2));
        thread::sleep(Duration::from_millis(80));
    }
    assert!(begun.elapsed() > LIMIT, "too quick to say anything");
    for mut caller in slow {
        assert_eq!(caller.answer().unwrap().text(), format!("POST /slow {body}"));
    }
}

/// Connects so that little is kept for whoever does not read.
fn deaf(gateway: &Gateway, path: &str) -> TcpStream {
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&gateway.address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(crate::caller::get(path).as_bytes()).unwrap();
    stream
}

#[test]
fn who_does_not_read_the_answer_is_let_go_and_so_is_the_backend() {
    let (backend, mut gateway) = start();
    let before = gateway.service.memory();
    let sockets = gateway.sockets();
    let deaf: Vec<_> = (0..60).map(|_| deaf(&gateway, "/bytes/30000000")).collect();
    let (mut most, mut longest, begun) = (0, Duration::ZERO, Instant::now());
    until("all to be asked for", NOTICED, || {
        (backend.times("GET /bytes/30000000") == 60).then_some(())
    });
    let open = backend.open();
    assert!(open >= 60, "{open}");
    let left = until("them to be let go", NOTICED, || {
        most = most.max(gateway.service.memory());
        longest = longest.max(gateway.serves("/honest"));
        (backend.open() < 20).then(|| begun.elapsed())
    });
    println!("let go after {left:?}; others: {longest:?}; {before} bytes became {most} at most");
    assert!(longest < Duration::from_secs(3), "others waited {longest:?}");
    assert!(most < before + 60 * 1024 * 1024, "{before} bytes became {most}");
    gateway.has_sockets(sockets + 20, Duration::from_secs(10));
    // Who is not let go yet could read the rest in time: nobody is there but who asks about that.
    until("all of them to be let go", NOTICED, || {
        (gateway.service.metric("dashpot_open_connections") <= 1.0).then_some(())
    });
    // They can tell that it was not all.
    for stream in deaf {
        stream.set_read_timeout(Some(NOTICED)).unwrap();
        let mut caller = Caller { stream, buffer: Vec::new(), end: None };
        assert!(caller.answer().is_err(), "whole, though nobody read it");
    }
    gateway.is_well();
}

#[test]
fn who_reads_slowly_gets_all_of_it() {
    let (_backend, gateway) = start();
    let mut stream = deaf(&gateway, "/bytes/3000000");
    stream.set_read_timeout(Some(NOTICED)).unwrap();
    let mut caller = Caller { stream: stream.try_clone().unwrap(), buffer: Vec::new(), end: None };
    let begun = Instant::now();
    let mut some = vec![0; 40_000];
    while begun.elapsed() < LIMIT * 2 {
        let count = stream.read(&mut some).unwrap();
        caller.buffer.extend_from_slice(&some[..count]);
        thread::sleep(Duration::from_millis(200));
    }
    SockRef::from(&stream).set_recv_buffer_size(1 << 20).unwrap();
    assert_eq!(caller.answer().unwrap().body.len(), 3_000_000);
}
