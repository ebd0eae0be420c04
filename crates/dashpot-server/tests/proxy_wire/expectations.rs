//! `Expect: 100-continue`: who is let through is told to go on, and who is not need not send anything.

use dashpot_testkit::process::free_port;

use crate::scene::{OK, Scene, command, get, listener, with};
use crate::service::Directory;

const EXPECT: &str = "expect: 100-continue\r\ncontent-length: 5\r\n";

#[test]
fn who_is_let_through_is_told_to_go_on() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    // Again and again over one connection, however the length is told, and however it is spelt.
    for (lines, body) in [
        (EXPECT, "abcde"),
        ("expect: 100-continue\r\ntransfer-encoding: chunked\r\n", "5\r\nabcde\r\n0\r\n\r\n"),
        ("EXPECT: 100-Continue\r\nContent-Length: 5\r\n", "abcde"),
    ] {
        caller.send(with("POST", "/", lines, ""));
        let go_on = caller.head();
        assert_eq!(go_on.status(), 100, "{lines}: {go_on:?}");
        caller.send(body);
        let mut backend = scene.accept();
        assert_eq!(backend.request().text(), "abcde");
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200, "{lines}");
    }
}

/// Whether the backend says it, too, or not: once is enough.
#[test]
fn it_is_told_once() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", EXPECT, ""));
    assert_eq!(caller.head().status(), 100);
    let mut backend = scene.accept();
    backend.head();
    backend.send("HTTP/1.1 100 Continue\r\n\r\n");
    caller.send("abcde");
    backend.expect_bytes("abcde");
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

#[test]
fn who_does_not_wait_to_be_told_is_served_as_well() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", EXPECT, "abcde"));
    let mut backend = scene.accept();
    assert_eq!(backend.request().text(), "abcde");
    backend.send(OK);
    let mut answer = caller.answer();
    if answer.status() == 100 {
        answer = caller.answer();
    }
    assert_eq!(answer.status(), 200);
}

#[test]
fn who_is_denied_is_not_told_to_go_on() {
    let scene = Scene::start(&["--limit", "1/h"]);
    scene.seen(get("/"));
    for _ in 0..3 {
        let mut caller = scene.connect();
        caller.send(with("POST", "/", EXPECT, ""));
        caller.answer().is_problem(429);
    }
}

/// The body that was not asked for is not taken for a request, nor the next request for the body.
#[test]
fn after_a_denial_nobody_mistakes_what_comes_next() {
    let scene = Scene::start(&["--limit", "1/h"]);
    scene.seen(get("/"));
    let mut caller = scene.connect();
    let smuggled = get("/smuggled");
    let lines = format!("expect: 100-continue\r\ncontent-length: {}\r\n", smuggled.len());
    caller.send(with("POST", "/", &lines, ""));
    caller.answer().is_problem(429);
    // It may have been closed by now.
    let _ = std::io::Write::write_all(&mut caller.stream, smuggled.as_bytes());
    caller.end();
    let said = crate::message::latin(&caller.until_cut());
    assert_eq!(said, "", "an answer to what is a body");
}

#[test]
fn who_would_send_too_much_is_not_told_to_go_on() {
    let scene = Scene::start(&["--max-body", "4"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", EXPECT, ""));
    caller.answer().is_problem(413);
    scene.goes_on();
}

/// Nobody is there to be sent it.
#[test]
fn without_a_backend_nobody_is_told_to_go_on() {
    let home = Directory::new();
    let upstream = format!("http://127.0.0.1:{}", free_port());
    let command = command(home.path(), &["--upstream", &upstream]);
    let scene = Scene::run(home, listener(), command);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", EXPECT, ""));
    caller.answer().is_problem(502);
}

/// It does not know what that is.
#[test]
fn an_old_caller_is_not_told_to_go_on() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(format!("POST / HTTP/1.0\r\nhost: example.com\r\n{EXPECT}\r\nabcde"));
    let mut backend = scene.accept();
    assert_eq!(backend.request().text(), "abcde");
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}
