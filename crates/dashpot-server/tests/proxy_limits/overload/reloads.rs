//! Rules that are read again while requests are in, and in line.

use super::{CLASSES, Door, Scene, assert_no_room, worker};
use crate::caller::Answer;

fn reload(scene: &Scene, rules: &str) -> Answer {
    scene.proxy.home.write("rules.toml", rules);
    scene.proxy.admin_post("/v1/rules/reload", "")
}

#[track_caller]
fn reloaded(scene: &Scene, rules: &str) {
    let answer = reload(scene, rules);
    assert_eq!(answer.status, 200, "{answer:?}");
}

const OTHER: &str = "[[rule]]\nname = 'other'\nlimits = ['1000/day']\n";

/// Those who are in are in, and those in line are in line.
#[test]
fn a_change_elsewhere_changes_nothing_at_the_door() {
    let rule = worker("limit = 2, places = 1, wait = '20s'");
    let scene = Scene::by(&rule);
    let mut held = [scene.hold("/hold/1", ""), scene.hold("/hold/2", "")];
    let mut waiting = scene.line_up("/3", "");
    reloaded(&scene, &(rule + OTHER));
    assert_eq!(scene.door(), Door { limit: 2, in_flight: 2, waiting: 1 });
    assert_no_room(&scene.get("/4", ""));
    assert_eq!(scene.backend.count(), 2);
    scene.stage.release("/hold/1");
    assert_eq!((held[0].answer().status, waiting.answer().status), (200, 200));
    scene.stage.release("/hold/2");
    assert_eq!(held[1].answer().status, 200);
    scene.await_door(0, 0);
    // What came of it is not forgotten either.
    assert_eq!((scene.count("worker", "allowed"), scene.count("worker", "denied")), (3.0, 1.0));
}

#[test]
fn a_higher_limit_lets_in_who_waits() {
    let scene = Scene::by(&worker("limit = 1, places = 5, wait = '20s'"));
    let _held = scene.hold("/hold/1", "");
    let _waiting: Vec<_> = (2..5).map(|nth| scene.line_up(&format!("/hold/{nth}"), "")).collect();
    reloaded(&scene, &worker("limit = 3, places = 5, wait = '20s'"));
    scene.backend.await_count(3);
    scene.await_door(3, 1);
    assert_eq!(scene.door().limit, 3);
}

/// Two of four have to leave, and another, before the next is let in.
#[test]
fn a_lower_limit_counts_those_who_are_in() {
    let scene = Scene::by(&worker("limit = 4, places = 5, wait = '20s'"));
    let mut held: Vec<_> = (0..4).map(|nth| scene.hold(&format!("/hold/{nth}"), "")).collect();
    reloaded(&scene, &worker("limit = 2, places = 5, wait = '20s'"));
    assert_eq!(scene.door(), Door { limit: 2, in_flight: 4, waiting: 0 });
    let mut next = scene.line_up("/next", "");
    for (nth, caller) in held.iter_mut().enumerate().take(2) {
        scene.stage.release(&format!("/hold/{nth}"));
        assert_eq!(caller.answer().status, 200);
    }
    scene.await_door(2, 1);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(scene.backend.count(), 4);
    scene.stage.release("/hold/2");
    assert_eq!((held[2].answer().status, next.answer().status), (200, 200));
    scene.stage.release("/hold/3");
    assert_eq!(held[3].answer().status, 200);
    scene.await_door(0, 0);
}

#[test]
fn a_door_that_is_gone_lets_everybody_pass() {
    let scene = Scene::by(&worker("limit = 1, places = 5, wait = '20s'"));
    let mut held = scene.hold("/hold/1", "");
    let mut waiting = scene.line_up("/2", "");
    reloaded(&scene, OTHER);
    assert_eq!(scene.get("/3", "").status, 200);
    let metrics = scene.proxy.admin_get("/metrics").text();
    assert!(!metrics.contains("dashpot_capacity_limit{"), "{metrics}");
    // Who waits there is let in at last, and not forgotten.
    scene.stage.release("/hold/1");
    assert_eq!((held.answer().status, waiting.answer().status), (200, 200));
}

#[test]
fn a_new_door_counts_from_then_on() {
    let scene = Scene::by(OTHER);
    let mut early = scene.hold("/hold/1", "");
    reloaded(&scene, &worker("limit = 1, places = 0"));
    let mut held = scene.hold("/hold/2", "");
    assert_no_room(&scene.get("/", ""));
    scene.stage.release("/hold/1");
    assert_eq!(early.answer().status, 200);
    // It was never in, so it does not leave.
    assert_no_room(&scene.get("/", ""));
    scene.stage.release("/hold/2");
    assert_eq!(held.answer().status, 200);
    scene.await_door(0, 0);
}

/// What was found out stays, as long as the rule says the same.
#[test]
fn a_limit_that_has_adapted_stays() {
    let rule = worker("limit = 20, latency = '20s', tick = '10ms'");
    let scene = Scene::by(&rule);
    let mut caller = scene.proxy.caller();
    dashpot_testkit::process::until("less", crate::caller::PATIENCE, || {
        for _ in 0..20 {
            caller.get("/status/500");
        }
        (scene.door().limit <= 14).then_some(())
    });
    // The last of those rounds may not be over yet.
    let found = dashpot_testkit::process::until("no more", crate::caller::PATIENCE, || {
        let before = scene.door().limit;
        std::thread::sleep(std::time::Duration::from_millis(150));
        (scene.door().limit == before).then_some(before)
    });
    reloaded(&scene, &(rule + OTHER));
    assert_eq!(scene.door().limit, found);
}

#[test]
fn another_wait_and_other_places_hold_from_then_on() {
    let scene = Scene::by(&worker("limit = 1, places = 0"));
    let mut held = scene.hold("/hold/1", "");
    assert_no_room(&scene.get("/", ""));
    reloaded(&scene, &worker("limit = 1, places = 1, wait = '20s'"));
    let mut waiting = scene.line_up("/2", "");
    assert_no_room(&scene.get("/", ""));
    scene.stage.release("/hold/1");
    assert_eq!((held.answer().status, waiting.answer().status), (200, 200));
}

#[test]
fn what_is_wrong_is_refused_with_its_place_and_all_stays() {
    let scene = Scene::by(&worker("limit = 1, places = 0"));
    let _held = scene.hold("/hold/1", "");
    for wrong in ["limit = 0", "places = 3", "limit = 1, wiat = '1s'"] {
        let answer = reload(&scene, &worker(wrong));
        assert_eq!(answer.status, 400, "{wrong}: {answer:?}");
        assert!(answer.text().contains("3:"), "{wrong}: {answer:?}");
    }
    assert_no_room(&scene.get("/", ""));
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 1, waiting: 0 });
}

/// Classes that are said anew hold for those who come.
#[test]
fn other_classes_hold_from_then_on() {
    let rule = format!("{CLASSES}\n{}", worker("limit = 2, places = 0"));
    let scene = Scene::by(&rule);
    let mut held = scene.hold("/hold/1", "background");
    reloaded(&scene, &format!("{rule}classes = {{ background = '50%' }}\n"));
    assert_no_room(&scene.get("/", "background"));
    assert_eq!(scene.get("/", "").status, 200);
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
}

/// Again and again, under load: nobody is lost, and there are never more than the highest limit says.
#[test]
fn under_load_nobody_is_lost() {
    let scene = Scene::by(&worker("limit = 3, places = 50, wait = '20s'"));
    std::thread::scope(|scope| {
        let asking: Vec<_> = (0..6)
            .map(|_| {
                scope.spawn(|| {
                    let mut caller = scene.proxy.caller();
                    (0..40).map(|_| caller.get("/slow/2").status).collect::<Vec<_>>()
                })
            })
            .collect();
        for nth in 0..12 {
            let limit = 1 + nth % 3;
            reloaded(&scene, &worker(&format!("limit = {limit}, places = 50, wait = '20s'")));
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        for asking in asking {
            assert_eq!(asking.join().unwrap(), [200; 40]);
        }
    });
    assert!(scene.stage.most_at_once() <= 3, "{}", scene.stage.most_at_once());
    scene.await_door(0, 0);
}
