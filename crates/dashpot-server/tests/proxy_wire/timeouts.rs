//! How long anybody is waited for. What is waited for is said in milliseconds here; the usual is a matter of minutes.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use crate::scene::{FINE, OK, Scene, get, with};
use crate::wire::{Wire, has_no_patience};

const CHUNKED: &str = "transfer-encoding: chunked\r\n";

/// Not before half a second, and not much later.
#[track_caller]
fn is_due(begun: Instant) {
    let took = begun.elapsed();
    let due = Duration::from_millis(430)..Duration::from_secs(8);
    assert!(due.contains(&took), "after {took:?}");
}

#[test]
fn a_head_is_waited_for_so_long() {
    let scene = Scene::start(&["--client-timeout", "500ms"]);
    for begun_with in ["G", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nhost: example.com\r\nx-a: b"] {
        let mut caller = scene.connect();
        let begun = Instant::now();
        caller.send(begun_with);
        caller.expect_end();
        is_due(begun);
    }
    // The second one on a connection as well.
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    let begun = Instant::now();
    caller.send("GET / HT");
    caller.expect_end();
    is_due(begun);
}

/// From its first byte to its last: to say a little now and then does not help.
#[test]
fn a_head_by_the_byte_is_not_waited_for_any_longer() {
    let scene = Scene::start(&["--client-timeout", "500ms"]);
    let caller = scene.connect();
    let begun = Instant::now();
    let mut writer = caller.stream.try_clone().unwrap();
    writer.write_all(b"GET / HTTP/1.1\r\nx-slow: ").unwrap();
    caller.patience(Duration::from_millis(50));
    let mut caller = caller;
    while begun.elapsed() < Duration::from_secs(8) {
        match caller.try_head() {
            Ok(None) => break,
            Err(error) if has_no_patience(&error) => {}
            Err(_) => break,
            Ok(answer) => panic!("{answer:?}"),
        }
        let _ = writer.write_all(b"a");
    }
    is_due(begun);
}

#[test]
fn a_body_is_waited_for_so_long() {
    let scene = Scene::start(&["--client-timeout", "500ms"]);
    for (lines, some) in [
        ("content-length: 10\r\n", "abc"),
        ("content-length: 10\r\n", ""),
        (CHUNKED, "3\r\nabc\r\n"),
        (CHUNKED, "3\r\na"),
    ] {
        let mut caller = scene.connect();
        let begun = Instant::now();
        caller.send(with("POST", "/", lines, some));
        let mut backend = scene.accept();
        let mut seen = backend.head();
        caller.answer().is_problem(408);
        is_due(begun);
        caller.expect_end();
        assert!(backend.body(&mut seen).is_err(), "{lines}, {some:?}: it looks whole: {seen:?}");
    }
    scene.goes_on();
}

/// It is each wait that is limited, not all of them together.
#[test]
fn who_is_slow_and_goes_on_is_waited_for() {
    let flags = ["--client-timeout", "1s", "--response-timeout", "1s", "--idle-timeout", "1s"];
    let scene = Scene::start(&flags);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", CHUNKED, ""));
    let mut backend = scene.accept();
    backend.head();
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2200) {
        caller.send_chunk("abc");
        backend.expect_chunks("abc");
        thread::sleep(Duration::from_millis(100));
    }
    caller.send("0\r\n\r\n");
    assert!(backend.chunk().unwrap().is_none());
    backend.send(format!("HTTP/1.1 200 OK\r\n{CHUNKED}\r\n"));
    assert_eq!(caller.head().status(), 200);
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(2200) {
        backend.send_chunk("abc");
        caller.expect_chunks("abc");
        thread::sleep(Duration::from_millis(100));
    }
    backend.send("0\r\n\r\n");
    assert!(caller.chunk().unwrap().is_none());
}

/// Who does not take the answer is let go, and the backend with it.
#[test]
fn who_does_not_listen_is_let_go() {
    let scene = Scene::start(&["--client-timeout", "500ms"]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ncontent-length: 1000000000\r\n\r\n");
    let some = vec![b'x'; 1 << 20];
    let begun = Instant::now();
    backend.stream.set_write_timeout(Some(Duration::from_secs(8))).unwrap();
    let error = (0..200).find_map(|_| backend.stream.write_all(&some).err());
    let error = error.expect("nobody takes 200 MiB");
    assert!(!has_no_patience(&error), "still open: {error}");
    is_due(begun);
    // What was on its way may still arrive; all of it never does.
    let came = caller.until_cut().len();
    assert!(came < 200 << 20, "{came} bytes");
}

#[test]
fn a_connection_without_a_request_is_kept_so_long() {
    let scene = Scene::start(&["--idle-timeout", "500ms"]);
    let begun = Instant::now();
    let mut silent = scene.connect();
    silent.expect_end();
    is_due(begun);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    // Its request is with the backend for longer than that.
    thread::sleep(Duration::from_millis(900));
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    let begun = Instant::now();
    caller.patience(Duration::from_secs(8));
    caller.expect_end();
    is_due(begun);
}

/// Before the first byte of a head nobody is late with it.
#[test]
fn a_connection_without_a_request_may_be_idle_for_longer_than_a_head_may_take() {
    let scene = Scene::start(&["--client-timeout", "300ms"]);
    let mut caller = scene.connect();
    for _ in 0..2 {
        thread::sleep(Duration::from_millis(1000));
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        backend.send(OK);
        assert_eq!(caller.answer().status(), 200);
    }
}

#[test]
fn an_answer_is_waited_for_so_long() {
    let scene = Scene::start(&["--response-timeout", "500ms"]);
    let mut caller = scene.connect();
    for _ in 0..2 {
        let begun = Instant::now();
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        caller.answer().is_problem(504);
        is_due(begun);
        backend.expect_end();
    }
    let failures = scene.metric(r#"dashpot_upstream_failures_total{reason="response_timeout"}"#);
    assert_eq!(failures, 2.0);
}

/// Half a head is no beginning.
#[test]
fn an_answer_that_does_not_begin_in_earnest_has_not_begun() {
    let scene = Scene::start(&["--response-timeout", "500ms"]);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\n");
    caller.answer().is_problem(504);
}

/// It counts from the request's end, and so a long one is no hurry.
#[test]
fn a_long_request_leaves_time_for_the_answer() {
    let scene = Scene::start(&["--response-timeout", "500ms"]);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", CHUNKED, ""));
    let mut backend = scene.accept();
    backend.head();
    thread::sleep(Duration::from_millis(1200));
    caller.send("3\r\nabc\r\n0\r\n\r\n");
    backend.expect_chunks("abc");
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200);
}

#[test]
fn an_answer_that_stops_is_broken_off() {
    let scene = Scene::start(&["--response-timeout", "500ms"]);
    for (line, some) in
        [("content-length: 10", "abc"), ("transfer-encoding: chunked", "3\r\nabc\r\n")]
    {
        let mut caller = scene.connect();
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        let begun = Instant::now();
        backend.send(format!("HTTP/1.1 200 OK\r\n{line}\r\n\r\n{some}"));
        let mut answer = caller.head();
        assert_eq!(answer.status(), 200);
        assert!(caller.body(&mut answer).is_err_and(|error| !has_no_patience(&error)), "{line}");
        assert_eq!(answer.text(), "abc", "{line}");
        is_due(begun);
        backend.expect_end();
    }
}

/// Each of them holds for HTTP/2, where a connection has many streams.
#[test]
fn over_http_2_they_hold_as_well() {
    use crate::multiplexed::{Multiplexed, request};
    let flags = ["--response-timeout", "500ms", "--client-timeout", "500ms"];
    let scene = Scene::start(&[&flags[..], &["--idle-timeout", "500ms"]].concat());
    let caller = Multiplexed::to(scene.address);
    let begun = Instant::now();
    let asked = caller.ask(request("GET", "/"));
    let mut backend = scene.accept();
    backend.request();
    asked.answer().is_problem(504);
    is_due(begun);
    let begun = Instant::now();
    let mut asked = caller.begin(request("POST", "/"), false);
    asked.data("abc", false);
    let mut backend = scene.accept();
    let mut seen = backend.head();
    asked.answer().is_problem(408);
    is_due(begun);
    assert!(backend.body(&mut seen).is_err(), "it looks whole: {seen:?}");
    // Silent, with the preface of HTTP/2 and without the rest.
    let begun = Instant::now();
    let mut silent = Wire::to(scene.address);
    silent.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0");
    silent.until_cut();
    is_due(begun);
}
