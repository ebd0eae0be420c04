//! Several doors, and doors beside other things.

use std::time::Duration;

use dashpot_testkit::RedisServer;

use super::{Scene, assert_no_room, worker};
use crate::caller::get;

const INNER: &str = "[[rule]]\nname = 'inner'\nmatch = { path = '/in/*' }\n";

/// Who passes one and is turned away at the other holds no place at either.
#[test]
fn all_of_them_or_none() {
    for first in [true, false] {
        let outer = worker("limit = 5, places = 0");
        let inner = format!("{INNER}capacity = {{ limit = 1, places = 0 }}\n");
        let rules = if first { outer + &inner } else { inner + &outer };
        let scene = Scene::by(&rules.replace("/in/*", "/hold/in/*"));
        let mut held = scene.hold("/hold/in/1", "");
        for _ in 0..10 {
            assert_no_room(&scene.get("/hold/in/2", ""));
        }
        scene.await_door(1, 0);
        scene.await_door_of("inner", 1, 0);
        assert_eq!((scene.count("inner", "denied"), scene.count("worker", "denied")), (10.0, 0.0));
        assert_eq!(scene.get("/", "").status, 200);
        scene.stage.release("/hold/in/1");
        assert_eq!(held.answer().status, 200);
        scene.await_door(0, 0);
        scene.await_door_of("inner", 0, 0);
    }
}

/// Who waits at one of them is let in when there is room at both.
#[test]
fn who_waits_at_one_is_let_in_at_both() {
    let rules = worker("limit = 2, places = 5, wait = '20s'")
        + &format!("{INNER}capacity = {{ limit = 1, places = 5, wait = '20s' }}\n");
    let scene = Scene::by(&rules.replace("/in/*", "/hold/in/*"));
    let mut first = scene.hold("/hold/in/1", "");
    let mut second = scene.send("/hold/in/2", "");
    scene.await_door_of("inner", 1, 1);
    scene.stage.release("/hold/in/1");
    assert_eq!(first.answer().status, 200);
    scene.backend.await_count(2);
    // Who hangs up at the second door leaves the first as well.
    let third = scene.send("/hold/in/3", "");
    scene.await_door_of("inner", 1, 1);
    drop(third);
    scene.await_door_of("inner", 1, 0);
    scene.await_door(1, 0);
    scene.stage.release("/hold/in/2");
    assert_eq!(second.answer().status, 200);
    scene.await_door(0, 0);
}

/// The first that turns away says what is answered.
#[test]
fn the_door_that_turns_away_says_what_is_told() {
    let rules = worker("limit = 1, places = 0")
        + "on_deny = { status = 520 }\n"
        + &format!("{INNER}capacity = {{ limit = 1, places = 0 }}\non_deny = {{ status = 521 }}\n");
    let scene = Scene::by(&rules.replace("/in/*", "/hold/in/*"));
    let held = scene.hold("/hold/1", "");
    assert_eq!(scene.get("/", "").status, 520);
    drop(held);
    scene.await_door(0, 0);
    let scene = Scene::by(
        &rules
            .replace(
                "limit = 1, places = 0 }\non_deny = { status = 520",
                "limit = 9, places = 0 }\non_deny = { status = 520",
            )
            .replace("/in/*", "/hold/in/*"),
    );
    let _held = scene.hold("/hold/in/1", "");
    assert_eq!(scene.get("/hold/in/2", "").status, 521);
}

/// A queue first, and then the door; in both it may be hung up.
#[test]
fn a_queue_and_then_a_door() {
    let queue = "[[rule]]\nname = 'q'\nlimits = ['10/s']\nalgorithm = 'leaky-bucket'\nqueue = 9\n";
    let scene = Scene::by(&(queue.to_owned() + &worker("limit = 1, places = 5, wait = '20s'")));
    let mut first = scene.hold("/hold/1", "");
    let mut others: Vec<_> = (0..3).map(|nth| scene.send(&format!("/{nth}"), "")).collect();
    scene.await_door(1, 3);
    assert_eq!(scene.proxy.metric("dashpot_queued"), 0.0);
    drop(others.remove(1));
    scene.await_door(1, 2);
    scene.stage.release("/hold/1");
    assert_eq!(first.answer().status, 200);
    for caller in &mut others {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(scene.backend.count(), 3);
    scene.await_door(0, 0);
}

/// A capacity is about one process, whatever they share.
#[test]
fn each_gateway_has_a_door_of_its_own() {
    let redis = RedisServer::start();
    let store = format!("[store]\nurl = '{}'\ndeadline = '5s'\n", redis.url());
    let rules = store + &worker("limit = 1, places = 0");
    let both = [Scene::by(&rules), Scene::by(&rules)];
    let _held = [both[0].hold("/hold/1", ""), both[1].hold("/hold/1", "")];
    for scene in &both {
        assert_no_room(&scene.get("/", ""));
        assert_eq!(scene.door().in_flight, 1);
    }
    // It needs no Redis either.
    redis.kill();
    for scene in &both {
        assert_no_room(&scene.get("/", ""));
        scene.stage.release("/hold/1");
        scene.await_door(0, 0);
        assert_eq!(scene.get("/", "").status, 200);
    }
}

/// A fact of the body is found first, and the body is passed on whole.
#[test]
fn a_body_that_is_looked_into_waits_too() {
    let by = "[[rule]]\nname = 'each'\nby = ['json:name']\nlimits = ['1/day']\n";
    let scene = Scene::by(&(by.to_owned() + &worker("limit = 1, places = 5, wait = '20s'")));
    let mut held = scene.hold("/hold/1", "");
    let mut waiting = scene.proxy.caller();
    let json = ["content-type: application/json"];
    waiting.send(crate::caller::request("POST", "/", &json, r#"{"name":"a"}"#));
    scene.await_door(1, 1);
    let denied = scene.proxy.caller().ask("POST", "/", &json, r#"{"name":"a"}"#);
    assert_eq!(denied.status, 429, "by its name, before it waits: {denied:?}");
    scene.stage.release("/hold/1");
    assert_eq!((held.answer().status, waiting.answer().status), (200, 200));
    assert_eq!(scene.backend.seen()[1].body, br#"{"name":"a"}"#);
}

/// Those in line when it stops are under way.
#[test]
fn who_waits_when_it_stops_is_served() {
    let mut scene =
        Scene::with(&worker("limit = 1, places = 5, wait = '20s'"), &["--drain-delay", "0s"]);
    let mut held = scene.hold("/hold/1", "");
    let mut waiting = [scene.line_up("/2", ""), scene.line_up("/3", "")];
    scene.proxy.signal("TERM");
    std::thread::sleep(Duration::from_millis(200));
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    for caller in &mut waiting {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(scene.proxy.end().code(), Some(0));
}

/// Browsers' questions before they send are exempt, as from all rules that do not name them.
#[test]
fn a_browsers_question_is_exempt() {
    let scene = Scene::by(&worker("limit = 1, places = 0"));
    let _held = scene.hold("/hold/1", "");
    let lines = ["origin: https://a.example", "access-control-request-method: POST"];
    assert_eq!(scene.proxy.caller().ask("OPTIONS", "/", &lines, "").status, 200);
    assert_no_room(&scene.proxy.caller().try_answer_to(&get("/")).unwrap());
}
