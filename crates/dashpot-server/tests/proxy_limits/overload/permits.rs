//! Permits of which a part is left to those above: denied for want of room, whatever the class.

use super::{CLASSES, Scene, assert_no_room};

fn scene() -> Scene {
    let rule = "[[rule]]\nname = 'fleet'\nlimits = ['4 concurrent']\n\
        classes = { normal = '75%', background = '50%' }\n";
    Scene::by(&format!("{CLASSES}\n{rule}"))
}

#[test]
fn each_class_may_fill_its_part_and_hears_503() {
    let scene = scene();
    let _background = [scene.hold("/hold/b1", "background"), scene.hold("/hold/b2", "background")];
    assert_no_room(&scene.get("/", "background"));
    let _normal = scene.hold("/hold/n1", "");
    assert_no_room(&scene.get("/", ""));
    assert_no_room(&scene.get("/", "background"));
    let mut critical = scene.hold("/hold/c1", "critical");
    assert_no_room(&scene.get("/", "critical"));
    assert_eq!(scene.get("/", "unlimited").status, 200);
    scene.stage.release("/hold/c1");
    assert_eq!(critical.answer().status, 200);
    dashpot_testkit::process::until("the permit", crate::caller::PATIENCE, || {
        (scene.get("/", "critical").status == 200).then_some(())
    });
    assert_no_room(&scene.get("/", ""));
}

/// Without classes it is the caller's own limit, and 429.
#[test]
fn without_classes_it_is_429() {
    let scene = Scene::by("[[rule]]\nname = 'fleet'\nlimits = ['1 concurrent']\n");
    let _held = scene.hold("/hold/1", "");
    assert_eq!(scene.get("/", "").status, 429);
}

/// Two gateways on one Redis share what is left to each class.
#[test]
fn a_fleet_shares_them() {
    let redis = dashpot_testkit::RedisServer::start();
    let rules = format!(
        "{CLASSES}\n[store]\nurl = '{}'\ndeadline = '5s'\n[[rule]]\nname = 'fleet'\n\
         limits = ['4 concurrent']\nclasses = {{ normal = '75%', background = '50%' }}\n",
        redis.url()
    );
    let both = [Scene::by(&rules), Scene::by(&rules)];
    for scene in &both {
        let series = format!("dashpot_store_up{{server=\"{}\"}}", redis.address());
        scene.proxy.await_metric(&series, 1.0);
    }
    let _held = [both[0].hold("/hold/1", "background"), both[1].hold("/hold/2", "background")];
    for scene in &both {
        assert_no_room(&scene.get("/", "background"));
    }
    let _more = both[1].hold("/hold/3", "");
    for scene in &both {
        assert_no_room(&scene.get("/", ""));
    }
    assert_eq!(both[0].get("/", "critical").status, 200);
}
