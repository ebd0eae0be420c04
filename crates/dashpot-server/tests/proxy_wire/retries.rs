//! A request goes to the backend once, unless it is harmless and the connection was an old one.

use std::time::Duration;

use crate::scene::{FINE, Scene, get, with};
use crate::wire::Wire;

/// A caller, and a connection to the backend that was used and kept.
fn kept(scene: &Scene) -> (Wire, Wire) {
    let mut caller = scene.connect();
    caller.send(get("/first"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    (caller, backend)
}

#[test]
fn what_may_be_repeated_is_sent_again_over_a_new_connection() {
    let scene = Scene::start(&["--threads", "1"]);
    for method in ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE"] {
        let (mut caller, mut old) = kept(&scene);
        caller.send(with(method, "/again?a=b", "x-a: b\r\n", ""));
        let first = old.request();
        drop(old);
        let mut new = scene.accept();
        let second = new.request();
        assert_eq!(second.first, format!("{method} /again?a=b HTTP/1.1"));
        assert_eq!(second.fields, first.fields, "{method}");
        new.send("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(caller.head().status(), 200, "{method}");
    }
    assert_eq!(scene.metric("dashpot_upstream_retries_total"), 6.0);
}

#[test]
fn what_may_not_be_repeated_is_not() {
    let scene = Scene::start(&["--threads", "1"]);
    let chunked = "transfer-encoding: chunked\r\n";
    for (method, lines, body) in [
        ("POST", "", ""),
        ("POST", "content-length: 0\r\n", ""),
        ("POST", "content-length: 4\r\n", "book"),
        ("PATCH", "", ""),
        ("LOCK", "", ""),
        // With a body, part of which may be gone.
        ("PUT", "content-length: 4\r\n", "book"),
        ("GET", "content-length: 4\r\n", "book"),
        ("DELETE", chunked, "1\r\nx\r\n0\r\n\r\n"),
    ] {
        let (mut caller, mut old) = kept(&scene);
        caller.send(with(method, "/once", lines, body));
        old.request();
        drop(old);
        caller.answer().is_problem(502);
        scene.goes_on();
    }
    assert_eq!(scene.metric("dashpot_upstream_retries_total"), 0.0);
}

#[test]
fn over_a_new_connection_it_is_sent_once() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/once"));
    let mut backend = scene.accept();
    backend.request();
    drop(backend);
    caller.answer().is_problem(502);
    scene.goes_on();
}

/// Twice is enough.
#[test]
fn it_is_sent_again_no_more_than_once() {
    let scene = Scene::start(&["--threads", "1"]);
    let (mut caller, mut old) = kept(&scene);
    caller.send(get("/again"));
    old.request();
    drop(old);
    let mut new = scene.accept();
    assert_eq!(new.request().first, "GET /again HTTP/1.1");
    drop(new);
    caller.answer().is_problem(502);
    scene.goes_on();
}

/// Then the backend has seen it, whatever becomes of the connection.
#[test]
fn once_the_answer_has_begun_it_is_not_sent_again() {
    let scene = Scene::start(&["--threads", "1"]);
    for begun in ["HTTP/1.1 200", "HTTP/1.1 200 OK\r\ncontent-length: 4\r\n"] {
        let (mut caller, mut old) = kept(&scene);
        caller.send(get("/begun"));
        old.request();
        old.send(begun);
        drop(old);
        caller.patience(Duration::from_secs(5));
        caller.answer().is_problem(502);
        scene.goes_on();
    }
}

/// By then the caller has heard of it, too.
#[test]
fn an_answer_that_breaks_off_is_not_asked_for_again() {
    let scene = Scene::start(&["--threads", "1"]);
    let (mut caller, mut old) = kept(&scene);
    caller.send(get("/begun"));
    old.request();
    old.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfi");
    drop(old);
    assert_eq!(caller.head().status(), 200);
    assert_eq!(caller.until_cut(), b"fi", "the answer is not whole, and shows it");
    scene.goes_on();
}
