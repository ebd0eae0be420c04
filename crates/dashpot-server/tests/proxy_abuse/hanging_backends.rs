//! Backends that are there and do nothing, or are not there at all.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dashpot_testkit::process::free_port;
use socket2::{Domain, Socket, Type};

use crate::backend::Backend;
use crate::caller::{Failure, get, post};
use crate::echo;
use crate::gateway::Gateway;

const TIMEOUTS: [&str; 6] =
    ["--connect-timeout", "1s", "--response-timeout", "1s", "--client-timeout", "3s"];
const SOON: Duration = Duration::from_secs(8);

/// What a caller hears of this backend within so long: a status, or that it is not whole.
fn told(gateway: &Gateway, bytes: &str, at_least: Duration) -> Result<u16, Failure> {
    let begun = Instant::now();
    let mut caller = gateway.caller();
    let told = caller.ask(bytes).map(|answer| answer.status());
    let took = begun.elapsed();
    println!("{told:?} after {took:?}");
    assert!(took >= at_least && took < SOON, "{told:?} after {took:?}");
    told
}

#[test]
fn nobody_is_there() {
    let address: SocketAddr = ([127, 0, 0, 1], free_port()).into();
    let mut gateway = Gateway::start(address, &TIMEOUTS);
    let sockets = gateway.sockets();
    for _ in 0..50 {
        assert_eq!(told(&gateway, &get("/a"), Duration::ZERO), Ok(502));
        assert_eq!(told(&gateway, &post("/a", "hello"), Duration::ZERO), Ok(502));
    }
    gateway.has_sockets(sockets, SOON);
    // Then somebody is, and the next one is served; then not again; and again.
    for _ in 0..3 {
        let backend = Backend::at(address, echo::echo);
        gateway.serves("/next");
        let mut caller = gateway.caller();
        assert_eq!(caller.ask(post("/next", "hello")).unwrap().text(), "POST /next hello");
        drop(backend);
        assert_eq!(told(&gateway, &get("/a"), Duration::ZERO), Ok(502));
        assert_eq!(told(&gateway, &post("/a", "hello"), Duration::ZERO), Ok(502));
    }
    gateway.has_sockets(sockets + 2, SOON);
    gateway.is_well();
}

/// Its queue of those who wait to be accepted is full: connecting takes for ever.
#[test]
fn it_does_not_accept() {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let wait = Duration::from_millis(300);
    let mut crowd = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, wait) {
        crowd.push(stream);
        assert!(crowd.len() < 100, "the queue is not full");
    }
    let mut gateway = Gateway::start(address, &TIMEOUTS);
    let sockets = gateway.sockets();
    assert_eq!(told(&gateway, &get("/a"), Duration::from_millis(900)), Ok(504));
    assert_eq!(told(&gateway, &post("/a", "hello"), Duration::from_millis(900)), Ok(504));
    gateway.has_sockets(sockets, SOON);
    let failures = "dashpot_upstream_failures_total{reason=\"connect_timeout\"}";
    assert_eq!(gateway.service.metric(failures), 2.0);
    gateway.is_well();
}

/// Says this to `/hang`, and then nothing more; all else is answered.
fn hangs(said: &'static str, heard: Option<u16>) {
    let backend = Backend::start(move |link| {
        while let Some(request) = link.request() {
            if request.word(1) == "/hang" {
                link.send(said);
                while link.more() {}
                return;
            }
            if !echo::answer(link, &request) {
                return;
            }
        }
    });
    let mut gateway = Gateway::start(backend.address, &TIMEOUTS);
    gateway.serves("/warm");
    let sockets = gateway.sockets();
    for bytes in [get("/hang"), post("/hang", "hello")] {
        let told = told(&gateway, &bytes, Duration::from_millis(900));
        match heard {
            Some(status) => assert_eq!(told, Ok(status), "{said:?}"),
            None => assert!(matches!(told, Err(Failure::Broken(_))), "{said:?}: {told:?}"),
        }
        gateway.serves("/next");
    }
    // The backend is told that nobody waits for it any more.
    gateway.has_sockets(sockets + 1, SOON);
    crate::service::until("it to be told", SOON, || (backend.open() <= 1).then_some(()));
    gateway.is_well();
}

#[test]
fn it_hangs() {
    let chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n";
    std::thread::scope(|scope| {
        for (said, heard) in [
            ("", Some(504)),
            ("HTTP/1.1 100 Continue\r\n\r\n", Some(504)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n", Some(504)),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello", None),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe", None),
            (chunks, None),
            ("HTTP/1.1 200 OK\r\n\r\nhello", None),
        ] {
            scope.spawn(move || hangs(said, heard));
        }
    });
}

/// It accepts, and takes nothing of a body: the caller is not kept for ever.
#[test]
fn it_does_not_read() {
    let backend = Backend::start(|link| {
        let mut one = [0];
        // Until the other side is gone; what it sends stays where it is.
        while matches!(link.stream.peek(&mut one), Ok(1)) {
            std::thread::sleep(Duration::from_millis(20));
            if link.stream.take_error().is_ok_and(|error| error.is_some()) {
                return;
            }
        }
    });
    let gateway = Gateway::start(backend.address, &TIMEOUTS);
    let before = gateway.service.memory();
    let length = 16 << 20;
    let head = format!("POST /a HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n");
    let mut caller = gateway.caller();
    let mut writer = caller.stream.try_clone().unwrap();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            use std::io::Write;
            let _ = writer.write_all(head.as_bytes());
            let _ = writer.write_all(&vec![b'x'; length]);
        });
        let told = caller.answer().map(|answer| answer.status());
        println!("{told:?} after {:?}", begun.elapsed());
        let after = gateway.service.memory();
        let _ = caller.stream.shutdown(std::net::Shutdown::Both);
        assert!(!matches!(told, Err(Failure::Late) | Ok(..=399)), "{told:?}");
        assert!(after < before + 8 * 1024 * 1024, "{before} bytes became {after}");
    });
}
