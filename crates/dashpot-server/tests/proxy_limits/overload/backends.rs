//! Backends that fail: no place is lost, and what fails too often is overload.

use dashpot_testkit::process::{free_port, until};

use super::{Scene, assert_no_room, worker};
use crate::caller::{PATIENCE, get};
use crate::home::Home;
use crate::proxy::{PORTS, Proxy};

/// So patient that no answer is slow.
const WATCHED: &str = "limit = 20, latency = '20s', tick = '10ms', max = 40";

#[test]
fn a_backend_that_dies_leaves_no_place_taken() {
    let scene = Scene::by(&worker("limit = 1, places = 0"));
    for _ in 0..3 {
        assert_eq!(scene.get("/dies", "").status, 502);
        scene.await_door(0, 0);
        assert!(scene.proxy.caller().try_answer_to(&get("/dies-half")).is_err());
        scene.await_door(0, 0);
        assert_eq!(scene.get("/status/500", "").status, 500);
        scene.await_door(0, 0);
    }
}

#[test]
fn a_backend_that_does_not_answer_in_time_leaves_no_place_taken() {
    let scene = Scene::with(
        &worker("limit = 1, places = 1, wait = '20s'"),
        &["--response-timeout", "200ms"],
    );
    let mut late = scene.hold("/never", "");
    // It waits, unless that time was over before it came; and may be answered late itself, by a machine that stalls.
    let mut next = scene.send("/", "");
    assert_eq!(late.answer().status, 504);
    let status = next.answer().status;
    assert!([200, 504].contains(&status), "{status}");
    scene.await_door(0, 0);
}

#[test]
fn a_backend_that_is_not_there_leaves_no_place_taken() {
    let home = Home::new();
    home.write("rules.toml", &worker("limit = 1, places = 0"));
    let url = format!("http://127.0.0.1:{}", free_port());
    let flags = ["proxy", "--config", "rules.toml", "--upstream", &url];
    let proxy = Proxy::run(home, &[&flags, &PORTS[..]].concat(), |_| {});
    assert_eq!(proxy.statuses("/", &[], 10), [502; 10]);
    proxy.await_metric(r#"dashpot_capacity_in_flight{rule="worker"}"#, 0.0);
}

/// Asks for this until the limit is so.
#[track_caller]
fn until_limit(scene: &Scene, paths: &[&str], is_so: impl Fn(u64) -> bool) -> u64 {
    let mut caller = scene.proxy.caller();
    until("the limit to change", PATIENCE, || {
        for path in paths.iter().cycle().take(20) {
            if caller.try_answer_to(&get(path)).is_err() {
                caller = scene.proxy.caller();
            }
        }
        Some(scene.door().limit).filter(|limit| is_so(*limit))
    })
}

#[test]
fn errors_are_overload_too() {
    let scene = Scene::by(&worker(WATCHED));
    until_limit(&scene, &["/status/500"], |limit| limit <= 14);
}

#[test]
fn a_backend_that_dies_is_an_error() {
    let scene = Scene::by(&worker(WATCHED));
    until_limit(&scene, &["/dies", "/dies", "/"], |limit| limit <= 17);
}

/// Two of ten are more than one of twenty, by more than chance would have it.
#[test]
fn some_errors_are_enough() {
    let scene = Scene::by(&worker(WATCHED));
    let mut some = ["/"; 8].to_vec();
    some.extend(["/status/503"; 2]);
    until_limit(&scene, &some, |limit| limit <= 17);
}

#[test]
fn the_limit_stops_at_the_least() {
    let scene = Scene::by(&worker(&format!("{WATCHED}, min = 18")));
    until_limit(&scene, &["/status/500"], |limit| limit == 18);
    let mut caller = scene.proxy.caller();
    for _ in 0..60 {
        caller.get("/status/500");
    }
    assert_eq!(scene.door().limit, 18);
}

/// What callers do wrong is not the backend's fault; nor are as many errors as are allowed.
#[test]
fn what_is_no_error_is_no_overload() {
    for (more, path) in
        [("", "/status/404"), ("", "/status/429"), (", errors = '100%'", "/status/500")]
    {
        let scene = Scene::by(&worker(&format!("{WATCHED}{more}")));
        let mut caller = scene.proxy.caller();
        for _ in 0..120 {
            caller.get(path);
        }
        assert_eq!(scene.door().limit, 20, "{path}{more}");
    }
}

/// Without a latency the limit is what it is.
#[test]
fn a_limit_that_does_not_adapt_stays() {
    let scene = Scene::by(&worker("limit = 5, places = 0"));
    let mut caller = scene.proxy.caller();
    for _ in 0..60 {
        assert_eq!(caller.get("/status/500").status, 500);
    }
    assert_eq!(scene.door().limit, 5);
    let _held: Vec<_> = (0..5).map(|nth| scene.hold(&format!("/hold/{nth}"), "")).collect();
    assert_no_room(&scene.get("/", ""));
}

/// Who is turned away did not fail at the backend.
#[test]
fn who_is_turned_away_is_no_error() {
    let scene = Scene::by(&worker("limit = 2, latency = '20s', tick = '10ms', places = 0"));
    let _held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    for _ in 0..100 {
        assert_no_room(&scene.get("/", ""));
    }
    scene.stage.release("/hold/1");
    scene.stage.release("/hold/2");
    scene.await_door(0, 0);
    let mut caller = scene.proxy.caller();
    for _ in 0..40 {
        caller.get("/");
    }
    assert!(scene.door().limit >= 2, "{:?}", scene.door());
}
