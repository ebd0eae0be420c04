//! Who goes first when not all can.

use super::{CLASSES, Door, Scene, assert_no_room, worker};

fn scene(capacity: &str, more: &str) -> Scene {
    Scene::by(&format!("{CLASSES}\n{}{more}\n", worker(capacity)))
}

#[test]
fn the_highest_class_is_served_first_and_in_each_who_came_first() {
    let scene = scene("limit = 1, places = 9, wait = '20s'", "");
    let mut first = scene.hold("/hold/0", "");
    let order = ["background", "", "critical", "background", "", "critical"];
    let mut callers: Vec<_> = order
        .iter()
        .enumerate()
        .map(|(nth, class)| scene.line_up(&format!("/hold/{nth}-{class}"), class))
        .collect();
    let expected = ["2-critical", "5-critical", "1-", "4-", "0-background", "3-background"];
    scene.stage.release("/hold/0");
    assert_eq!(first.answer().status, 200);
    for (nth, name) in expected.iter().enumerate() {
        let seen = scene.backend.await_count(nth + 2);
        assert_eq!(seen[nth + 1].path(), format!("/hold/{name}"));
        scene.stage.release(&format!("/hold/{name}"));
    }
    for caller in &mut callers {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(scene.stage.most_at_once(), 1);
    scene.await_door(0, 0);
}

#[test]
fn a_newcomer_takes_the_place_of_the_last_of_a_lower_class() {
    let scene = scene("limit = 1, places = 2, wait = '20s'", "");
    let mut held = scene.hold("/hold/0", "");
    let mut one = scene.line_up("/one", "background");
    let mut two = scene.line_up("/two", "background");
    assert_no_room(&scene.get("/three", "background"));
    // The last of them goes, and the first stays.
    let mut normal = scene.send("/normal", "");
    assert_no_room(&two.answer());
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 1, waiting: 2 });
    let mut critical = scene.send("/critical", "critical");
    assert_no_room(&one.answer());
    // Of the same class nobody makes room, nor of a higher one.
    assert_no_room(&scene.get("/four", "background"));
    assert_no_room(&scene.get("/five", ""));
    let mut another = scene.send("/another", "critical");
    assert_no_room(&normal.answer());
    assert_no_room(&scene.get("/six", "critical"));
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 1, waiting: 2 });
    scene.stage.release("/hold/0");
    for caller in [&mut held, &mut critical, &mut another] {
        assert_eq!(caller.answer().status, 200);
    }
    assert_eq!(scene.backend.paths(), ["/hold/0", "/critical", "/another"]);
    assert_eq!(scene.count("worker", "denied"), 7.0);
    scene.await_door(0, 0);
}

/// Of several lower classes the lowest, whoever came last.
#[test]
fn the_lowest_goes_first() {
    let scene = scene("limit = 1, places = 2, wait = '20s'", "");
    let _held = scene.hold("/hold/0", "");
    let mut background = scene.line_up("/background", "background");
    let _normal = scene.line_up("/normal", "");
    let _critical = scene.send("/critical", "critical");
    assert_no_room(&background.answer());
    assert_eq!(scene.door().waiting, 2);
}

/// Two of four, three of four, and all: whoever is in.
#[test]
fn each_class_may_fill_its_part() {
    let classes = "classes = { normal = '75%', background = '50%' }";
    let scene = scene("limit = 4, places = 9, wait = '20s'", classes);
    let mut background =
        [scene.hold("/hold/b1", "background"), scene.hold("/hold/b2", "background")];
    let mut late = scene.line_up("/hold/b3", "background");
    let mut normal = scene.hold("/hold/n1", "");
    let mut later = scene.line_up("/hold/n2", "");
    let mut critical = scene.hold("/hold/c1", "critical");
    let mut last = scene.line_up("/hold/c2", "critical");
    assert_eq!(scene.door(), Door { limit: 4, in_flight: 4, waiting: 3 });
    // One leaves, and the critical one has its place.
    scene.stage.release("/hold/b1");
    assert_eq!(background[0].answer().status, 200);
    assert_eq!(scene.backend.await_count(5)[4].path(), "/hold/c2");
    // Another: three are in, and that is all for normal ones.
    scene.stage.release("/hold/c1");
    assert_eq!(critical.answer().status, 200);
    scene.await_door(3, 2);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(scene.backend.count(), 5);
    // Two are in, and the normal one is the third.
    scene.stage.release("/hold/c2");
    assert_eq!(last.answer().status, 200);
    assert_eq!(scene.backend.await_count(6)[5].path(), "/hold/n2");
    scene.await_door(3, 1);
    scene.stage.release("/hold/n1");
    assert_eq!(normal.answer().status, 200);
    scene.await_door(2, 1);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(scene.backend.count(), 6, "two are in: no more of the background");
    scene.stage.release("/hold/b2");
    assert_eq!(background[1].answer().status, 200);
    assert_eq!(scene.backend.await_count(7)[6].path(), "/hold/b3");
    scene.stage.release("/hold/n2");
    scene.stage.release("/hold/b3");
    assert_eq!((later.answer().status, late.answer().status), (200, 200));
    scene.await_door(0, 0);
}

/// Those of the background who wait hold up nobody behind them that may go in.
#[test]
fn who_may_not_go_in_yet_holds_up_nobody_else() {
    let scene = scene("limit = 2, places = 9, wait = '20s'", "classes = { background = '50%' }");
    let _held = scene.hold("/hold/1", "background");
    let _waiting = [scene.line_up("/b1", "background"), scene.line_up("/b2", "background")];
    for _ in 0..5 {
        assert_eq!(scene.get("/", "").status, 200);
    }
    assert_eq!(scene.backend.count(), 6);
}

/// It is in, so that others wait for it.
#[test]
fn the_unlimited_pass_and_are_counted() {
    let scene = scene("limit = 1, places = 1, wait = '20s'", "");
    let mut held = scene.hold("/hold/1", "");
    let mut waiting = scene.line_up("/2", "");
    let mut free = [scene.hold("/hold/3", "unlimited"), scene.hold("/hold/4", "unlimited")];
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 3, waiting: 1 });
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.stage.release("/hold/3");
    assert_eq!(free[0].answer().status, 200);
    scene.await_door(1, 1);
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert_eq!(scene.backend.count(), 3, "it waits for who is in");
    scene.stage.release("/hold/4");
    assert_eq!((free[1].answer().status, waiting.answer().status), (200, 200));
    scene.await_door(0, 0);
}

#[test]
fn those_on_the_list_pass_and_are_counted() {
    let rules = worker("limit = 1, places = 0") + "[allow]\nip = ['127.0.0.9']\n";
    let scene = Scene::by(&rules);
    let _held = scene.hold("/hold/1", "");
    let mut friend = scene.proxy.caller_from(9);
    friend.send(super::asked("/hold/2", ""));
    scene.backend.await_count(2);
    scene.await_door(2, 0);
    assert_no_room(&scene.get("/", ""));
    scene.stage.release("/hold/2");
    assert_eq!(friend.answer().status, 200);
    scene.await_door(1, 0);
}

/// By priority: once for each request, however many rules it met.
#[test]
fn what_came_of_each_priority_is_counted() {
    let rules = format!(
        "{CLASSES}\n{}\n[[rule]]\nname = 'day'\nlimits = ['6/day']\n",
        worker("limit = 1, places = 0")
    );
    let scene = Scene::by(&rules);
    let mut held = scene.hold("/hold/1", "critical");
    for class in ["critical", "background", "background", "unlimited", ""] {
        scene.get("/", class);
    }
    scene.stage.release("/hold/1");
    assert_eq!(held.answer().status, 200);
    scene.await_door(0, 0);
    let statuses: Vec<_> = (0..8).map(|_| scene.get("/", "background").status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 3, "{statuses:?}");
    let of = |name: &str| {
        ["allowed", "denied"].map(|what| {
            scene.proxy.metric(&format!("dashpot_priority_{what}_total{{priority=\"{name}\"}}"))
        })
    };
    assert_eq!([of("first"), of("last"), of("free")], [[1.0, 1.0], [5.0, 5.0], [1.0, 0.0]]);
}
