//! One key that has a slot, asked about by several threads.

use std::sync::Arc;
use std::time::Duration;

use super::{Effort, Scene, by, explore, fixed, per_hour, together, work};
use crate::{Algorithm, Check, Cost, KeyOperation, Policy, Timestamp};

const EFFORT: Effort = Effort { interruptions: Some(2), schedules: 1_000 };

/// As many are admitted as the limit allows, by all threads together.
#[test]
fn two_threads_take_the_last_unit_once() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 2));
        assert!(scene.take(&policy, "k"));
        the_last_unit_is_taken_once(&scene, &policy);
    });
}

fn the_last_unit_is_taken_once(scene: &Arc<Scene>, policy: &Policy) {
    let take = || work!([scene, policy] scene.take(&policy, "k"));
    let taken = together([take(), take()]);
    assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
    assert_eq!(
        scene.store.decide_now(&[Check::new(policy, "k").cost(0)]).statuses()[0].remaining(),
        0
    );
    scene.audit();
}

/// Three threads, two units, and nobody gives up who could have one.
#[test]
fn three_threads_take_two_units() {
    explore(Effort { interruptions: Some(1), ..EFFORT }, || {
        let (scene, policy) = (Scene::new(4), fixed("p", 3));
        assert!(scene.take(&policy, "k"));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        let taken = together([take(), take(), take()]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 2, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 3);
    });
}

/// The first to take in a new window writes its start and its count. Whoever saw the one and not
/// the other would see a new window with the count of the old, and be denied for nothing.
#[test]
fn no_denial_by_half_a_state() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), fixed("p", 3));
        for _ in 0..3 {
            assert!(scene.take(&policy, "k"));
        }
        scene.clock.advance(Duration::from_secs(3600));
        let take = || work!([scene, policy] scene.take(&policy, "k"));
        assert_eq!(together([take(), take()]), [true, true]);
        assert_eq!(scene.used(&policy, "k"), 2);
    });
}

/// A log of one entry leaves its slot when it gets another; a longer one is kept aside already.
#[test]
fn a_log_is_counted_once() {
    for entries in [1, 2] {
        explore(EFFORT, move || {
            let (scene, policy) = (Scene::new(4), by(Algorithm::SlidingLog, "p", entries + 1));
            for _ in 0..entries {
                assert!(scene.take(&policy, "k"));
                scene.clock.advance(Duration::from_secs(1));
            }
            the_last_unit_is_taken_once(&scene, &policy);
        });
    }
}

/// What is kept aside under a number is another's when the first has come back from there.
#[test]
fn a_number_that_changes_hands() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), by(Algorithm::SlidingLog, "p", 5));
        assert!(scene.take(&policy, "k") && scene.take(&policy, "other"));
        scene.clock.advance(Duration::from_secs(1));
        assert!(scene.take(&policy, "k"), "it is aside now");
        let exchange = work!([scene, policy] {
            let _ = scene.store.manage_now(&policy, "k".into(), KeyOperation::Reset);
            scene.take(&policy, "other")
        });
        let taken = together([exchange, work!([scene, policy] scene.take(&policy, "k"))]);
        assert_eq!(taken, [true, true]);
        assert_eq!(scene.used(&policy, "other"), 2);
        assert!(scene.used(&policy, "k") <= 1, "what was taken before the reset is forgotten");
        scene.audit();
    });
}

/// A key that is blocked is judged where it is kept aside, while it comes back from there.
#[test]
fn the_end_of_a_block_loses_no_count() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 2));
        assert!(scene.take(&policy, "k"));
        let block = KeyOperation::Block(Timestamp::MAX);
        assert!(scene.store.manage_now(&policy, "k".into(), block).is_allowed(), "a peek");
        let unblock = work!([scene, policy] {
            scene.store.manage_now(&policy, "k".into(), KeyOperation::Unblock).is_allowed()
        });
        let taken = together([unblock, work!([scene, policy] scene.take(&policy, "k"))])[1];
        assert_eq!(scene.used(&policy, "k"), 1 + u64::from(taken));
        scene.audit();
    });
}

/// A block moves the state aside; what was used stays used.
#[test]
fn a_block_loses_no_count() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), per_hour("p", 3));
        assert!(scene.take(&policy, "k"));
        let block = work!([scene, policy] {
            let block = KeyOperation::Block(Timestamp::MAX);
            scene.store.manage_now(&policy, "k".into(), block).is_allowed()
        });
        let taken = together([block, work!([scene, policy] scene.take(&policy, "k"))])[1];
        assert!(!scene.take(&policy, "k"), "it is blocked");
        let _ = scene.store.manage_now(&policy, "k".into(), KeyOperation::Unblock);
        assert_eq!(scene.used(&policy, "k"), 1 + u64::from(taken));
        scene.audit();
    });
}

/// Checks that bring different limits for the same counters go on from each other's counts.
#[test]
fn a_changed_limit_loses_no_count() {
    explore(EFFORT, || {
        let (scene, low, high) = (Scene::new(4), per_hour("p", 2), per_hour("p", 4));
        assert!(scene.take(&low, "k"));
        let taken = together([
            work!([scene, low] scene.take(&low, "k")),
            work!([scene, high] scene.take(&high, "k")),
        ]);
        assert!(taken[1], "two of four are left");
        assert_eq!(scene.used(&high, "k"), 2 + u64::from(taken[0]));
        scene.audit();
    });
}

/// What is given back is there for the next one, once.
#[test]
fn what_is_given_back_is_taken_once() {
    explore(EFFORT, || {
        let (scene, policy) = (Scene::new(4), by(Algorithm::Concurrency, "p", 1));
        let check = Check::new(&policy, "k");
        let reservation = check.reservation(&scene.store.decide_now(&[check])).unwrap();
        let back = work!([scene] {
            scene.store.settle_now(&reservation, Cost::new(0));
            scene.take(reservation.policy(), "k")
        });
        let taken = together([back, work!([scene, policy] scene.take(&policy, "k"))]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, "k"), 1);
        scene.audit();
    });
}
