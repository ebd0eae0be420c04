//! One group of slots: what the sequence lock promises.

use std::sync::Arc;

use super::{Effort, explore, together, work};
use crate::memory::group::{Group, LockedGroup, Shape};
use crate::memory::sync::AtomicU64;

const EFFORT: Effort = Effort { interruptions: Some(3), schedules: 1_000 };
const MARK: u64 = 1 << 40;

/// A group with a key whose two words are always equal.
struct Twins(Vec<AtomicU64>);

impl Twins {
    fn new() -> Arc<Self> {
        let twins = Self((0..Shape::TWO.group).map(|_| AtomicU64::new(0)).collect());
        let group = twins.group();
        group.try_lock(group.sequence().unwrap()).unwrap().write(0, MARK, [5, 5, 0]);
        Arc::new(twins)
    }

    fn group(&self) -> Group<'_> {
        Group::new(&self.0, Shape::TWO).unwrap()
    }

    /// Adds one to both, as a check does; false if somebody was in the way.
    fn add(&self) -> bool {
        let group = self.group();
        let Some(glance) = group.sequence().and_then(|sequence| group.glance::<2>(sequence, MARK))
        else {
            return false;
        };
        glance.replace(glance.state.map(|word| word + 1))
    }

    /// Reads both, as a check does that is denied.
    fn read(&self) -> Option<[u64; 2]> {
        let group = self.group();
        let glance = group.glance::<2>(group.sequence()?, MARK)?;
        glance.is_still().then_some(glance.state)
    }
}

/// A reader sees all of a write or nothing of it.
#[test]
fn no_torn_read() {
    explore(EFFORT, || {
        let twins = Twins::new();
        let write = work!([twins] { twins.add(); None });
        for read in together([write, work!([twins] twins.read())]).into_iter().flatten() {
            assert!(matches!(read, [5, 5] | [6, 6]), "torn: {read:?}");
        }
    });
}

/// Whoever starts from what has changed meanwhile does not write.
#[test]
fn no_lost_write() {
    explore(EFFORT, || {
        let twins = Twins::new();
        let add = || work!([twins] { u64::from(twins.add()) + u64::from(twins.add()) });
        let added: u64 = together([add(), add()]).iter().sum();
        assert!(added >= 2, "one of two always gets through");
        assert_eq!(twins.read(), Some([5 + added; 2]));
    });
}

/// A group of a retired page is opened again as another: what was found in it before is void.
#[test]
fn a_group_that_is_used_again_is_another() {
    explore(EFFORT, || {
        let twins = Twins::new();
        let results = together([
            work!([twins] {
                let group = twins.group();
                // Taken by the reader at worst, for a moment.
                if let Some(locked) = group.sequence().and_then(|sequence| group.try_lock(sequence))
                {
                    locked.retire();
                    LockedGroup::renew(group);
                    group.try_lock(group.sequence().unwrap()).unwrap().write(0, MARK, [1, 1, 0]);
                }
                true
            }),
            work!([twins] twins.add()),
        ]);
        let after = twins.read().unwrap();
        let expected = if results[1] { [[6, 6], [2, 2]] } else { [[1, 1], [5, 5]] };
        assert!(expected.contains(&after) || after == [1, 1], "{after:?} after {results:?}");
    });
}
