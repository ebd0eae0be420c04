//! Answers that come before the request has ended: a backend that has seen enough says so.

use std::io::Write;
use std::thread;

use crate::message::latin;
use crate::scene::{FINE, Scene, get, with};

const LONG: &str = "content-length: 1000000\r\n";

#[test]
fn an_answer_does_not_wait_for_the_rest_of_the_request() {
    let scene = Scene::start(&[]);
    for closing in ["connection: close\r\n", ""] {
        let mut caller = scene.connect();
        caller.send(with("POST", "/", LONG, "the beginning"));
        let mut backend = scene.accept();
        backend.head();
        backend.expect_bytes("the beginning");
        backend.send(format!("HTTP/1.1 401 No\r\n{closing}content-length: 2\r\n\r\nno"));
        let answer = caller.answer();
        assert_eq!((answer.status(), answer.text().as_str()), (401, "no"));
        drop((caller, backend));
        scene.goes_on();
    }
}

/// What is still to come of it is no request, neither here nor at the backend.
#[test]
fn the_rest_of_the_request_is_not_taken_for_another() {
    let scene = Scene::start(&[]);
    let rest = get("/smuggled");
    let lines = format!("content-length: {}\r\n", "the beginning".len() + rest.len());
    let mut caller = scene.connect();
    caller.send(with("POST", "/", &lines, "the beginning"));
    let mut backend = scene.accept();
    backend.head();
    backend.expect_bytes("the beginning");
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    // It may have been closed by now.
    let _ = caller.stream.write_all(rest.as_bytes());
    let _ = caller.stream.shutdown(std::net::Shutdown::Write);
    assert_eq!(latin(&caller.until_cut()), "", "an answer to what is a body");
    let came = latin(&backend.until_cut());
    assert!(came.is_empty() || came == rest, "{came}");
    scene.goes_on();
}

/// Nor is another sent over a connection where the backend still waits for the rest.
#[test]
fn the_backend_is_not_sent_another_request_in_the_middle_of_one() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", LONG, "the beginning"));
    let mut backend = scene.accept();
    backend.head();
    backend.expect_bytes("the beginning");
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    scene.goes_on();
}

/// Whoever says all before it listens is told, too, whether all of it was heard or not.
#[test]
fn a_caller_that_sends_all_of_it_first_is_told() {
    let scene = Scene::start(&[]);
    for _ in 0..5 {
        let mut caller = scene.connect();
        let body = "x".repeat(5_000_000);
        let lines = format!("content-length: {}\r\n", body.len());
        let mut writer = caller.stream.try_clone().unwrap();
        let request = with("POST", "/", &lines, &body);
        let writing = thread::spawn(move || writer.write_all(request.as_bytes()));
        let mut backend = scene.accept();
        let mut seen = backend.head();
        backend.send("HTTP/1.1 401 No\r\nconnection: close\r\ncontent-length: 2\r\n\r\nno");
        let heard = backend.body(&mut seen);
        println!("the backend: {heard:?}; the caller: {:?}", writing.join().unwrap());
        let answer = caller.answer();
        assert_eq!((answer.status(), answer.text().as_str()), (401, "no"));
    }
}
