//! How the service is doing, as the gateway sees it by itself.

use std::time::Duration;

use dashpot_testkit::on_all_threads;
use dashpot_testkit::process::until;

use super::{Scene, assert_no_room, worker};
use crate::caller::PATIENCE;

/// Down at once, and up so slowly that it can be seen.
fn rule(more: &str) -> String {
    let down = if more.is_empty() { "50%" } else { "80%" };
    format!(
        "[[rule]]\nname = 'r'\nlimits = ['100000/day']\n\
         adaptive = {{ cpu = 'off', tick = '30ms', down = '{down}', up = '101%'{more} }}\n"
    )
}

#[track_caller]
fn keeps_all(scene: &Scene) {
    for _ in 0..10 {
        assert_eq!(scene.factor("r"), 1.0);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[track_caller]
fn goes_down(scene: &Scene) {
    until("it to go down", PATIENCE, || (scene.factor("r") < 0.9).then_some(()));
}

fn ask(scene: &Scene, path: &str, count: usize) {
    let mut caller = scene.proxy.caller();
    for _ in 0..count {
        caller.get(path);
    }
}

/// However long they take to come.
#[test]
fn errors_count_when_there_are_twenty_and_add_up_until_then() {
    let scene = Scene::by(&rule(""));
    ask(&scene, "/status/500", 19);
    keeps_all(&scene);
    ask(&scene, "/status/500", 1);
    goes_down(&scene);
}

#[test]
fn answers_that_never_came_are_errors() {
    let scene = Scene::by(&rule(""));
    for _ in 0..20 {
        assert_eq!(scene.get("/dies", "").status, 502);
    }
    goes_down(&scene);
    let scene = Scene::with(&rule(""), &["--response-timeout", "100ms"]);
    let mut callers: Vec<_> = (0..20).map(|_| scene.send("/never", "")).collect();
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 504);
    }
    goes_down(&scene);
}

/// One of forty is within the band.
#[test]
fn some_errors_are_no_stress() {
    let scene = Scene::by(&rule(""));
    for _ in 0..2 {
        ask(&scene, "/", 39);
        ask(&scene, "/status/500", 1);
    }
    keeps_all(&scene);
}

#[test]
fn what_callers_do_wrong_is_no_error() {
    let scene = Scene::by(&rule(""));
    for status in [400, 404, 429, 499, 301] {
        ask(&scene, &format!("/status/{status}"), 25);
    }
    keeps_all(&scene);
}

/// Only requests that the rule is about, and let pass.
#[test]
fn other_requests_do_not_count() {
    let scene = Scene::by(&(rule("") + "match = { path = '/mine/*' }\n"));
    ask(&scene, "/status/500", 60);
    keeps_all(&scene);
}

/// Denials are no errors, or it could never recover.
#[test]
fn its_own_denials_are_no_errors() {
    let quick = rule("").replace("100000/day", "10/day").replace("101%", "200%");
    let scene = Scene::by(&quick);
    ask(&scene, "/", 10);
    // Told again and again: it may be over before it is seen.
    until("503", PATIENCE, || {
        let told = r#"{"errors":1,"for":"200ms"}"#;
        assert_eq!(scene.proxy.admin_post("/v1/health", told).status, 200);
        (scene.get("/", "").status == 503).then_some(())
    });
    // Denied all the while.
    until("it to recover", PATIENCE, || {
        ask(&scene, "/", 10);
        (scene.factor("r") == 1.0).then_some(())
    });
    ask(&scene, "/", 60);
    keeps_all(&scene);
}

/// Who is turned away at the door was not served badly: it was not served.
#[test]
fn those_turned_away_at_the_door_are_no_errors() {
    let scene = Scene::by(&(rule("") + &worker("limit = 1, places = 0")));
    let _held = scene.hold("/hold/1", "");
    for _ in 0..60 {
        assert_no_room(&scene.get("/", ""));
    }
    keeps_all(&scene);
}

#[test]
fn slow_answers_are_stress() {
    let scene = Scene::by(&rule(", latency = '100ms'"));
    until("it to go down", PATIENCE, || {
        on_all_threads(21, |_| ask(&scene, "/slow/200", 1));
        (scene.factor("r") < 0.9).then_some(())
    });
}

/// It is counted until the answer begins.
#[test]
fn long_answers_are_no_stress() {
    until("answers that begin in time", PATIENCE, || {
        let scene = Scene::by(&rule(", latency = '700ms'"));
        let mut callers = scene.begun_within(Duration::from_millis(600), 25, "/drip/1000")?;
        for caller in &mut callers {
            assert_eq!(caller.exactly(8).unwrap(), b"halfhalf");
        }
        keeps_all(&scene);
        Some(())
    });
}

/// Without errors it goes back up by itself, and all of the limit is there.
#[test]
fn it_recovers() {
    let scene = Scene::by(&rule("").replace("101%", "150%"));
    // Until it is seen: it is still all of it before the next tick, and soon is again when errors end.
    until("it to go down", PATIENCE, || {
        ask(&scene, "/status/500", 20);
        (scene.factor("r") < 0.9).then_some(())
    });
    until("all of it", PATIENCE, || {
        ask(&scene, "/", 20);
        let answer = scene.get("/", "");
        let told = answer.header("ratelimit-policy") == Some(r#""r";q=100000;w=86400"#);
        (told && scene.factor("r") == 1.0).then_some(())
    });
}
