//! So many are in, some wait, and the others are turned away.

use std::time::{Duration, Instant};

use dashpot_testkit::on_all_threads;
use dashpot_testkit::process::until;

use super::bodies::upgraded;
use super::{Door, Scene, assert_no_room, worker};
use crate::caller::{PATIENCE, get, request};

#[test]
fn two_are_in_one_waits_and_the_fourth_is_turned_away() {
    let scene = Scene::by(&worker("limit = 2, places = 1, wait = '20s'"));
    assert_eq!(scene.door(), Door { limit: 2, in_flight: 0, waiting: 0 });
    let mut first = scene.hold("/hold/1", "");
    let mut second = scene.hold("/hold/2", "");
    let mut third = scene.line_up("/hold/3", "");
    assert_eq!(scene.door(), Door { limit: 2, in_flight: 2, waiting: 1 });
    for _ in 0..3 {
        assert_no_room(&scene.get("/fourth", ""));
    }
    assert_eq!(scene.backend.count(), 2);
    scene.stage.release("/hold/1");
    assert_eq!(first.answer().status, 200);
    scene.backend.await_count(3);
    scene.await_door(2, 0);
    scene.stage.release("/hold/2");
    scene.stage.release("/hold/3");
    assert_eq!((second.answer().status, third.answer().status), (200, 200));
    scene.await_door(0, 0);
    assert_eq!(scene.backend.paths(), ["/hold/1", "/hold/2", "/hold/3"]);
    assert_eq!((scene.count("worker", "allowed"), scene.count("worker", "denied")), (3.0, 3.0));
}

#[test]
fn who_comes_first_is_served_first() {
    let scene = Scene::by(&worker("limit = 1, places = 9, wait = '20s'"));
    let mut callers = vec![scene.hold("/hold/0", "")];
    for nth in 1..6 {
        callers.push(scene.line_up(&format!("/hold/{nth}"), ""));
    }
    for (nth, caller) in callers.iter_mut().enumerate() {
        scene.backend.await_count(nth + 1);
        scene.stage.release(&format!("/hold/{nth}"));
        assert_eq!(caller.answer().status, 200);
    }
    let expected: Vec<_> = (0..6).map(|nth| format!("/hold/{nth}")).collect();
    assert_eq!(scene.backend.paths(), expected);
    assert_eq!(scene.stage.most_at_once(), 1);
}

#[test]
fn who_has_waited_for_as_long_as_is_said_is_turned_away() {
    let scene = Scene::by(&worker("limit = 1, places = 5, wait = '400ms'"));
    let held = scene.hold("/hold/1", "");
    let begun = Instant::now();
    // How long they took says that they waited: they may be gone before anybody has looked.
    let mut waiting = [scene.send("/2", ""), scene.send("/3", "")];
    for caller in &mut waiting {
        assert_no_room(&caller.answer());
        let took = begun.elapsed();
        assert!(took >= Duration::from_millis(400) && took < Duration::from_secs(5), "{took:?}");
    }
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 1, waiting: 0 });
    assert_eq!(scene.backend.count(), 1);
    drop(held);
}

/// As many places as the limit, for a second.
#[test]
fn the_usual_places_and_the_usual_wait() {
    let second = Duration::from_secs(1);
    until("two to wait, and a third to be told at once", PATIENCE, || {
        let scene = Scene::by(&worker("limit = 2"));
        let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
        let begun = Instant::now();
        let mut waiting = [scene.send("/3", ""), scene.send("/4", "")];
        while scene.door().waiting < 2 && begun.elapsed() < second {
            std::thread::sleep(Duration::from_millis(3));
        }
        let third = scene.get("/5", "");
        // Later than that, on a machine that stalls, they may have gone before it came, or it has waited.
        if begun.elapsed() >= second {
            return None;
        }
        assert_no_room(&third);
        assert_no_room(&waiting[0].answer());
        let took = begun.elapsed();
        assert!(took >= second && took < Duration::from_secs(6), "{took:?}");
        assert_no_room(&waiting[1].answer());
        Some(())
    });
}

#[test]
fn without_places_nobody_waits() {
    let scene = Scene::by(&worker("limit = 1, places = 0, wait = '20s'"));
    let mut held = scene.hold("/hold/1", "");
    let begun = Instant::now();
    for _ in 0..5 {
        assert_no_room(&scene.get("/", ""));
    }
    assert!(begun.elapsed() < Duration::from_secs(5));
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.await_door(0, 0);
    assert_eq!(scene.get("/", "").status, 200);
}

/// Whatever comes, there are never more at the backend.
#[test]
fn a_crowd_is_never_more_than_the_limit() {
    let scene = Scene::by(&worker("limit = 3, places = 2, wait = '20s'"));
    let statuses = on_all_threads(12, |_| {
        let mut caller = scene.proxy.caller();
        (0..12).map(|_| caller.get("/slow/3").status).collect::<Vec<_>>()
    });
    let statuses = statuses.concat();
    let count = |status| statuses.iter().filter(|told| **told == status).count();
    assert_eq!(count(200) + count(503), 144, "{statuses:?}");
    assert_eq!(scene.backend.count(), count(200));
    assert!(scene.stage.most_at_once() <= 3, "{}", scene.stage.most_at_once());
    assert!(count(200) >= 5 && count(503) > 0, "{statuses:?}");
    let told = [scene.count("worker", "allowed"), scene.count("worker", "denied")];
    assert_eq!(told, [count(200) as f64, count(503) as f64]);
    scene.await_door(0, 0);
}

#[test]
fn what_the_rule_is_not_about_passes() {
    let rules = worker("limit = 1, places = 0") + "match = { path = '/hold/*' }\n";
    let scene = Scene::by(&rules);
    let _held = scene.hold("/hold/1", "");
    assert_eq!(scene.get("/other", "").status, 200);
    assert_no_room(&scene.get("/hold/2", ""));
    assert_eq!(scene.door().in_flight, 1);
}

/// To wait for room is no reason to be sent away, and what was sent meanwhile is passed on.
#[test]
fn no_timeout_ends_the_wait_and_bodies_are_whole() {
    // Longer than a machine stalls.
    let flags = ["--client-timeout", "700ms", "--idle-timeout", "700ms"];
    let more = ["--response-timeout", "700ms", "--connect-timeout", "700ms"];
    let scene = Scene::with(&worker("limit = 1, wait = '20s'"), &[flags, more].concat());
    // A tunnel has the place: none of them ends it.
    let tunnel = upgraded(&scene);
    let mut waiting = scene.proxy.caller();
    waiting.send(request("POST", "/", &[], "all of it"));
    scene.await_door(1, 1);
    std::thread::sleep(Duration::from_millis(900));
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 1, waiting: 1 });
    drop(tunnel);
    assert_eq!(waiting.answer().status, 200);
    assert_eq!(scene.backend.seen()[1].body, b"all of it");
}

/// Who asks before it sends its body does not send it if it is turned away, nor before there is room.
#[test]
fn who_asks_first_is_told_when_there_is_room() {
    let scene = Scene::by(&worker("limit = 1, places = 1, wait = '20s'"));
    let mut held = scene.hold("/hold/1", "");
    let head =
        "POST / HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-length: 4\r\n\r\n";
    let mut waiting = scene.proxy.caller();
    waiting.send(head);
    scene.await_door(1, 1);
    let mut denied = scene.proxy.caller();
    denied.send(head);
    assert_no_room(&denied.answer());
    waiting.stream.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    assert!(waiting.head().is_err(), "nothing is said while it waits");
    waiting.stream.set_read_timeout(Some(PATIENCE)).unwrap();
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    assert_eq!(waiting.head().unwrap().status, 100);
    waiting.send("body");
    assert_eq!(waiting.answer().status, 200);
    assert_eq!(scene.backend.seen()[1].body, b"body");
}

/// One connection, several requests in one go: each is in and out again.
#[test]
fn requests_of_one_connection_come_one_after_another() {
    let scene = Scene::by(&worker("limit = 1, places = 0"));
    let mut caller = scene.proxy.caller();
    caller.send([get("/a"), get("/b"), get("/c")].concat());
    let statuses = [(); 3].map(|()| caller.answer().status);
    assert_eq!(statuses, [200; 3]);
    scene.await_door(0, 0);
}
