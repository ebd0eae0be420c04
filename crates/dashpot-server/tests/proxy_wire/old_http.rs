//! Those who speak HTTP/1.0.

use crate::scene::{FINE, Scene, get};

fn old(target: &str, lines: &str, body: &str) -> String {
    format!("GET {target} HTTP/1.0\r\n{lines}\r\n{body}")
}

#[test]
fn an_old_caller_is_answered_and_let_go() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(old("/a?b", "Host: example.com\r\n", ""));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(seen.first, "GET /a?b HTTP/1.1");
    assert_eq!(seen.one("host"), "example.com");
    backend.send(FINE);
    let answer = caller.answer();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "fine"));
    caller.expect_end();
}

/// It never heard of chunks.
#[test]
fn an_old_caller_gets_no_chunks() {
    let scene = Scene::start(&[]);
    for lines in ["Host: a\r\n", "Host: a\r\nConnection: keep-alive\r\n"] {
        let mut caller = scene.connect();
        caller.send(old("/", lines, ""));
        let mut backend = scene.accept();
        backend.request();
        backend.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n");
        backend.send("3\r\nabc\r\n5\r\ndefgh\r\n0\r\n\r\n");
        let head = caller.head();
        assert!(!head.has("transfer-encoding"), "{head:?}");
        assert!(!head.has("content-length"), "{head:?}");
        assert_eq!(caller.rest(), b"abcdefgh", "until it closes");
    }
}

#[test]
fn an_old_caller_may_stay_if_it_asks_to() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(old("/1", "Host: a\r\nConnection: Keep-Alive\r\n", ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    let answer = caller.answer();
    assert_eq!(answer.text(), "fine");
    // Unless it is told that it may, it must not ask again here.
    if answer.all("connection").iter().any(|value| value.eq_ignore_ascii_case("keep-alive")) {
        caller.send(old("/2", "Host: a\r\n", ""));
        assert_eq!(backend.request().first, "GET /2 HTTP/1.1");
        backend.send(FINE);
        assert_eq!(caller.answer().text(), "fine");
    }
    caller.expect_end();
}

/// Nobody had to name a host then. The backend is told something nevertheless: it is asked in HTTP/1.1.
#[test]
fn an_old_caller_need_not_name_a_host() {
    let scene = Scene::start(&[]);
    let seen = scene.seen(old("/", "", ""));
    assert_eq!(seen.all("host").len(), 1, "{seen:?}");
}

#[test]
fn an_old_caller_may_send_a_body() {
    let scene = Scene::start(&[]);
    let seen = scene.seen("POST /form HTTP/1.0\r\nHost: a\r\nContent-Length: 7\r\n\r\na=1&b=2");
    assert_eq!((seen.one("content-length"), seen.text().as_str()), ("7", "a=1&b=2"));
}

#[test]
fn an_old_backend_tells_the_end_by_closing() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    // Each over a connection of its own, and the caller stays where it is.
    for nth in 0..3 {
        caller.send(get(&format!("/{nth}")));
        let mut backend = scene.accept();
        assert_eq!(backend.request().first, format!("GET /{nth} HTTP/1.1"));
        backend.send("HTTP/1.0 200 OK\r\nServer: SimpleHTTP/0.6\r\n\r\n");
        backend.send(format!("answer {nth}"));
        drop(backend);
        let answer = caller.answer();
        assert!(answer.first.starts_with("HTTP/1.1 200"), "{answer:?}");
        assert_eq!(answer.text(), format!("answer {nth}"));
        assert_eq!(answer.one("server"), "SimpleHTTP/0.6");
    }
}

#[test]
fn an_old_backend_may_know_the_length() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    for _ in 0..3 {
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        backend.send("HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nfine");
        // It closes, and need not do so before the answer arrives.
        let answer = caller.answer();
        assert_eq!((answer.one("content-length"), answer.text().as_str()), ("4", "fine"));
    }
}

/// A caller and a backend of that age understand each other.
#[test]
fn both_may_be_old() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(old("/", "", ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.0 404 Not Found\r\n\r\nnot here");
    drop(backend);
    let head = caller.head();
    assert_eq!(head.status(), 404);
    assert!(!head.has("transfer-encoding"), "{head:?}");
    assert_eq!(caller.rest(), b"not here");
}
