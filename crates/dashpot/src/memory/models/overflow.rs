//! No room: newcomers are counted in cells, and never in a cell and a slot at once.

use std::time::Duration;

use super::{Effort, Scene, any_keys, explore, mark, per_hour, together, work};
use crate::memory::overflow::Overflow;
use crate::{KeyOperation, Policy, Timestamp};

const EFFORT: Effort = Effort { interruptions: Some(1), schedules: 1_000 };

/// Forgets the key that takes the only slot.
fn make_room(scene: &Scene, policy: &Policy) {
    let _ = scene.store.manage_now(policy, "another".into(), KeyOperation::Reset);
    scene.store.sweep(scene.store.now(), 4);
}

/// Two threads that bring the same new key count it in the same cell.
#[test]
fn a_key_without_room_is_counted_once() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(1), per_hour("p", 1));
        assert!(scene.take(&policy, "another"));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        let taken = together([take(), take()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        assert_eq!(scene.store.len(), 1);
        scene.audit();
    });
}

/// There is no room, and then there is: one thread still counts a key in its cell, another gives it
/// a slot. The unit is taken once.
#[test]
fn a_key_is_counted_in_a_cell_or_in_a_slot() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(1), per_hour("p", 1));
        assert!(scene.take(&policy, "another"));
        let taken = together([
            work!([scene, policy] scene.take(&policy, "k")),
            work!([scene, policy] {
                let _ = scene.store.manage_now(&policy, "another".into(), KeyOperation::Reset);
                scene.take(&policy, "k")
            }),
        ]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        scene.audit();
    });
}

/// Room appears for keys whose cell counts something: they leave it, with all that is counted there, while others still
/// charge it.
#[test]
fn keys_leave_a_cell_that_counts() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(1), per_hour("p", 2));
        assert!(scene.take(&policy, "another") && scene.take(&policy, "k"));
        let reset = work!([scene, policy] {
            make_room(&scene, &policy);
            scene.take(&policy, "k")
        });
        let taken = together([reset, work!([scene, policy] scene.take(&policy, "k"))]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 2);
        scene.audit();
    });
}

/// A cell that is open but not charged yet looks as good as new, and may be dropped. Whoever opened
/// it gets his answer all the same.
#[test]
fn a_cell_is_dropped_before_it_is_charged() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(0), per_hour("p", 1));
        let take = |key: &'static str| work!([scene, policy] scene.take(&policy, key));
        assert_eq!(together([take("a"), take("b")]), [true, true]);
        assert_eq!((scene.used(&policy, "a"), scene.used(&policy, "b")), (1, 1));
        assert_eq!(scene.store.len(), 0);
        scene.audit();
    });
}

/// Several keys of one call without room, in cells of their own.
#[test]
fn keys_of_one_call_in_cells() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(0), per_hour("p", 1));
        let taken = together([
            work!([scene, policy] scene.take_all(&[(&policy, "a"), (&policy, "b")])),
            work!([scene, policy] scene.take_all(&[(&policy, "b"), (&policy, "a")])),
        ]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!((scene.used(&policy, "a"), scene.used(&policy, "b")), (1, 1));
        scene.audit();
    });
}

/// Several keys of one call in the same cell: it counts what all of them take.
#[test]
fn keys_of_one_call_in_the_same_cell() {
    let cell = |key: &str| Overflow::cell(0, mark(key));
    let other = any_keys().find(|key| cell(key) == cell("a")).unwrap();
    explore(EFFORT, move || {
        let (scene, policy) = (Scene::new(0), per_hour("p", 3));
        assert!(scene.take(&policy, "a"));
        let both =
            || work!([scene, policy, other] scene.take_all(&[(&policy, "a"), (&policy, &other)]));
        let taken = together([both(), both()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!((scene.used(&policy, "a"), scene.used(&policy, &other)), (3, 3));
        scene.audit();
    });
}

/// Two keys of one call are in the same cell, and one of them leaves it meanwhile: what it took there and elsewhere is not
/// more than it may.
#[test]
fn one_of_the_keys_of_a_call_leaves_their_cell() {
    let cell = |key: &str| Overflow::cell(0, mark(key));
    let mut alike = ["a".to_owned(), any_keys().find(|key| cell(key) == cell("a")).unwrap()];
    alike.sort_by_key(|key| mark(key));
    for leaves in [0, 1] {
        let alike = alike.clone();
        explore(EFFORT, move || {
            let (scene, policy) = (Scene::new(1), per_hour("p", 3));
            let one = alike[leaves].clone();
            assert!(scene.take(&policy, "another") && scene.take(&policy, &one));
            let both = work!([scene, policy, alike] {
                u64::from(scene.take_all(&[(&policy, &alike[0]), (&policy, &alike[1])]))
            });
            let alone = work!([scene, policy, one] {
                make_room(&scene, &policy);
                u64::from(scene.take(&policy, &one)) + u64::from(scene.take(&policy, &one))
            });
            let taken = 1 + together([both, alone]).iter().sum::<u64>();
            assert!(taken <= 3, "{taken}");
            assert!(scene.used(&policy, &one) >= taken);
            scene.audit();
        });
    }
}

/// A cell that is as good as new is left for a slot by one thread while another still charges it.
#[test]
fn a_cell_is_left_for_a_slot() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(1), per_hour("p", 1));
        assert!(scene.take(&policy, "another") && scene.take(&policy, "k"));
        scene.clock.advance(Duration::from_secs(86_400));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        let taken = together([take(), take()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        scene.audit();
    });
}

/// A key that is counted in a cell is blocked, and gets a slot of its own for that, with what was
/// counted. Nobody finds it there without.
#[test]
fn a_key_in_a_cell_is_blocked() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(0), per_hour("p", 2));
        assert!(scene.take(&policy, "k"));
        let block = work!([scene, policy] {
            let block = KeyOperation::Block(Timestamp::MAX);
            let _ = scene.store.manage_now(&policy, "k".into(), block);
            [false; 2]
        });
        let take = work!([scene, policy] [scene.take(&policy, "k"), scene.take(&policy, "k")]);
        let taken = together([block, take])[1];
        assert!(!taken[1], "one unit was left: {taken:?}");
        let _ = scene.store.manage_now(&policy, "k".into(), KeyOperation::Unblock);
        assert_eq!(scene.used(&policy, "k"), 1 + u64::from(taken[0]));
        scene.audit();
    });
}
