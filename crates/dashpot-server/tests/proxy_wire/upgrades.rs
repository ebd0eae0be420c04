//! WebSockets, and other protocols that begin as HTTP.

use std::io::{Read, Write};
use std::thread;

use crate::multiplexed::{Multiplexed, request};
use crate::scene::{FINE, OK, Scene, get, with};
use crate::wire::Wire;

const ASKED: &str = "Upgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\
    Sec-WebSocket-Protocol: chat, superchat\r\nOrigin: http://example.com\r\n";
const GRANTED: &str = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\
    Connection: Upgrade\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\
    Sec-WebSocket-Protocol: chat\r\n\r\n";

/// Both ends of a tunnel.
pub(crate) fn tunnel(scene: &Scene) -> (Wire, Wire) {
    let mut caller = scene.connect();
    caller.send(with("GET", "/chat", ASKED, ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send(GRANTED);
    assert_eq!(caller.head().status(), 101);
    (caller, backend)
}

/// What one says the other hears, in both directions.
#[track_caller]
pub(crate) fn talk(caller: &mut Wire, backend: &mut Wire) {
    caller.send("\x01\x00\r\n\r\nhello");
    backend.expect_bytes("\x01\x00\r\n\r\nhello");
    backend.send("0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
    caller.expect_bytes("0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n");
}

#[test]
fn the_handshake_goes_through() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/chat?room=7", ASKED, ""));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(seen.first, "GET /chat?room=7 HTTP/1.1");
    assert_eq!(seen.one("upgrade"), "websocket");
    assert!(seen.one("connection").eq_ignore_ascii_case("upgrade"), "{seen:?}");
    assert_eq!(seen.one("sec-websocket-key"), "dGhlIHNhbXBsZSBub25jZQ==");
    assert_eq!(seen.one("sec-websocket-version"), "13");
    assert_eq!(seen.one("sec-websocket-protocol"), "chat, superchat");
    assert_eq!(seen.one("origin"), "http://example.com");
    assert_eq!(seen.one("x-forwarded-for"), "127.0.0.1");
    backend.send(GRANTED);
    let answer = caller.head();
    assert_eq!(answer.status(), 101);
    assert_eq!(answer.one("upgrade"), "websocket");
    assert!(answer.one("connection").eq_ignore_ascii_case("upgrade"), "{answer:?}");
    assert_eq!(answer.one("sec-websocket-accept"), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(answer.one("sec-websocket-protocol"), "chat");
    assert!(!answer.has("content-length") && !answer.has("transfer-encoding"), "{answer:?}");
    for _ in 0..100 {
        talk(&mut caller, &mut backend);
    }
}

#[test]
fn any_protocol_will_do() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "upgrade: echo/2, other\r\nconnection: upgrade\r\n", ""));
    let mut backend = scene.accept();
    assert_eq!(backend.request().one("upgrade"), "echo/2, other");
    backend.send("HTTP/1.1 101 \r\nconnection: upgrade\r\nupgrade: echo/2\r\n\r\n");
    assert_eq!(caller.head().one("upgrade"), "echo/2");
    talk(&mut caller, &mut backend);
}

#[test]
fn what_is_said_together_with_the_handshake_is_not_lost() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", ASKED, "said too early"));
    let mut backend = scene.accept();
    backend.head();
    backend.send(format!("{GRANTED}said at once"));
    assert_eq!(caller.head().status(), 101);
    caller.expect_bytes("said at once");
    backend.expect_bytes("said too early");
    talk(&mut caller, &mut backend);
}

#[test]
fn five_megabytes_go_through_both_ways_at_once() {
    let scene = Scene::start(&[]);
    let (caller, backend) = tunnel(&scene);
    let body: Vec<u8> = (0..5_000_000_u32).map(|nth| (nth % 251) as u8).collect();
    thread::scope(|scope| {
        for wire in [&caller, &backend] {
            let (mut writer, mut reader) = (&wire.stream, &wire.stream);
            let body = &body;
            scope.spawn(move || writer.write_all(body).unwrap());
            scope.spawn(move || {
                let mut came = vec![0; body.len()];
                reader.read_exact(&mut came).unwrap();
                assert!(came == *body, "they are not the same");
            });
        }
    });
}

#[test]
fn who_closes_is_heard_to_the_end() {
    let scene = Scene::start(&[]);
    let (mut caller, mut backend) = tunnel(&scene);
    caller.send("goodbye".repeat(10_000));
    drop(caller);
    assert_eq!(backend.until_cut(), "goodbye".repeat(10_000).as_bytes());
    let (mut caller, mut backend) = tunnel(&scene);
    backend.send("goodbye".repeat(10_000));
    drop(backend);
    assert_eq!(caller.until_cut(), "goodbye".repeat(10_000).as_bytes());
}

/// A caller that has said all hears the rest. When the backend has said all, it is over.
#[test]
fn a_caller_may_close_its_half() {
    let scene = Scene::start(&[]);
    let (mut caller, mut backend) = tunnel(&scene);
    caller.send("that is all");
    caller.end();
    assert_eq!(backend.rest(), b"that is all");
    for nth in 0..5 {
        backend.send(format!("answer {nth}"));
        caller.expect_bytes(format!("answer {nth}"));
    }
    drop(backend);
    caller.expect_end();
    let (mut caller, mut backend) = tunnel(&scene);
    backend.send("that is all");
    backend.end();
    assert_eq!(caller.until_cut(), b"that is all");
    backend.expect_end();
}

/// A backend that does not want to answers like any other, and the connection stays what it was.
#[test]
fn a_refusal_is_an_answer_like_any_other() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    for (status, body) in [(200, "no"), (400, "never"), (426, ""), (403, "not you")] {
        caller.send(with("GET", "/chat", ASKED, ""));
        let mut backend = scene.accept();
        backend.request();
        let length = body.len();
        backend.send(format!(
            "HTTP/1.1 {status} No\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        ));
        let answer = caller.answer();
        assert_eq!((answer.status(), answer.text().as_str()), (status, body));
        caller.send(get("/after"));
        let mut backend = scene.accept();
        assert_eq!(backend.request().first, "GET /after HTTP/1.1");
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200);
    }
}

#[test]
fn who_is_denied_gets_no_further() {
    let scene = Scene::start(&["--limit", "1/h"]);
    let (mut caller, mut backend) = tunnel(&scene);
    let mut denied = scene.connect();
    denied.send(with("GET", "/chat", ASKED, ""));
    denied.answer().is_problem(429);
    talk(&mut caller, &mut backend);
}

/// `Upgrade` alone is not enough: it has to be named by `Connection`. Nor is an older HTTP.
#[test]
fn who_does_not_mean_it_is_not_taken_at_its_word() {
    let scene = Scene::start(&[]);
    let seen = scene.seen(with("GET", "/", "upgrade: websocket\r\n", ""));
    assert!(!seen.has("upgrade") && !seen.has("connection"), "{seen:?}");
    let old = "GET / HTTP/1.0\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    let seen = scene.seen(old);
    assert!(!seen.has("upgrade"), "{seen:?}");
}

/// A backend that switches though nobody asked it to is broken.
#[test]
fn nobody_is_switched_who_did_not_ask() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("{GRANTED}{FINE}"));
    caller.answer().is_problem(502);
    drop(backend);
    scene.goes_on();
}

/// What is in such a tunnel would be requests that nobody counts.
#[test]
fn http_2_is_not_switched_to() {
    let scene = Scene::start(&[]);
    for protocol in ["h2c", "H2C", "websocket, h2c", "h2c, websocket", "h2"] {
        let lines = format!(
            "connection: upgrade, http2-settings\r\nupgrade: {protocol}\r\nhttp2-settings: AAMAAABk\r\n"
        );
        let seen = scene.seen(with("GET", "/", &lines, ""));
        let passed_on = seen.all("upgrade").join(", ").to_ascii_lowercase();
        assert!(!passed_on.contains("h2"), "{protocol}: {seen:?}");
        assert!(!seen.has("http2-settings"), "{protocol}: {seen:?}");
    }
}

#[test]
fn over_http_2_there_are_none() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = request("GET", "/chat");
    asked.headers_mut().insert("sec-websocket-version", "13".parse().unwrap());
    let asked = caller.ask(asked);
    let mut backend = scene.accept();
    let seen = backend.request();
    assert!(!seen.has("upgrade") && !seen.has("connection"), "{seen:?}");
    backend.send(GRANTED);
    drop(backend);
    asked.answer().is_problem(502);
}
