//! Stopping: what is under way ends whole, and nothing else holds it up.

use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::client::PATIENCE;
use crate::multiplexed::{Multiplexed, request};
use crate::scene::{FINE, OK, Scene, get, with};
use crate::service::until;
use crate::upgrades::{talk, tunnel};

const AT_ONCE: [&str; 2] = ["--drain-delay", "0s"];

/// Nobody else gets in any more.
#[track_caller]
fn is_closed(scene: &Scene) {
    until("the socket to close", PATIENCE, || TcpStream::connect(scene.address).err());
}

#[test]
fn an_answer_that_is_under_way_ends_whole() {
    let mut scene = Scene::start(&AT_ONCE);
    let mut caller = scene.connect();
    caller.send(get("/slow"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n");
    let mut answer = caller.head();
    scene.signal("TERM");
    is_closed(&scene);
    for _ in 0..5 {
        backend.send_chunk("still here");
    }
    backend.send("0\r\n\r\n");
    caller.body(&mut answer).unwrap();
    assert_eq!(answer.text(), "still here".repeat(5));
    caller.expect_end();
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
    assert!(!scene.log().contains("panicked"), "{}", scene.log());
}

#[test]
fn a_request_that_is_under_way_is_answered() {
    let mut scene = Scene::start(&AT_ONCE);
    let mut caller = scene.connect();
    caller.send(with("POST", "/", "transfer-encoding: chunked\r\n", "3\r\nabc\r\n"));
    let mut backend = scene.accept();
    backend.head();
    backend.expect_chunks("abc");
    scene.signal("TERM");
    is_closed(&scene);
    caller.send("3\r\ndef\r\n0\r\n\r\n");
    backend.expect_chunks("def");
    assert!(backend.chunk().unwrap().is_none());
    backend.send(FINE);
    assert_eq!(caller.answer().text(), "fine");
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
}

#[test]
fn streams_that_are_under_way_are_answered() {
    let mut scene = Scene::start(&AT_ONCE);
    let caller = Multiplexed::to(scene.address);
    let asked: Vec<_> = (0..5).map(|_| caller.ask(request("GET", "/slow"))).collect();
    let mut backends: Vec<_> = asked.iter().map(|_| scene.accept()).collect();
    scene.signal("TERM");
    is_closed(&scene);
    for backend in &mut backends {
        backend.request();
        backend.send(FINE);
    }
    for asked in asked {
        assert_eq!(asked.answer().text(), "fine");
    }
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
}

#[test]
fn idle_connections_do_not_hold_it_up() {
    let flags = ["--threads", "1", "--drain-timeout", "60s"];
    let mut scene = Scene::start(&[&AT_ONCE[..], &flags].concat());
    let mut silent = scene.connect();
    let mut idle = scene.connect();
    idle.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(FINE);
    assert_eq!(idle.answer().text(), "fine");
    let multiplexed = Multiplexed::to(scene.address);
    let asked = multiplexed.ask(request("GET", "/"));
    backend.request();
    backend.send(FINE);
    assert_eq!(asked.answer().text(), "fine");
    scene.signal("TERM");
    assert_eq!(scene.end(Duration::from_secs(10)).code(), Some(0));
    silent.expect_end();
    idle.expect_end();
    backend.expect_end();
}

/// Until then all goes on, so that whoever sends callers here can send them elsewhere.
#[test]
fn first_it_is_unready_then_closed_then_gone() {
    let mut scene = Scene::start(&["--drain-delay", "2s"]);
    let mut caller = scene.connect();
    let begun = Instant::now();
    scene.signal("TERM");
    until("/readyz to say so", Duration::from_secs(2), || {
        (scene.client().get("/readyz").status == 503).then_some(())
    });
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send(OK);
    assert_eq!(caller.answer().status(), 200, "who was there");
    scene.goes_on();
    assert!(begun.elapsed() < Duration::from_secs(2), "too slow to tell");
    is_closed(&scene);
    let closed = begun.elapsed();
    assert!(closed > Duration::from_millis(1900), "closed after {closed:?}");
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
}

/// Who never ends is waited for so long.
#[test]
fn what_is_left_is_cut() {
    let mut scene = Scene::start(&[&AT_ONCE[..], &["--drain-timeout", "1s"]].concat());
    let mut caller = scene.connect();
    caller.send(get("/endless"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n");
    let mut answer = caller.head();
    caller.expect_chunks("abc");
    let begun = Instant::now();
    scene.signal("TERM");
    assert!(caller.body(&mut answer).is_err(), "it looks whole");
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(900), "it was not waited for: {took:?}");
    assert!(took < Duration::from_secs(8), "{took:?}");
    backend.expect_end();
}

/// A tunnel goes on while it may, and no longer.
#[test]
fn tunnels_are_cut_in_the_end() {
    let mut scene = Scene::start(&[&AT_ONCE[..], &["--drain-timeout", "2s"]].concat());
    let (mut caller, mut backend) = tunnel(&scene);
    let begun = Instant::now();
    scene.signal("TERM");
    is_closed(&scene);
    talk(&mut caller, &mut backend);
    caller.expect_end();
    backend.expect_end();
    assert_eq!(scene.end(PATIENCE).code(), Some(0));
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(10), "{took:?}");
}
