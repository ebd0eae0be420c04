//! Bodies go through as they come: nothing waits for what is still to be said.

use crate::scene::{OK, Scene, get, with};

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

#[test]
fn each_piece_of_an_answer_arrives_before_the_next_is_sent() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("HTTP/1.1 200 OK\r\n{CHUNKED}\r\n"));
    assert_eq!(caller.head().status(), 200, "the head does not wait for a body");
    for nth in 0..20 {
        let piece = format!("piece {nth} {}", "x".repeat(nth * 1000));
        backend.send_chunk(&piece);
        caller.expect_chunks(&piece);
    }
    backend.send("0\r\n\r\n");
    assert!(caller.chunk().unwrap().is_none());
    caller.expect_bytes("\r\n");
}

#[test]
fn so_it_does_if_the_length_is_known() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n");
    assert_eq!(caller.head().one("content-length"), "40");
    for nth in 0..10 {
        backend.send(format!("[{nth:02}]"));
        caller.expect_bytes(format!("[{nth:02}]"));
    }
}

#[test]
fn so_it_does_if_only_closing_will_tell_the_end() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.0 200 OK\r\n\r\n");
    assert_eq!(caller.head().status(), 200);
    for nth in 0..10 {
        backend.send(format!("piece {nth}"));
        caller.expect_chunks(&format!("piece {nth}"));
    }
    drop(backend);
    assert!(caller.chunk().unwrap().is_none());
}

#[test]
fn each_piece_of_a_request_arrives_before_the_next_is_sent() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", CHUNKED, ""));
    let mut backend = scene.accept();
    assert!(backend.head().is_chunked(), "the head does not wait for a body");
    for nth in 0..20 {
        let piece = format!("piece {nth} {}", "x".repeat(nth * 1000));
        caller.send_chunk(&piece);
        backend.expect_chunks(&piece);
    }
    caller.send("0\r\n\r\n");
    assert!(backend.chunk().unwrap().is_none());
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

#[test]
fn so_it_does_if_its_length_is_known() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("PUT", "/", "content-length: 40\r\n", ""));
    let mut backend = scene.accept();
    assert_eq!(backend.head().one("content-length"), "40");
    for nth in 0..10 {
        caller.send(format!("[{nth:02}]"));
        backend.expect_bytes(format!("[{nth:02}]"));
    }
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

/// The answer may begin before the request has ended, and both go on.
#[test]
fn both_may_talk_at_once() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/echo", CHUNKED, ""));
    let mut backend = scene.accept();
    backend.head();
    backend.send(format!("HTTP/1.1 200 OK\r\n{CHUNKED}\r\n"));
    assert_eq!(caller.head().status(), 200);
    for nth in 0..20 {
        let piece = format!("piece {nth}");
        caller.send_chunk(&piece);
        backend.expect_chunks(&piece);
        backend.send_chunk(&piece);
        caller.expect_chunks(&piece);
    }
    caller.send("0\r\n\r\n");
    assert!(backend.chunk().unwrap().is_none());
    backend.send("0\r\n\r\n");
    assert!(caller.chunk().unwrap().is_none());
}

#[test]
fn server_sent_events_arrive_one_by_one() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/events", "accept: text/event-stream\r\nlast-event-id: 6\r\n", ""));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!(seen.one("accept"), "text/event-stream");
    assert_eq!(seen.one("last-event-id"), "6");
    let head = "content-type: text/event-stream\r\ncache-control: no-cache\r\n";
    backend.send(format!("HTTP/1.1 200 OK\r\n{head}{CHUNKED}\r\n"));
    let answer = caller.head();
    assert_eq!(answer.one("content-type"), "text/event-stream");
    assert_eq!(answer.one("cache-control"), "no-cache");
    for nth in 7..27 {
        let event = format!("id: {nth}\ndata: tick\n\n");
        backend.send_chunk(&event);
        caller.expect_chunks(&event);
    }
    // Who has seen enough hangs up, and the backend gets to know.
    drop(caller);
    backend.expect_end();
}

/// The answer is not whole, and shows it: there is no last chunk, or bytes are missing.
#[test]
fn an_answer_that_breaks_off_does_not_look_whole() {
    let scene = Scene::start(&[]);
    let broken = [
        ("transfer-encoding: chunked", "3\r\nabc\r\n"),
        ("transfer-encoding: chunked", "3\r\nabc\r\n5\r\nde"),
        ("transfer-encoding: chunked", "3\r\nabc\r\nnonsense\r\n"),
        ("content-length: 10", "abc"),
    ];
    for (line, body) in broken {
        let mut caller = scene.connect();
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        backend.send(format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n{body}"));
        let mut answer = caller.head();
        assert_eq!(answer.status(), 200);
        drop(backend);
        let ended = caller.body(&mut answer);
        assert!(ended.is_err(), "{line}, {body:?}: it looks whole: {answer:?}");
        assert!("abcde".starts_with(&answer.text()), "{line}, {body:?}: {answer:?}");
    }
}

/// Nor does a request whose caller is gone.
#[test]
fn a_request_that_breaks_off_does_not_look_whole() {
    let scene = Scene::start(&[]);
    let cases = [
        ("transfer-encoding: chunked\r\n", "3\r\nabc\r\n"),
        ("transfer-encoding: chunked\r\n", "3\r\nabc\r\nnonsense\r\n"),
        ("content-length: 10\r\n", "abc"),
    ];
    for (lines, body) in cases {
        let mut caller = scene.connect();
        caller.send(with("POST", "/", lines, body));
        let mut backend = scene.accept();
        let mut seen = backend.head();
        drop(caller);
        let ended = backend.body(&mut seen);
        assert!(ended.is_err(), "{lines}, {body:?}: it looks whole: {seen:?}");
    }
}
