//! What is said after a body.

use bytes::Bytes;
use http::HeaderMap;

use crate::message::all;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{OK, Scene, with};

fn chunked(lines: &str) -> String {
    with("POST", "/", &format!("transfer-encoding: chunked\r\n{lines}"), "")
}

const ANSWER: &str = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n";

#[test]
fn trailers_of_a_request_reach_the_backend() {
    let scene = Scene::start(&[]);
    let trailers = "X-Sum: 6\r\nx-other: a, b\r\n";
    let request = chunked("trailer: x-sum, x-other\r\n") + "3\r\nabc\r\n0\r\n" + trailers + "\r\n";
    let seen = scene.seen(request);
    assert_eq!(seen.text(), "abc");
    assert_eq!(seen.one("trailer"), "x-sum, x-other");
    assert_eq!(all(&seen.trailers, "x-sum"), ["6"], "{seen:?}");
    assert_eq!(all(&seen.trailers, "x-other"), ["a, b"], "{seen:?}");
}

#[test]
fn trailers_of_an_answer_reach_the_caller() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", "te: trailers\r\nconnection: te\r\n", ""));
    let mut backend = scene.accept();
    assert_eq!(backend.request().one("te"), "trailers");
    backend.send(format!("{ANSWER}trailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nX-Sum: 6\r\n\r\n"));
    let answer = caller.answer();
    assert_eq!((answer.text().as_str(), answer.one("trailer")), ("abc", "x-sum"));
    assert_eq!(all(&answer.trailers, "x-sum"), ["6"], "{answer:?}");
}

/// What nobody announced is left out, over HTTP/1; the rest is whole.
#[test]
fn trailers_of_a_request_that_nobody_announced_are_left_out() {
    let scene = Scene::start(&[]);
    let seen = scene.seen(chunked("") + "3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n");
    assert_eq!(seen.text(), "abc");
    assert!(seen.trailers.is_empty(), "{seen:?}");
}

#[test]
fn trailers_of_an_answer_that_nobody_announced_are_left_out() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", "te: trailers\r\n", ""));
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("{ANSWER}\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n"));
    let answer = caller.answer();
    assert_eq!(answer.text(), "abc");
    assert!(answer.trailers.is_empty(), "{answer:?}");
}

/// Who did not say that it reads them may get them or not; what comes after is read as it should.
#[test]
fn trailers_do_not_spoil_what_comes_after() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    for _ in 0..3 {
        caller.send(chunked("") + "3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n");
        let mut backend = scene.accept();
        assert_eq!(backend.request().text(), "abc");
        backend.send(format!("{ANSWER}\r\n3\r\nabc\r\n0\r\nx-sum: 6\r\n\r\n"));
        assert_eq!(caller.answer().text(), "abc");
    }
}

/// A trailer is never what it would be as a header.
#[test]
fn a_trailer_does_not_become_a_header() {
    let scene = Scene::start(&[]);
    let request = chunked("trailer: x-real-ip, content-length\r\n")
        + "3\r\nabc\r\n0\r\nx-real-ip: 203.0.113.7\r\ncontent-length: 100\r\nhost: other\r\n\r\n";
    let seen = scene.seen(request);
    assert_eq!(seen.one("x-real-ip"), "127.0.0.1");
    assert_eq!(seen.one("host"), "example.com");
    assert_eq!(seen.text(), "abc");
    assert!(!seen.has("content-length"), "{seen:?}");
}

/// Who asked is not said after the body either.
#[test]
fn a_trailer_does_not_say_who_asked() {
    let scene = Scene::start(&[]);
    let request = chunked("trailer: x-real-ip, x_forwarded_for, forwarded, x-sum\r\n")
        + "3\r\nabc\r\n0\r\nx-real-ip: 203.0.113.7\r\nx_forwarded_for: 203.0.113.7\r\n\
           forwarded: for=203.0.113.7\r\nx-sum: 6\r\n\r\n";
    let seen = scene.seen(request);
    assert_eq!(all(&seen.trailers, "x-sum"), ["6"], "{seen:?}");
    let said = seen.trailers.iter().any(|(_, value)| value.contains("203.0.113.7"));
    assert!(!said, "{seen:?}");
}

#[test]
fn over_http_2_they_go_both_ways() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut announced = request("POST", "/");
    announced.headers_mut().insert("te", "trailers".parse().unwrap());
    announced.headers_mut().insert("trailer", "x-sum".parse().unwrap());
    let mut asked = caller.begin(announced, false);
    asked.data("abc", false);
    let mut trailers = HeaderMap::new();
    trailers.insert("x-sum", "6".parse().unwrap());
    asked.sending.send_trailers(trailers).unwrap();
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!((seen.text().as_str(), seen.one("te")), ("abc", "trailers"));
    assert_eq!(all(&seen.trailers, "x-sum"), ["6"], "{seen:?}");
    backend.send(format!("{ANSWER}trailer: x-sum\r\n\r\n3\r\nabc\r\n0\r\nx-sum: 7\r\n\r\n"));
    let answer = asked.answer();
    assert_eq!(answer.text(), "abc");
    let trailers = answer.trailers.expect("trailers");
    assert_eq!(trailers["x-sum"], "7");
}

/// As gRPC does: nobody announces anything there.
#[test]
fn over_http_2_they_need_not_be_announced() {
    let scene = Scene::start(&[]);
    let caller = Multiplexed::to(scene.address);
    let mut with_te = request("POST", "/");
    with_te.headers_mut().insert("te", "trailers".parse().unwrap());
    let mut asked = caller.begin(with_te, false);
    asked.sending.send_data(Bytes::from_static(b"abc"), true).unwrap();
    let mut backend = scene.accept();
    backend.request();
    backend.send(format!("{ANSWER}\r\n3\r\nabc\r\n0\r\nx-status: 0\r\n\r\n"));
    let answer = asked.answer();
    assert_eq!(answer.text(), "abc");
    assert_eq!(answer.trailers.expect("trailers")["x-status"], "0");
    // And none if there are none.
    let asked = caller.ask(request("GET", "/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(OK);
    assert!(asked.answer().trailers.is_none());
}
