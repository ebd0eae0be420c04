//! Rules that only look.

use super::{CLASSES, Door, Scene, worker};

#[test]
fn everybody_passes_a_capacity_in_shadow_and_is_counted() {
    let scene = Scene::by(&(worker("limit = 1, places = 0") + "shadow = true\n"));
    let _held: Vec<_> = (0..4).map(|nth| scene.hold(&format!("/hold/{nth}"), "")).collect();
    assert_eq!(scene.door(), Door { limit: 1, in_flight: 4, waiting: 0 });
    assert_eq!(scene.get("/", "").status, 200);
    assert_eq!(scene.count("worker", "shadow_denied"), 4.0);
    assert_eq!(scene.count("worker", "denied"), 0.0);
    drop(_held);
    scene.await_door(0, 0);
}

/// With places, nobody waits for one either.
#[test]
fn nobody_waits_in_shadow() {
    let rules = worker("limit = 1, places = 9, wait = '20s'") + "shadow = true\n";
    let scene = Scene::by(&rules);
    let _held: Vec<_> = (0..3).map(|nth| scene.hold(&format!("/hold/{nth}"), "")).collect();
    let begun = std::time::Instant::now();
    assert_eq!(scene.get("/", "").status, 200);
    assert!(begun.elapsed() < std::time::Duration::from_secs(10));
    assert_eq!(scene.door().waiting, 0);
}

#[test]
fn permits_in_shadow_leave_nothing_to_anybody() {
    let rules = format!(
        "{CLASSES}\n[[rule]]\nname = 'fleet'\nlimits = ['2 concurrent']\nshadow = true\n\
         classes = {{ background = '50%' }}\n"
    );
    let scene = Scene::by(&rules);
    let _held: Vec<_> =
        (0..3).map(|nth| scene.hold(&format!("/hold/{nth}"), "background")).collect();
    assert_eq!(scene.count("fleet", "shadow_denied"), 2.0);
}
