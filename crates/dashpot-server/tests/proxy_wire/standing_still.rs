//! A gateway that is paused for longer than anybody may take, and goes on: who was on time meanwhile is not blamed for that.

use std::io::{Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use crate::multiplexed::{Multiplexed, request};
use crate::scene::{FINE, OK, Scene, get, with};
use crate::upgrades::tunnel;
use crate::wire::has_no_patience;

/// All of one second, and one thread, so that nobody else looks at sockets.
const FLAGS: [&str; 12] = [
    "--threads",
    "1",
    "--connect-timeout",
    "1s",
    "--response-timeout",
    "1s",
    "--client-timeout",
    "1s",
    "--idle-timeout",
    "1s",
    "--tunnel-timeout",
    "1s",
];

/// Some time after the others did what they could, the gateway stands still, and this is done while it does.
fn while_it_stands_still(scene: &Scene, meanwhile: impl FnOnce()) {
    thread::sleep(Duration::from_millis(100));
    scene.signal("STOP");
    thread::sleep(Duration::from_millis(50));
    let begun = Instant::now();
    meanwhile();
    thread::sleep(Duration::from_millis(1250).saturating_sub(begun.elapsed()));
    scene.signal("CONT");
}

#[test]
fn a_backend_that_answers_is_heard() {
    let scene = Scene::start(&FLAGS);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    while_it_stands_still(&scene, || backend.send(FINE));
    assert_eq!(caller.answer().text(), "fine");
    assert_eq!(scene.metric(r#"dashpot_upstream_failures_total{reason="response_timeout"}"#), 0.0);
}

#[test]
fn over_http_2_it_is_heard_as_well() {
    let scene = Scene::start(&FLAGS);
    let caller = Multiplexed::to(scene.address);
    let asked = caller.ask(request("GET", "/"));
    let mut backend = scene.accept();
    backend.request();
    while_it_stands_still(&scene, || backend.send(FINE));
    assert_eq!(asked.answer().text(), "fine");
}

#[test]
fn an_answer_that_goes_on_is_not_broken_off() {
    let scene = Scene::start(&FLAGS);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    backend.send("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfi");
    let mut answer = caller.head();
    while_it_stands_still(&scene, || backend.send("ne"));
    caller.body(&mut answer).unwrap();
    assert_eq!(answer.text(), "fine");
}

#[test]
fn a_caller_who_goes_on_is_not_late() {
    let scene = Scene::start(&FLAGS);
    // With a body, with a head, and with the first byte of one.
    let mut sends = scene.connect();
    sends.send(with("POST", "/", "content-length: 6\r\n", "abc"));
    let mut backend = scene.accept();
    let mut seen = backend.head();
    let mut asks = scene.connect();
    let (some, rest) = ("GET / HTTP/1.1\r\nhost: exa", "mple.com\r\n\r\n");
    asks.send(some);
    let mut comes = scene.connect();
    while_it_stands_still(&scene, || {
        sends.send("def");
        asks.send(rest);
        comes.send(get("/"));
    });
    backend.body(&mut seen).unwrap();
    assert_eq!(seen.text(), "abcdef");
    backend.send(OK);
    assert_eq!(sends.answer().status(), 200);
    for _ in 0..2 {
        let mut backend = scene.accept();
        backend.request();
        backend.send(OK);
    }
    assert_eq!(asks.answer().status(), 200);
    assert_eq!(comes.answer().status(), 200);
}

#[test]
fn a_caller_who_listens_is_not_let_go() {
    const LENGTH: usize = 32 << 20;
    let scene = Scene::start(&FLAGS);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    let sending = thread::spawn(move || {
        backend.send(format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n"));
        backend.stream.write_all(&vec![b'x'; LENGTH])
    });
    let mut answer = caller.head();
    assert_eq!(answer.length(), Some(LENGTH));
    while_it_stands_still(&scene, || {
        // All that has come so far.
        caller.patience(Duration::from_millis(200));
        let error = caller.body(&mut answer).unwrap_err();
        assert!(has_no_patience(&error), "{error}");
    });
    caller.patience(Duration::from_secs(8));
    let left = (LENGTH - answer.body.len()) as u64;
    let came = std::io::copy(&mut (&caller.stream).take(left), &mut std::io::sink()).unwrap();
    assert_eq!(came, left, "broken off");
    sending.join().unwrap().unwrap();
}

#[test]
fn a_tunnel_in_which_somebody_speaks_is_not_cut_off() {
    let scene = Scene::start(&FLAGS);
    let (mut caller, mut backend) = tunnel(&scene);
    while_it_stands_still(&scene, || caller.send("still here"));
    backend.expect_bytes("still here");
}

/// Who was late without that is late.
#[test]
fn a_backend_that_does_not_answer_is_given_up() {
    let scene = Scene::start(&FLAGS);
    let mut caller = scene.connect();
    caller.send(get("/"));
    let mut backend = scene.accept();
    backend.request();
    while_it_stands_still(&scene, || {});
    let begun = Instant::now();
    caller.answer().is_problem(504);
    assert!(begun.elapsed() < Duration::from_secs(1), "after {:?}", begun.elapsed());
    backend.expect_end();
}
