//! Idle keys make room, unless somebody is about to use them.

use std::time::Duration;

use super::{Effort, Scene, any_keys, explore, mark, per_hour, together, work};

const EFFORT: Effort = Effort { interruptions: Some(2), schedules: 1_000 };
const DAY: Duration = Duration::from_secs(86_400);

/// A key that is idle is charged, or forgotten and then charged.
#[test]
fn a_key_is_charged_while_it_is_swept() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 1));
        assert!(scene.take(&policy, "k"));
        scene.clock.advance(DAY);
        let taken = together([
            work!([scene] { scene.store.sweep(scene.store.now(), 4); false }),
            work!([scene, policy] scene.take(&policy, "k")),
        ]);
        assert_eq!(taken, [false, true]);
        assert_eq!(scene.used(&policy, "k"), 1);
        assert!(!scene.take(&policy, "k"));
        assert_eq!(scene.store.len(), 1);
        scene.audit();
    });
}

/// A newcomer takes the place of an idle key while that one comes back.
#[test]
fn a_key_comes_back_while_its_place_is_taken() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(2), per_hour("p", 1));
        assert!(scene.take(&policy, "k") && scene.take(&policy, "another"));
        scene.clock.advance(DAY);
        let taken = together([
            work!([scene, policy] scene.take(&policy, "new")),
            work!([scene, policy] scene.take(&policy, "k")),
        ]);
        assert_eq!(taken, [true, true]);
        assert_eq!((scene.used(&policy, "k"), scene.used(&policy, "new")), (1, 1));
        assert!(!scene.take(&policy, "k") && !scene.take(&policy, "new"));
        assert!(scene.store.len() <= 2);
        scene.audit();
    });
}

/// A page that is nearly empty is replaced by a smaller one while keys are taken and added.
#[test]
fn a_page_shrinks() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 1));
        let keys: Vec<_> = any_keys().take(6).collect();
        assert!(keys.iter().all(|key| scene.take(&policy, key)));
        scene.clock.advance(DAY);
        assert!(scene.take(&policy, &keys[0]));
        let (new, idle) = (keys[0].clone() + "new", keys[1].clone());
        let (newcomer, back) = (new.clone(), idle.clone());
        together([
            work!([scene] scene.store.sweep(scene.store.now(), 6)),
            work!([scene, policy] {
                assert!(scene.take(&policy, &back));
                assert!(scene.take(&policy, &newcomer));
            }),
        ]);
        for key in [&keys[0], &idle, &new] {
            assert_eq!(scene.used(&policy, key), 1, "{key}");
        }
        scene.audit();
    });
}

/// Two neighbouring pages become one while a key of each is charged.
#[test]
fn neighbours_are_joined() {
    explore(Effort { interruptions: Some(1), ..EFFORT }, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 1));
        let keys: Vec<_> = any_keys().take(12).collect();
        assert!(keys.iter().all(|key| scene.take(&policy, key)));
        scene.clock.advance(DAY);
        let top = |key: &&String| mark(key) >> 63 == 0;
        let (low, high) = (keys.iter().find(top).unwrap(), keys.iter().find(|k| !top(k)).unwrap());
        assert!(scene.take(&policy, high));
        let (charged, low) = (low.clone(), low.clone());
        together([
            work!([scene] scene.store.sweep(scene.store.now(), 12)),
            work!([scene, policy] assert!(scene.take(&policy, &charged))),
        ]);
        assert_eq!((scene.used(&policy, &low), scene.used(&policy, high)), (1, 1));
        scene.audit();
    });
}
