//! A place is held until the answer was sent, to its last byte.

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;

use super::{Scene, assert_no_room, worker};
use crate::caller::{Caller, PATIENCE, request};

const FULL: &str = "limit = 1, places = 0";

#[test]
fn until_the_last_byte_of_the_body() {
    let scene = Scene::by(&worker(FULL));
    let mut caller = scene.hold("/half/1", "");
    assert_eq!(caller.head().unwrap().status, 200);
    assert_eq!(caller.exactly(4).unwrap(), b"half");
    for _ in 0..3 {
        assert_no_room(&scene.get("/", ""));
    }
    scene.stage.release("/half/1");
    assert_eq!(caller.exactly(4).unwrap(), b"half");
    scene.await_door(0, 0);
}

/// A caller that does not read is not done, until it is given up.
#[test]
fn until_who_does_not_read_is_given_up() {
    until("somebody to ask in time", PATIENCE, || {
        let scene = Scene::with(&worker(FULL), &["--client-timeout", "500ms"]);
        let begun = Instant::now();
        let mut lazy = scene.hold("/endless", "");
        let (head, denied) = (lazy.head(), scene.get("/", ""));
        // On a machine that stalls it may have been given up by then.
        if begun.elapsed() >= Duration::from_millis(500) {
            return None;
        }
        assert_eq!(head.unwrap().status, 200);
        assert_no_room(&denied);
        scene.await_door(0, 0);
        assert_eq!(scene.get("/", "").status, 200);
        Some(())
    });
}

#[test]
fn while_the_body_of_a_request_is_sent() {
    let scene = Scene::by(&worker(FULL));
    let mut sender = scene.proxy.caller();
    sender.send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 8\r\n\r\nhalf");
    scene.await_door(1, 0);
    assert_no_room(&scene.get("/", ""));
    sender.send("half");
    assert_eq!(sender.answer().status, 200);
    scene.await_door(0, 0);
}

#[test]
fn answers_without_a_body_hold_nothing() {
    let scene = Scene::by(&worker(FULL));
    for status in [204, 304, 404, 200] {
        let mut caller = scene.send(&format!("/status/{status}"), "");
        let told = caller.head().unwrap();
        assert_eq!(told.status, status, "{told:?}");
        scene.await_door(0, 0);
    }
    let mut caller = scene.proxy.caller();
    for _ in 0..5 {
        caller.send(request("HEAD", "/status/204", &[], ""));
        assert_eq!(caller.try_answer("HEAD").unwrap().status, 204);
        scene.await_door(0, 0);
    }
}

/// A tunnel in which nobody has said anything.
fn switched(scene: &Scene) -> Caller {
    let mut caller = scene.proxy.caller();
    caller.send(request("GET", "/upgrade", &["connection: upgrade", "upgrade: echo"], ""));
    let head = caller.head().unwrap();
    assert_eq!((head.status, head.header("upgrade")), (101, Some("echo")), "{head:?}");
    caller
}

pub(super) fn upgraded(scene: &Scene) -> Caller {
    let mut caller = switched(scene);
    caller.send("a");
    assert_eq!(caller.exactly(2).unwrap(), b"aa");
    caller
}

#[test]
fn a_tunnel_holds_it_until_either_side_closes() {
    let scene = Scene::by(&worker(FULL));
    for nth in 0..3 {
        let mut caller = upgraded(&scene);
        for _ in 0..3 {
            assert_no_room(&scene.get("/", ""));
        }
        caller.send("b");
        assert_eq!(caller.exactly(2).unwrap(), b"bb");
        match nth {
            0 => drop(caller),
            1 => caller.reset(),
            _ => {
                caller.send("!");
                assert!(caller.is_closed());
            }
        }
        scene.await_door(0, 0);
        scene.proxy.await_metric("dashpot_tunnels", 0.0);
    }
}

#[test]
fn a_tunnel_nobody_uses_gives_it_back() {
    until("somebody to ask in time", PATIENCE, || {
        let scene = Scene::with(&worker(FULL), &["--tunnel-timeout", "300ms"]);
        let begun = Instant::now();
        let mut caller = switched(&scene);
        let denied = scene.get("/", "");
        // On a machine that stalls it may be closed by then.
        if begun.elapsed() >= Duration::from_millis(300) {
            return None;
        }
        assert_no_room(&denied);
        assert!(caller.is_closed());
        scene.await_door(0, 0);
        Some(())
    });
}

/// A tunnel waits in the line as all do, and leaves it as all do.
#[test]
fn who_wants_a_tunnel_waits_for_room() {
    let scene = Scene::by(&worker("limit = 1, places = 1, wait = '20s'"));
    let mut held = scene.hold("/hold/1", "");
    let mut caller = scene.proxy.caller();
    caller.send(request("GET", "/upgrade", &["connection: upgrade", "upgrade: echo"], ""));
    scene.await_door(1, 1);
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    assert_eq!(caller.head().unwrap().status, 101);
    caller.send("x");
    assert_eq!(caller.exactly(2).unwrap(), b"xx");
    scene.await_door(1, 0);
    std::thread::sleep(Duration::from_millis(20));
    drop(caller);
    scene.await_door(0, 0);
}
