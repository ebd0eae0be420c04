//! Connections that are kept, by callers and to the backend, and what becomes of those that end.

use std::thread;
use std::time::Duration;

use crate::scene::{FINE, OK, Scene, get, post, with};
use crate::wire::Wire;

/// The backend sees this request, and the caller the answer.
#[track_caller]
fn served(caller: &mut Wire, backend: &mut Wire, request: &str) {
    caller.send(request);
    let seen = backend.request();
    assert_eq!(seen.first, request.lines().next().unwrap());
    backend.send(FINE);
    let answer = caller.answer();
    assert_eq!((answer.status(), answer.text().as_str()), (200, "fine"));
    assert!(!answer.has("connection"), "it stays: {answer:?}");
}

#[test]
fn one_connection_does_for_many_requests() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(get("/first"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    for nth in 0..50 {
        served(&mut caller, &mut backend, &get(&format!("/{nth}")));
        served(&mut caller, &mut backend, &post("/", &nth.to_string()));
    }
    assert!(!scene.connects_within(Duration::from_millis(50)), "another connection was made");
    assert_eq!(scene.metric("dashpot_upstream_connections_total"), 1.0);
    assert_eq!(scene.metric("dashpot_upstream_retries_total"), 0.0);
}

/// Each thread has its own connections; here there is one.
#[test]
fn callers_that_come_one_after_the_other_share_it() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    caller.send(get("/first"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    for nth in 0..20 {
        served(&mut scene.connect(), &mut backend, &get(&format!("/{nth}")));
    }
    // However the answer's end was told, and if there was none to tell.
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nfine\r\n0\r\n\r\n";
    for answer in [chunked, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 304 Same\r\n\r\n"] {
        caller.send(get("/"));
        backend.request();
        backend.send(answer);
        caller.answer();
    }
    caller.send(with("HEAD", "/", "", ""));
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
    assert_eq!(caller.head().one("content-length"), "1000");
    served(&mut caller, &mut backend, &get("/last"));
}

#[test]
fn those_who_ask_at_once_do_not_wait_for_each_other() {
    let scene = Scene::start(&[]);
    let mut callers: Vec<_> = (0..10).map(|_| scene.connect()).collect();
    let mut backends = Vec::new();
    for (nth, caller) in callers.iter_mut().enumerate() {
        caller.send(get(&format!("/{nth}")));
        let mut backend = scene.accept();
        assert_eq!(backend.request().first, format!("GET /{nth} HTTP/1.1"));
        backends.push(backend);
    }
    // The last is answered first.
    for (nth, (caller, backend)) in callers.iter_mut().zip(&mut backends).enumerate().rev() {
        backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{nth}"));
        assert_eq!(caller.answer().text(), nth.to_string());
    }
}

/// It was closed while nobody used it. Nobody notices, whatever they ask.
#[test]
fn a_kept_connection_that_was_closed_fails_nobody() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    for nth in 0..30 {
        let request = match nth % 3 {
            0 => get("/"),
            1 => post("/", "a body"),
            _ => with("POST", "/", "transfer-encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n"),
        };
        caller.send(&request);
        let mut backend = scene.accept();
        backend.request();
        backend.send(FINE);
        let answer = caller.answer();
        assert_eq!((answer.status(), answer.text().as_str()), (200, "fine"), "{nth}: {request}");
        backend.end();
        // The end is there before the next request is.
        thread::sleep(Duration::from_millis(if nth % 2 == 0 { 0 } else { 20 }));
    }
}

/// Closed in a less friendly way: with a reset.
#[test]
fn a_kept_connection_that_was_reset_fails_nobody() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    for nth in 0..10 {
        caller.send(if nth % 2 == 0 { get("/") } else { post("/", "a body") });
        let mut backend = scene.accept();
        backend.request();
        backend.send(FINE);
        assert_eq!(caller.answer().status(), 200, "{nth}");
        socket2::SockRef::from(&backend.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }
}

#[test]
fn a_backend_that_says_it_closes_is_not_asked_there_again() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    let mut before = Vec::new();
    for nth in 0..5 {
        caller.send(post("/", &nth.to_string()));
        let mut backend = scene.accept();
        assert_eq!(backend.request().text(), nth.to_string());
        backend.send(OK);
        let answer = caller.answer();
        assert_eq!(answer.status(), 200);
        assert!(!answer.has("connection"), "it is no business of the caller's: {answer:?}");
        // It takes its time to do so.
        before.push(backend);
    }
    for backend in &mut before {
        backend.expect_end();
    }
}

/// What nobody asked for is nobody's answer.
#[test]
fn a_kept_connection_over_which_something_comes_is_not_used_again() {
    let scene = Scene::start(&["--threads", "1"]);
    let mut caller = scene.connect();
    for nth in 0..5 {
        caller.send(get("/"));
        let mut backend = scene.accept();
        backend.request();
        backend.send(FINE);
        assert_eq!(caller.answer().text(), "fine", "{nth}");
        backend.send("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nforged");
        thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_caller_that_says_it_closes_is_let_go() {
    let scene = Scene::start(&[]);
    let mut caller = scene.connect();
    caller.send(with("GET", "/", "connection: close\r\n", ""));
    let mut backend = scene.accept();
    let seen = backend.request();
    assert!(!seen.has("connection"), "it is no business of the backend's: {seen:?}");
    backend.send(FINE);
    let answer = caller.answer();
    assert_eq!(answer.text(), "fine");
    assert_eq!(answer.one("connection"), "close");
    caller.expect_end();
    // The backend's connection stays.
    served(&mut scene.connect(), &mut backend, &get("/next"));
}

/// Who closes its side has hung up, and the backend gets to know.
#[test]
fn a_caller_that_hangs_up_is_not_waited_for() {
    let scene = Scene::start(&["--threads", "1"]);
    for half in [true, false] {
        let mut caller = scene.connect();
        caller.send(post("/", "a body"));
        let mut backend = scene.accept();
        backend.request();
        if half {
            caller.end();
            backend.expect_end();
        } else {
            drop(caller);
            backend.expect_end();
        }
        scene.goes_on();
    }
}
