//! Pages that are too small: their keys move, and nobody notices.

use std::sync::Arc;

use super::{Effort, Scene, any_keys, explore, per_hour, together, work};
use crate::Policy;

const EFFORT: Effort = Effort { interruptions: Some(2), schedules: 1_000 };

/// While one thread brings a key for which there is no place, another takes the last unit of a key
/// that is being moved, and asks once more.
fn taken_while_moved(scene: &Arc<Scene>, policy: &Policy, keys: &[String]) {
    let new = any_keys().nth(keys.len()).unwrap();
    let (moved, newcomer) = (keys[0].clone(), new.clone());
    let taken = together([
        work!([scene, policy] [scene.take(&policy, &newcomer), false]),
        work!([scene, policy] [scene.take(&policy, &moved), scene.take(&policy, &moved)]),
    ]);
    assert_eq!(taken, [[true, false], [true, false]]);
    assert_eq!(scene.used(policy, &keys[0]), 2);
    for key in keys.iter().skip(1).chain([&new]) {
        assert_eq!(scene.used(policy, key), 1, "{key}");
    }
    assert!(scene.store.usage().moved >= keys.len() as u64);
    scene.audit();
}

#[test]
fn a_page_is_replaced_by_a_larger_one() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 2));
        let keys = scene.fill_page(&policy);
        taken_while_moved(&scene, &policy, &keys);
    });
}

#[test]
fn a_page_is_split() {
    explore(Effort { interruptions: Some(1), ..EFFORT }, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 2));
        let keys: Vec<_> = any_keys().take(10).collect();
        assert!(keys.iter().all(|key| scene.take(&policy, key)));
        taken_while_moved(&scene, &policy, &keys);
    });
}

/// Two threads that both find no place for their keys do not both move the others.
#[test]
fn two_newcomers() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 1));
        let mut keys = scene.fill_page(&policy);
        let new: Vec<_> = any_keys().skip(keys.len()).take(2).collect();
        let take = |key: &String| work!([scene, policy, key] scene.take(&policy, &key));
        assert_eq!(together(new.iter().map(take)), [true, true]);
        keys.extend(new);
        for key in &keys {
            assert_eq!(scene.used(&policy, key), 1, "{key}");
        }
        assert_eq!(scene.store.len(), 7);
        scene.audit();
    });
}

/// A page that is not led to yet is nobody's business but that of who fills it.
#[test]
fn a_sweep_keeps_out_of_a_page_that_is_being_filled() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(100), per_hour("p", 1));
        let mut keys = scene.fill_page(&policy);
        let new = any_keys().nth(keys.len()).unwrap();
        let newcomer = new.clone();
        together([
            work!([scene, policy] assert!(scene.take(&policy, &newcomer))),
            work!([scene] scene.store.sweep(scene.store.now(), 6)),
        ]);
        keys.push(new);
        for key in &keys {
            assert_eq!(scene.used(&policy, key), 1, "{key}");
        }
        assert_eq!(scene.store.len(), 6);
        scene.audit();
    });
}
