//! Callers that do not wait for an answer before they ask again.

use std::fmt::Write as _;
use std::thread;

use crate::scene::{FINE, Scene, get, post, with};
use crate::wire::Wire;

/// Answers with what was asked, until the gateway hangs up.
fn echo(mut backend: Wire, answers: usize) {
    for _ in 0..answers {
        let seen = backend.request();
        let body = format!("{} {}", seen.first, seen.text());
        let length = body.len();
        backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"));
    }
}

#[test]
fn requests_that_come_together_are_answered_in_order() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    let chunked = with("PUT", "/2", "transfer-encoding: chunked\r\n", "2\r\nab\r\n0\r\n\r\n");
    caller.send(
        [get("/0"), post("/1", "GET /smuggled HTTP/1.1\r\n\r\n"), chunked, get("/3")].concat(),
    );
    let backend = scene.accept();
    let answering = thread::spawn(move || echo(backend, 4));
    let answers: Vec<_> = (0..4).map(|_| caller.answer().text()).collect();
    let expected = [
        "GET /0 HTTP/1.1 ",
        "POST /1 HTTP/1.1 GET /smuggled HTTP/1.1\r\n\r\n",
        "PUT /2 HTTP/1.1 ab",
        "GET /3 HTTP/1.1 ",
    ];
    assert_eq!(answers, expected);
    answering.join().unwrap();
}

#[test]
fn a_thousand_of_them_are_answered_in_order() {
    const MANY: usize = 1000;
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    let mut asked = String::new();
    for nth in 0..MANY {
        write!(asked, "{}", get(&format!("/{nth}"))).unwrap();
    }
    let mut writer = caller.stream.try_clone().unwrap();
    let writing = thread::spawn(move || std::io::Write::write_all(&mut writer, asked.as_bytes()));
    let backend = scene.accept();
    let answering = thread::spawn(move || echo(backend, MANY));
    for nth in 0..MANY {
        assert_eq!(caller.answer().text(), format!("GET /{nth} HTTP/1.1 "));
    }
    writing.join().unwrap().unwrap();
    answering.join().unwrap();
}

/// A slow first answer is not overtaken, and neither is one of the gateway's own.
#[test]
fn a_denial_waits_for_the_answer_before_it() {
    let scene = Scene::start(&["--limit", "1/h"]);
    let mut caller = scene.connect();
    caller.send([get("/slow"), get("/denied")].concat());
    let mut backend = scene.accept();
    assert_eq!(backend.request().first, "GET /slow HTTP/1.1");
    backend.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nsl");
    let mut slow = caller.head();
    assert_eq!(slow.status(), 200);
    backend.send("ow");
    caller.body(&mut slow).unwrap();
    assert_eq!(slow.text(), "slow");
    caller.answer().is_problem(429);
}

#[test]
fn what_comes_after_the_last_request_is_not_looked_at() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send([with("GET", "/last", "connection: close\r\n", ""), get("/beyond")].concat());
    let mut backend = scene.accept();
    assert_eq!(backend.request().first, "GET /last HTTP/1.1");
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    assert_eq!(caller.until_cut(), b"");
    drop(backend);
    scene.goes_on();
}

/// Empty lines before a request line are nothing.
#[test]
fn empty_lines_between_requests_are_passed_over() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(format!("{}\r\n{}", get("/0"), get("/1")));
    let mut backend = scene.accept();
    for nth in 0..2 {
        assert_eq!(backend.request().first, format!("GET /{nth} HTTP/1.1"));
        backend.send(FINE);
        assert_eq!(caller.answer().text(), "fine");
    }
}
