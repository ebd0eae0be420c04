//! Connections without a request, and those of HTTP/2 that stop in the middle.

use std::fs;
use std::time::{Duration, Instant};

use rcgen::{CertificateParams, KeyPair};

use crate::caller::Caller;
use crate::echo;
use crate::frames::{
    Connection, DATA, END_HEADERS, END_STREAM, Ended, HEADERS, PREFACE, SETTINGS, block, frame,
    get, request,
};
use crate::gateway::Gateway;
use crate::service::Directory;

/// Closed after its time, and not long after; and what it was told.
fn closed(caller: &mut Caller, begun: Instant, limit: Duration) {
    caller.patience(Duration::from_secs(15));
    assert!(caller.drain(), "still open after {:?}", begun.elapsed());
    let took = begun.elapsed();
    assert!(took > limit / 2, "closed after {took:?} already");
}

#[test]
fn idle_connections_are_closed_after_their_time() {
    let backend = echo::backend();
    let timeouts = ["--idle-timeout", "2s", "--client-timeout", "30s"];
    let gateway = Gateway::start(backend.address, &timeouts);
    let begun = Instant::now();
    let mut mute: Vec<_> = (0..100).map(|_| gateway.caller()).collect();
    let mut served: Vec<_> = (0..100).map(|_| gateway.caller()).collect();
    for caller in &mut served {
        assert_eq!(caller.get("/a").unwrap().text(), "GET /a");
    }
    for caller in mute.iter_mut().chain(&mut served) {
        closed(caller, begun, Duration::from_secs(2));
        assert!(caller.buffer.is_empty(), "it was told {:?}", caller.buffer);
    }
    gateway.serves("/after");
}

/// The second head on a connection has the same limit as the first; if it began to come with the first, that of a
/// connection without a request.
#[test]
fn a_second_head_that_stops_is_closed() {
    let backend = echo::backend();
    let timeouts = ["--idle-timeout", "5s", "--client-timeout", "2s"];
    let gateway = Gateway::start(backend.address, &timeouts);
    let (whole, half) = (crate::caller::get("/a"), "GET /b HTTP/1.1\r\nHo");
    let mut together = gateway.caller();
    together.send(format!("{whole}{half}"));
    let mut after = gateway.caller();
    after.send(&whole);
    let begun = Instant::now();
    for caller in [&mut together, &mut after] {
        assert_eq!(caller.answer().unwrap().text(), "GET /a");
    }
    after.send(half);
    for (what, mut caller, limit) in
        [("after the answer", after, 2), ("with the first", together, 5)]
    {
        println!("half a head {what}");
        closed(&mut caller, begun, Duration::from_secs(limit));
        assert!(begun.elapsed() < Duration::from_secs(limit + 3), "{:?}", begun.elapsed());
    }
    assert_eq!(backend.times("GET /b"), 0);
}

#[test]
fn http_2_that_stops_in_a_head_is_closed() {
    let backend = echo::backend();
    let timeouts = ["--idle-timeout", "4s", "--client-timeout", "2s"];
    let gateway = Gateway::start(backend.address, &timeouts);
    let settings = frame(SETTINGS, 0, 0, b"");
    let head = request(1, &get("/a"), b"");
    let open = frame(HEADERS, END_STREAM, 1, &block(&get("/a")));
    let begun = Instant::now();
    let half: Vec<(&str, Vec<u8>)> = vec![
        ("a preface", PREFACE[..10].to_vec()),
        ("a head", [PREFACE, &settings, &head[..20]].concat()),
        ("a head that is to be continued", [PREFACE, &settings, &open].concat()),
    ];
    let start = |(what, bytes): (&'static str, Vec<u8>)| {
        let mut caller = gateway.caller();
        caller.send(bytes);
        (what, caller)
    };
    let halves: Vec<_> = half.into_iter().map(start).collect();
    for (what, mut caller) in halves {
        println!("half of {what}");
        closed(&mut caller, begun, Duration::from_secs(2));
    }
    gateway.serves("/after");
}

#[test]
fn http_2_that_stops_in_a_body_or_does_not_read_is_let_go() {
    let backend = echo::backend();
    let timeouts = ["--idle-timeout", "30s", "--client-timeout", "2s"];
    let gateway = Gateway::start(backend.address, &timeouts);
    let mut fields = get("/slow").to_vec();
    fields[0].1 = "POST";
    let mut slow = Connection::to(&gateway);
    slow.send(&frame(HEADERS, END_HEADERS, 1, &block(&fields)));
    slow.send(&frame(DATA, 0, 1, b"hello"));
    // 65 535 bytes may come, and then it is never said that more may.
    let mut deaf = Connection::to(&gateway);
    deaf.send(&request(1, &get("/bytes/3000000"), b""));
    let end = slow.end(1);
    assert!(matches!(end, Ended::Answered(408, _)), "{end:?}");
    let end = deaf.end(1);
    assert!(matches!(end, Ended::Broken(200)), "{end:?}");
    crate::service::until("the backend to be let go", Duration::from_secs(10), || {
        (backend.open() == 0 || backend.open() == 1).then_some(())
    });
    // The connection itself did nothing wrong.
    slow.send(&request(3, &get("/a"), b""));
    let end = slow.end(3);
    assert!(matches!(end, Ended::Answered(_, _) | Ended::Closed), "{end:?}");
    gateway.serves("/after");
}

#[test]
fn handshakes_that_stop_are_closed() {
    let home = Directory::new();
    let key = KeyPair::generate().unwrap();
    let names = ["localhost".to_owned()];
    let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
    fs::write(home.path().join("key.pem"), key.serialize_pem()).unwrap();
    fs::write(home.path().join("certificate.pem"), certificate.pem()).unwrap();
    let backend = echo::backend();
    let files = ["--tls-certificate", "certificate.pem", "--tls-key", "key.pem"];
    let arguments = [&files[..], &["--idle-timeout", "2s", "--client-timeout", "2s"]].concat();
    let mut gateway = Gateway::start_in(home, backend.address, &arguments);
    let sockets = gateway.sockets();
    let begun = Instant::now();
    let mut stuck = Vec::new();
    for bytes in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"] {
        for _ in 0..50 {
            let mut caller = gateway.caller();
            caller.send(bytes);
            stuck.push(caller);
        }
    }
    for mut caller in stuck {
        closed(&mut caller, begun, Duration::from_secs(2));
    }
    // Whoever does not speak TLS is not waited for.
    let mut plain = gateway.caller();
    plain.send(crate::caller::get("/a"));
    assert!(plain.drain());
    assert!(backend.take().is_empty());
    gateway.has_sockets(sockets, Duration::from_secs(10));
    gateway.is_well();
}
