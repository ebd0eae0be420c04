//! Who hangs up leaves: the line, the backend, and its place.

use std::time::Duration;

use h2::Reason;

use super::{Scene, worker};
use crate::caller::{Caller, get, request};
use crate::http2::Connection;

fn scene() -> Scene {
    Scene::by(&worker("limit = 1, places = 3, wait = '20s'"))
}

/// One is in, one says this and hangs up while it waits, one is behind it.
#[track_caller]
fn leaves_the_line(said: &str, hang_up: impl Fn(Caller)) {
    let scene = scene();
    let mut first = scene.hold("/hold/1", "");
    let mut leaver = scene.proxy.caller();
    leaver.send(said);
    scene.await_door(1, 1);
    let mut last = scene.line_up("/last", "");
    hang_up(leaver);
    scene.await_door(1, 1);
    scene.stage.release("/hold/1");
    assert_eq!((first.answer().status, last.answer().status), (200, 200));
    assert_eq!(scene.backend.paths(), ["/hold/1", "/last"]);
    scene.await_door(0, 0);
    assert_eq!((scene.count("worker", "allowed"), scene.count("worker", "denied")), (2.0, 0.0));
}

#[test]
fn who_waits_leaves_the_line() {
    leaves_the_line(&get("/leaver"), drop);
    leaves_the_line(&get("/leaver"), Caller::reset);
}

#[test]
fn who_waits_with_a_body_leaves_the_line() {
    leaves_the_line(&request("POST", "/leaver", &[], "body"), drop);
    leaves_the_line("POST /leaver HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\nhalf", drop);
}

#[test]
fn who_waits_with_more_to_ask_leaves_the_line() {
    leaves_the_line(&(get("/leaver") + &get("/leaver/2")), drop);
}

/// A full line has a place again.
#[test]
fn its_place_in_the_line_is_free() {
    let scene = scene();
    let _held = scene.hold("/hold/1", "");
    let mut line: Vec<_> = (0..3).map(|nth| scene.line_up(&format!("/{nth}"), "")).collect();
    assert_eq!(scene.get("/", "").status, 503);
    for nth in [1, 0, 0] {
        drop(line.remove(nth));
        scene.await_door(1, 2);
        line.push(scene.line_up("/new", ""));
        assert_eq!(scene.get("/", "").status, 503);
    }
    drop(line);
    scene.await_door(1, 0);
}

#[test]
fn who_is_served_gives_its_place_to_the_next() {
    let scene = scene();
    for path in ["/hold/1", "/never", "/half/1"] {
        for nth in 0..2 {
            let before = scene.backend.count();
            let leaver = scene.hold(path, "");
            let mut next = scene.line_up("/next", "");
            match nth {
                0 => drop(leaver),
                _ => leaver.reset(),
            }
            assert_eq!(next.answer().status, 200, "{path}");
            assert_eq!(scene.backend.count(), before + 2);
            scene.await_door(0, 0);
        }
    }
}

/// While its body is on the way to the backend.
#[test]
fn who_is_within_its_body_gives_its_place_back() {
    let scene = scene();
    for _ in 0..3 {
        let mut leaver = scene.proxy.caller();
        leaver.send("POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\nhalf");
        scene.await_door(1, 0);
        drop(leaver);
        scene.await_door(0, 0);
    }
}

#[test]
fn a_stream_of_http2_that_is_reset_leaves() {
    let scene = scene();
    let _held = scene.hold("/hold/1", "");
    let mut connection = Connection::to(&scene.proxy);
    let (_, mut waiting) = connection.send("/waits");
    scene.await_door(1, 1);
    waiting.send_reset(Reason::CANCEL);
    scene.await_door(1, 0);
    let (_, mut within) = connection.send_some("/within");
    scene.await_door(1, 1);
    within.send_reset(Reason::CANCEL);
    scene.await_door(1, 0);
    scene.stage.release("/hold/1");
    scene.await_door(0, 0);
    for _ in 0..3 {
        let (_, mut served) = connection.send("/never");
        scene.await_door(1, 0);
        served.send_reset(Reason::CANCEL);
        scene.await_door(0, 0);
    }
    let next = connection.send("/next");
    assert_eq!(connection.status(next), 200);
}

#[test]
fn all_streams_leave_with_their_connection() {
    let scene = scene();
    let mut connection = Connection::to(&scene.proxy);
    let streams = [connection.send("/never"), connection.send("/1"), connection.send("/2")];
    scene.await_door(1, 2);
    drop(streams);
    drop(connection);
    scene.await_door(0, 0);
    assert_eq!(scene.get("/", "").status, 200);
}

/// What it holds elsewhere it gives back as well.
#[test]
fn permits_of_who_waited_are_given_back() {
    let permits = "[[rule]]\nname = 'three'\nlimits = ['3 concurrent']\n";
    let scene = Scene::by(&(permits.to_owned() + &worker("limit = 1, places = 5, wait = '20s'")));
    let mut held = scene.hold("/hold/1", "");
    for _ in 0..4 {
        let waiting = [scene.line_up("/2", ""), scene.line_up("/3", "")];
        assert_eq!(scene.get("/4", "").status, 429, "all three are out");
        drop(waiting);
        scene.await_door(1, 0);
        scene.await_left("three", 2);
    }
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.await_left("three", 3);
}

/// At the moment it is let in, or just before or after.
#[test]
fn who_hangs_up_when_its_turn_comes_takes_no_place_along() {
    // With places enough for all who have left and are not missed yet.
    let scene = Scene::by(&worker("limit = 1, places = 99, wait = '20s'"));
    for nth in 0..60 {
        let mut first = scene.send("/slow/4", "");
        let leaver = scene.send("/slow/1", "");
        std::thread::sleep(Duration::from_micros(2000 + nth * 100));
        if nth % 2 == 0 {
            drop(leaver);
        } else {
            leaver.reset();
        }
        assert_eq!(first.answer().status, 200);
        assert_eq!(scene.get("/", "").status, 200, "after {nth}");
    }
    scene.await_door(0, 0);
}

/// At any moment, again and again: nothing is lost and nobody is forgotten.
#[test]
fn comings_and_goings_lose_no_place() {
    let scene = Scene::by(&worker("limit = 3, places = 4, wait = '50ms'"));
    dashpot_testkit::on_all_threads(6, |thread| {
        for nth in 0..25_u64 {
            let path = ["/slow/8", "/drip/8", "/", "/dies"][(nth as usize + thread as usize) % 4];
            let mut caller = scene.send(path, "");
            match (nth * 7 + thread) % 3 {
                0 => drop(caller.try_answer("GET")),
                1 => {
                    std::thread::sleep(Duration::from_millis((nth + thread) % 12));
                    drop(caller);
                }
                _ => {
                    std::thread::sleep(Duration::from_millis((nth * 3 + thread) % 12));
                    caller.reset();
                }
            }
        }
    });
    scene.await_door(0, 0);
    // All three are there, and no fourth. Of those who hung up, some may reach the backend only now.
    let held: Vec<_> = (0..3).map(|nth| scene.send(&format!("/hold/{nth}"), "")).collect();
    scene.await_door(3, 0);
    assert_eq!(scene.get("/", "").status, 503);
    drop(held);
    scene.await_door(0, 0);
}
