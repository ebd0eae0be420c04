//! Who is turned away at the door gets back what it took of other limits.

use dashpot_testkit::RedisServer;

use super::{CLASSES, Scene, assert_no_room, worker};

const FULL: &str = "limit = 1, places = 0";

fn day(lines: &str) -> String {
    format!("[[rule]]\nname = 'day'\nlimits = ['20/day']\n{lines}\n")
}

/// One is in; ten are turned away; what is left is what that one left.
#[track_caller]
fn given_back(scene: &Scene, left: u64) {
    let _held = scene.hold("/hold/1", "");
    assert_eq!(scene.left("day"), left);
    for _ in 0..10 {
        assert_no_room(&scene.get("/", ""));
    }
    scene.await_left("day", left);
    for _ in 0..10 {
        let answer = scene.proxy.caller().ask("POST", "/", &[], "body");
        assert_no_room(&answer);
    }
    scene.await_left("day", left);
}

#[test]
fn by_every_algorithm() {
    for algorithm in ["token-bucket", "fixed-window", "sliding-log", "sliding-window"] {
        let rule = day(&format!("algorithm = '{algorithm}'"));
        given_back(&Scene::by(&(rule + &worker(FULL))), 19);
    }
}

/// Whichever of the rules is written first.
#[test]
fn whatever_the_order_of_the_rules() {
    given_back(&Scene::by(&(worker(FULL) + &day(""))), 19);
    given_back(&Scene::by(&(worker(FULL) + &day("cost = 3"))), 17);
}

/// What is charged by the answer is not charged by one that was never asked for.
#[test]
fn by_rules_that_wait_for_the_answer() {
    given_back(&Scene::by(&(day("charge_on = [200]") + &worker(FULL))), 19);
    given_back(&Scene::by(&(day("charge_on = [503]") + &worker(FULL))), 19);
    given_back(&Scene::by(&(day("settle = 'header:x-used'\ncost = 2") + &worker(FULL))), 18);
    given_back(&Scene::by(&(day("settle = 'bytes'\ncost = 2") + &worker(FULL))), 18);
}

#[test]
fn by_a_rule_in_shadow() {
    given_back(&Scene::by(&(day("shadow = true") + &worker(FULL))), 19);
}

#[test]
fn on_redis() {
    let redis = RedisServer::start();
    let store = format!("[store]\nurl = '{}'\ndeadline = '5s'\n", redis.url());
    let scene = Scene::by(&(store + &day("algorithm = 'sliding-log'") + &worker(FULL)));
    let series = format!("dashpot_store_up{{server=\"{}\"}}", redis.address());
    scene.proxy.await_metric(&series, 1.0);
    given_back(&scene, 19);
}

/// Those who had waited as well: until their time was over, or somebody took their place.
#[test]
fn by_those_who_had_waited() {
    let scene = |wait: &str| {
        let worker = worker(&format!("limit = 1, places = 1, wait = '{wait}'"));
        Scene::by(&format!("{CLASSES}\n{}{worker}", day("")))
    };
    let short = scene("200ms");
    let mut held = short.hold("/hold/1", "");
    assert_no_room(&short.get("/2", ""));
    short.await_left("day", 19);
    short.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    assert_eq!(short.get("/", "").left(), 18);
    // So long that it is seen what they take while they wait.
    let long = scene("20s");
    let mut held = long.hold("/hold/1", "");
    let mut displaced = long.line_up("/3", "background");
    long.await_left("day", 18);
    let mut critical = long.send("/4", "critical");
    assert_no_room(&displaced.answer());
    long.await_left("day", 18);
    long.stage.release("/hold/1");
    assert_eq!((held.answer().status, critical.answer().status), (200, 200));
    assert_eq!(long.get("/", "").left(), 17);
}

/// A permit that nobody gave back would be missing for ever.
#[test]
fn permits() {
    let permits = "[[rule]]\nname = 'five'\nlimits = ['5 concurrent']\n";
    let scene = Scene::by(&(permits.to_owned() + &worker("limit = 1, places = 2, wait = '100ms'")));
    let mut held = scene.hold("/hold/1", "");
    for _ in 0..4 {
        // Two wait, and one finds no place: nobody waits to see it, or they would be gone.
        let mut callers = ["/2", "/3", "/4"].map(|path| scene.send(path, ""));
        callers.iter_mut().for_each(|caller| assert_no_room(&caller.answer()));
    }
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.await_door(0, 0);
    // All five are there.
    let free = || -> Vec<u16> {
        let body = r#"{"request":{"path":"/"},"reserve":true}"#;
        (0..6).map(|_| scene.proxy.admin_post("/v1/check", body).status).collect()
    };
    assert_eq!(free(), [200, 200, 200, 200, 200, 429]);
}

/// Who finds neither room nor a place to wait in is turned away before anything is asked; else rules with limits are asked first.
#[test]
fn who_is_denied_by_a_limit_takes_no_place_at_the_door() {
    let few = "[[rule]]\nname = 'day'\nlimits = ['1/day']\n";
    let scene = Scene::by(&(worker(FULL) + few));
    let mut held = scene.hold("/hold/1", "");
    assert_eq!(scene.get("/", "").status, 503);
    assert_eq!([scene.count("worker", "denied"), scene.count("day", "denied")], [1.0, 0.0]);
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.await_door(0, 0);
    assert_eq!(scene.get("/", "").status, 429, "and took no place there");
    assert_eq!(scene.count("worker", "allowed"), 1.0);
}

/// A place in a queue is one of what it took.
#[test]
fn a_place_in_a_queue() {
    let queue = "[[rule]]\nname = 'day'\nlimits = ['20/day']\nalgorithm = 'leaky-bucket'\n\
        queue = 19\nundelayed = 19\n";
    given_back(&Scene::by(&(queue.to_owned() + &worker(FULL))), 19);
}
