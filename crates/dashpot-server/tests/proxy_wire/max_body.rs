//! How long a request's body may be.

use std::io::Write;

use crate::message::latin;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{OK, Scene, post, with};
use crate::wire::has_no_patience;

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

#[test]
fn who_says_that_it_is_longer_is_refused_at_once() {
    let scene = Scene::start(&["--max-body", "10"]);
    for lines in ["content-length: 11\r\n", "content-length: 1000000000000\r\n"] {
        let mut caller = scene.connect();
        // Nothing of it has been sent.
        caller.send(with("POST", "/", lines, ""));
        caller.answer().is_problem(413);
    }
    scene.goes_on();
}

/// The rest of it is not taken for the next request.
#[test]
fn what_comes_after_a_refusal_is_no_request() {
    let scene = Scene::start(&["--max-body", "10"]);
    let mut caller = scene.connect();
    caller.send(post("/", "GET /smuggled HTTP/1.1\r\nhost: example.com\r\n\r\n"));
    caller.answer().is_problem(413);
    caller.end();
    assert_eq!(latin(&caller.until_cut()), "");
    scene.goes_on();
}

#[test]
fn as_much_as_it_says_may_come() {
    let scene = Scene::start(&["--max-body", "10"]);
    assert_eq!(scene.seen(post("/", "0123456789")).text(), "0123456789");
    let chunks = "5\r\n01234\r\n5\r\n56789\r\n0\r\n\r\n";
    assert_eq!(scene.seen(with("POST", "/", CHUNKED, chunks)).text(), "0123456789");
}

/// With chunks it shows late. Then the backend has heard the beginning, and does not take it for the whole.
#[test]
fn chunks_are_refused_when_they_are_too_many() {
    let scene = Scene::start(&["--max-body", "10"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", CHUNKED, "5\r\n01234\r\n"));
    let mut backend = scene.accept();
    let mut seen = backend.head();
    backend.expect_chunks("01234");
    caller.send("6\r\n567890\r\n0\r\n\r\n");
    caller.answer().is_problem(413);
    let ended = backend.body(&mut seen);
    assert!(ended.is_err_and(|error| !has_no_patience(&error)), "it looks whole: {seen:?}");
    drop((caller, backend));
    scene.goes_on();
}

#[test]
fn over_http_2_it_is_the_same() {
    let scene = Scene::start(&["--max-body", "10"]);
    let caller = Multiplexed::to(scene.address);
    let mut asked = caller.begin(request("POST", "/"), false);
    asked.data("01234", false);
    let mut backend = scene.accept();
    let mut seen = backend.head();
    backend.expect_chunks("01234");
    asked.data("567890", true);
    asked.answer().is_problem(413);
    assert!(backend.body(&mut seen).is_err(), "it looks whole: {seen:?}");
    drop(backend);
    scene.goes_on();
}

#[test]
fn sixteen_mebibytes_are_the_usual() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "content-length: 16777217\r\n", ""));
    caller.answer().is_problem(413);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "content-length: 16777216\r\n", "begun"));
    let mut backend = scene.accept();
    assert_eq!(backend.head().one("content-length"), "16777216");
    backend.expect_bytes("begun");
}

#[test]
fn unlimited_is_without_limit() {
    let scene = Scene::start(&["--max-body", "unlimited"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "content-length: 1000000000000\r\n", "begun"));
    let mut backend = scene.accept();
    assert_eq!(backend.head().one("content-length"), "1000000000000");
    backend.expect_bytes("begun");
    drop((caller, backend));
    // More than the usual, all of it.
    let mut caller = scene.connect();
    caller.send(with("POST", "/", CHUNKED, ""));
    let mut backend = scene.accept();
    backend.head();
    let mut writer = caller.stream.try_clone().unwrap();
    let writing = std::thread::spawn(move || {
        let piece = crate::wire::chunk(vec![b'x'; 1 << 20]);
        let all = (0..20).try_for_each(|_| writer.write_all(&piece));
        all.and_then(|()| writer.write_all(b"0\r\n\r\n"))
    });
    let mut came = 0;
    while let Some(piece) = backend.chunk().unwrap() {
        came += piece.len();
    }
    assert_eq!(came, 20 << 20);
    writing.join().unwrap().unwrap();
    backend.expect_bytes("\r\n");
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

#[test]
fn the_file_may_say_so() {
    for (value, length, status) in [("10", 11, 413), ("10", 10, 200), ("'unlimited'", 1_000, 200)] {
        let scene = Scene::with_rules(&format!("[proxy]\nmax_body = {value}\n"), &[]);
        let mut caller = scene.connect();
        caller.send(post("/", &"x".repeat(length)));
        if status == 200 {
            let mut backend = scene.accept();
            assert_eq!(backend.request().body.len(), length);
            backend.send(OK);
        }
        assert_eq!(caller.answer().status(), status, "{value}, {length}");
    }
}
