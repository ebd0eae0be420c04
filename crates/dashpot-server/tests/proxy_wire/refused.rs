//! Requests that can be read in two ways reach nobody.

use std::time::Duration;

use crate::message::{Message, latin};
use crate::scene::{OK, Scene, get, with};

/// Each of them is refused, and its connection closed. Nothing of them reaches the backend.
#[track_caller]
fn are_refused(requests: &[(&str, String)], like_this: impl Fn(&Message)) {
    let scene = Scene::start(&[]);
    let mut passed_on = Vec::new();
    for (what, request) in requests {
        let mut caller = scene.connect();
        caller.send(request.clone() + &get("/smuggled"));
        caller.patience(Duration::from_secs(2));
        match caller.try_head() {
            Ok(Some(mut answer)) => {
                assert_eq!(answer.status(), 400, "{what}: {answer:?}");
                caller.body(&mut answer).unwrap();
                like_this(&answer);
                assert_eq!(latin(&caller.until_cut()), "", "{what}: {answer:?} and more");
            }
            other => passed_on.push(format!("{what}: {other:?}")),
        }
    }
    assert!(passed_on.is_empty(), "not refused: {passed_on:#?}");
    scene.goes_on();
}

/// They are requests, and it is not clear whose.
#[test]
fn hosts_that_are_none_are_refused() {
    let requests = [
        ("no host", "x: y\r\n"),
        ("two hosts", "host: a.example\r\nhost: b.example\r\n"),
        ("the same twice", "host: a.example\r\nhost: a.example\r\n"),
        ("two in one", "host: a.example, b.example\r\n"),
        ("a host and a path", "host: a.example/path\r\n"),
        ("a user", "host: user@a.example\r\n"),
        ("a blank", "host: a example\r\n"),
        ("half a bracket", "host: [::1\r\n"),
        ("no port", "host: a.example:http\r\n"),
        ("two ports", "host: a.example:80:80\r\n"),
        ("a query", "host: a.example?b\r\n"),
        ("a backslash", "host: a\\b\r\n"),
        ("beyond ASCII", "host: caf\u{e9}\r\n"),
    ];
    let requests = requests.map(|(what, lines)| (what, format!("GET / HTTP/1.1\r\n{lines}\r\n")));
    are_refused(&requests, |answer| {
        answer.is_problem(400);
    });
}

#[test]
fn lengths_that_are_none_are_refused() {
    let requests = [
        ("no number", "content-length: many\r\n"),
        ("nothing", "content-length:\r\n"),
        ("a sign", "content-length: +3\r\n"),
        ("less than nothing", "content-length: -3\r\n"),
        ("hexadecimal", "content-length: 0x3\r\n"),
        ("beyond all numbers", "content-length: 99999999999999999999999\r\n"),
        ("two that differ", "content-length: 3\r\ncontent-length: 4\r\n"),
        ("two that differ in one line", "content-length: 3, 4\r\n"),
        ("chunks that are not the last", "transfer-encoding: chunked, gzip\r\n"),
        ("no chunks", "transfer-encoding: gzip\r\n"),
        ("what nobody knows", "transfer-encoding: chunke\r\n"),
        ("a hidden letter", "transfer-encoding: \x0bchunked\r\n"),
        ("quoted", "transfer-encoding: \"chunked\"\r\n"),
        ("identity after chunks", "transfer-encoding: chunked\r\ntransfer-encoding: identity\r\n"),
    ];
    let requests = requests.map(|(what, lines)| (what, with("POST", "/", lines, "abc")));
    let old = "POST / HTTP/1.0\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    let old = [("chunks in HTTP/1.0", old.to_owned())];
    are_refused(&[&requests[..], &old].concat(), |_| ());
}

#[test]
fn heads_that_are_none_are_refused() {
    let head = "GET / HTTP/1.1\r\nhost: a\r\n";
    let requests = [
        ("a folded line", format!("{head}x: a\r\n b\r\n\r\n")),
        ("a folded host", "GET / HTTP/1.1\r\nhost:\r\n a\r\n\r\n".to_owned()),
        ("a blank before a colon", format!("{head}x : a\r\n\r\n")),
        ("a tab before a colon", format!("{head}x\t: a\r\n\r\n")),
        ("a blank before a name", "GET / HTTP/1.1\r\n host: a\r\n\r\n".to_owned()),
        ("a NUL in a value", format!("{head}x: a\0b\r\n\r\n")),
        ("a bell in a value", format!("{head}x: a\x07b\r\n\r\n")),
        ("a return in a value", format!("{head}x: a\rb\r\n\r\n")),
        ("a NUL in a name", format!("{head}x\0: a\r\n\r\n")),
        ("a bracket in a name", format!("{head}x[]: a\r\n\r\n")),
        ("no name", format!("{head}: a\r\n\r\n")),
        ("no colon", format!("{head}nonsense\r\n\r\n")),
        ("a NUL in the line", "GET /\0 HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
        ("a blank in the line", "GET /a b HTTP/1.1\r\nhost: a\r\n\r\n".to_owned()),
    ];
    are_refused(&requests, |_| ());
}

/// The same number twice is one.
#[test]
fn a_length_that_is_repeated_is_one_length() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "content-length: 3\r\ncontent-length: 3\r\n", "abc"));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert_eq!((seen.one("content-length"), seen.text().as_str()), ("3", "abc"));
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

/// The chunks count, the backend sees nothing else, and what comes after is not looked at.
#[test]
fn a_length_beside_chunks_is_removed() {
    let scene = Scene::start(&[]);
    let smuggled = get("/smuggled");
    for order in 0..2 {
        let mut lines = ["content-length: 200\r\n", "transfer-encoding: chunked\r\n"];
        lines.rotate_left(order);
        let mut caller = scene.connect();
        caller.send(with(
            "POST",
            "/",
            &lines.concat(),
            &format!("3\r\nabc\r\n0\r\n\r\n{smuggled}"),
        ));
        let mut backend = scene.accept();
        let seen = backend.request();
        assert!(seen.is_chunked() && !seen.has("content-length"), "{seen:?}");
        assert_eq!(seen.text(), "abc");
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200);
        caller.expect_end();
    }
    scene.goes_on();
}

#[test]
fn broken_chunks_are_broken_off_to_the_backend_as_well() {
    let scene = Scene::start(&[]);
    for broken in [
        "x\r\n",
        "-1\r\n",
        "\r\nabc\r\n0\r\n\r\n",
        "0x1\r\na\r\n0\r\n\r\n",
        "3\r\nabcdef\r\n0\r\n\r\n",
        "3\nabc\n0\n\n",
        "ffffffffffffffffff\r\nabc",
    ] {
        let mut caller = scene.connect();
        caller.send(with("POST", "/", "transfer-encoding: chunked\r\n", "3\r\nabc\r\n"));
        let mut backend = scene.accept();
        let mut seen = backend.head();
        backend.expect_chunks("abc");
        caller.send(format!("{broken}{}", get("/smuggled")));
        assert!(backend.body(&mut seen).is_err(), "{broken:?}: it looks whole: {seen:?}");
        let said = latin(&caller.until_cut());
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 400"), "{broken:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1").count(), usize::from(!said.is_empty()), "{said}");
    }
    scene.goes_on();
}
