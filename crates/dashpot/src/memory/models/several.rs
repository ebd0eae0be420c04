//! Several keys in one call: all or nothing, seen at one instant.

use std::sync::Arc;

use super::{Effort, Scene, any_keys, explore, mark, per_hour, together, used, work};
use crate::memory::page::Page;
use crate::{Check, Policy};

const EFFORT: Effort = Effort { interruptions: Some(2), schedules: 1_000 };

/// Two keys that are in different groups of their page.
fn apart() -> [String; 2] {
    [0, 1].map(|group| any_keys().find(|key| Page::home(mark(key), 2) == group).unwrap())
}

/// Two calls that name the same keys in opposite orders neither block each other nor take a part.
#[test]
fn opposite_orders() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(4), per_hour("p", 3), apart());
        assert!(scene.take(&policy, &a) && scene.take(&policy, &a) && scene.take(&policy, &b));
        let taken = together([
            work!([scene, policy, a, b] scene.take_all(&[(&policy, &a), (&policy, &b)])),
            work!([scene, policy, a, b] scene.take_all(&[(&policy, &b), (&policy, &a)])),
        ]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!((scene.used(&policy, &a), scene.used(&policy, &b)), (3, 2));
        scene.audit();
    });
}

/// A call on two keys, and a call on one of them.
#[test]
fn two_keys_and_one_of_them() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(4), per_hour("p", 2), apart());
        assert!(scene.take_all(&[(&policy, &a), (&policy, &b)]));
        let taken = together([
            work!([scene, policy, a, b] scene.take_all(&[(&policy, &a), (&policy, &b)])),
            work!([scene, policy, b] scene.take(&policy, &b)),
        ]);
        assert_eq!(taken.iter().filter(|taken| **taken).count(), 1, "{taken:?}");
        assert_eq!(scene.used(&policy, &a), 1 + u64::from(taken[0]));
        assert_eq!(scene.used(&policy, &b), 2);
        scene.audit();
    });
}

/// How much is used of two keys, seen at one instant.
type Look = fn(&Scene, [(&Policy, &str); 2]) -> Vec<u64>;

/// While somebody takes of both, somebody looks at both: he sees both taken, or none.
fn seen_together(scene: &Arc<Scene>, pair: [(&Policy, &str); 2], look: Look) {
    let before = scene.used_of_all(&pair);
    let [(one, a), (two, b)] = pair.map(|(policy, key)| (policy.clone(), key.to_owned()));
    let seen = together([
        work!([scene, one, two, a, b] {
            assert!(scene.take_all(&[(&one, &a), (&two, &b)]));
            None
        }),
        work!([scene, one, two, a, b] Some(look(&scene, [(&one, &a), (&two, &b)]))),
    ]);
    let after: Vec<_> = before.iter().map(|used| used + 1).collect();
    let seen = seen.into_iter().flatten().next().unwrap();
    assert!(seen == before || seen == after, "{seen:?} is neither {before:?} nor {after:?}");
    assert_eq!(scene.used_of_all(&pair), after);
    scene.audit();
}

/// By taking nothing.
fn peek(scene: &Scene, pair: [(&Policy, &str); 2]) -> Vec<u64> {
    scene.used_of_all(&pair)
}

#[test]
fn two_that_are_there() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(4), per_hour("p", 5), apart());
        assert!(scene.take_all(&[(&policy, &a), (&policy, &b)]));
        seen_together(&scene, [(&policy, &a), (&policy, &b)], peek);
    });
}

/// The second is asked for more than there is: nothing is taken, and the answer shows both.
#[test]
fn two_that_are_there_and_denied() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(4), per_hour("p", 5), apart());
        assert!(scene.take_all(&[(&policy, &a), (&policy, &b)]));
        seen_together(&scene, [(&policy, &a), (&policy, &b)], |scene, [(one, a), (two, b)]| {
            let decision =
                scene.store.decide_now(&[Check::new(one, a), Check::new(two, b).cost(5)]);
            assert!(!decision.is_allowed());
            used(&decision)
        });
    });
}

#[test]
fn one_that_is_there_and_one_that_is_new() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(4), per_hour("p", 5), apart());
        assert!(scene.take(&policy, &a));
        seen_together(&scene, [(&policy, &a), (&policy, &b)], peek);
    });
}

#[test]
fn one_that_is_there_and_one_that_overflows() {
    explore(EFFORT, || {
        let (scene, policy, [a, b]) = (Scene::new(1), per_hour("p", 5), apart());
        assert!(scene.take(&policy, &a));
        seen_together(&scene, [(&policy, &a), (&policy, &b)], peek);
    });
}

// Keys of several tables are locked in the order of their addresses, which are not the same each
// time, and loom insists on that.

#[cfg(dashpot_shuttle)]
#[test]
fn two_policies() {
    explore(EFFORT, || {
        let (scene, one, two) = (Scene::new(4), per_hour("one", 5), super::fixed("two", 5));
        assert!(scene.take_all(&[(&one, "a"), (&two, "b")]));
        seen_together(&scene, [(&one, "a"), (&two, "b")], peek);
    });
}

#[cfg(dashpot_shuttle)]
#[test]
fn one_that_is_there_and_one_of_a_new_policy() {
    explore(EFFORT, || {
        let (scene, one, two) = (Scene::new(4), per_hour("one", 5), super::fixed("two", 5));
        assert!(scene.take(&one, "a"));
        seen_together(&scene, [(&one, "a"), (&two, "b")], peek);
    });
}
