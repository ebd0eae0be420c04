//! Keys and policies nobody has asked about before.

use super::{Effort, Scene, any_keys, explore, mark, per_hour, together, work};
use crate::memory::page::Page;

const EFFORT: Effort = Effort { interruptions: Some(1), schedules: 1_000 };

/// Two threads that bring the same new key give it one slot.
#[test]
fn a_new_key_is_counted_once() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 1));
        assert!(scene.take(&policy, "another"));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        let taken = together([take(), take()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        assert_eq!(scene.store.len(), 2);
        scene.audit();
    });
}

/// Two threads that bring the same new policy make it one table.
#[test]
fn a_new_policy_has_one_table() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 1));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        let taken = together([take(), take()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        assert_eq!(scene.store.tables.read().all().len(), 1);
        scene.audit();
    });
}

/// Two new keys that belong in the same group get a slot each.
#[test]
fn two_new_keys_get_a_slot_each() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 1));
        assert!(scene.take(&policy, "another"));
        let mut keys = any_keys().filter(|key| Page::home(mark(key), 2) == 0);
        let (one, other) = (keys.next().unwrap(), keys.next().unwrap());
        let taken = together([
            work!([scene, policy, one] scene.take(&policy, &one)),
            work!([scene, policy, other] scene.take(&policy, &other)),
        ]);
        assert_eq!(taken, [true, true]);
        assert_eq!((scene.used(&policy, &one), scene.used(&policy, &other)), (1, 1));
        scene.audit();
    });
}
