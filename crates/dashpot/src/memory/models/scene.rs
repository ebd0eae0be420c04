//! A store in which time stands still, and what must be true of it whatever happened.

use std::collections::BTreeSet;
use std::sync::Arc;

use rapidhash::v3::RapidSecrets;

use crate::memory::page::DEFINITION_BITS;
use crate::memory::table::{Seat, Table};
use crate::{Algorithm, Check, Decision, Key, ManualClock, MemoryStore, Policy, Quota};

/// Of the marks, which are the same every time.
const SEED: u64 = 1;

pub(crate) struct Scene {
    pub(crate) clock: ManualClock,
    pub(crate) store: MemoryStore,
}

impl Scene {
    /// A store for so many keys.
    pub(crate) fn new(max_keys: usize) -> Arc<Self> {
        let clock = ManualClock::default();
        let builder = MemoryStore::builder().clock(clock.clone()).max_keys(max_keys);
        Arc::new(Self { clock, store: builder.build_with(SEED) })
    }

    /// Takes a unit if it can.
    pub(crate) fn take(&self, policy: &Policy, key: &str) -> bool {
        self.store.decide_now(&[Check::new(policy, key)]).is_allowed()
    }

    /// Takes a unit of each if it can of all.
    pub(crate) fn take_all(&self, wanted: &[(&Policy, &str)]) -> bool {
        let checks: Vec<_> = wanted.iter().map(|&(policy, key)| Check::new(policy, key)).collect();
        self.store.decide_now(&checks).is_allowed()
    }

    /// How much is used of a limit.
    pub(crate) fn used(&self, policy: &Policy, key: &str) -> u64 {
        used(&self.store.decide_now(&[Check::new(policy, key).cost(0)])).remove(0)
    }

    /// How much is used of limits, seen at one instant.
    pub(crate) fn used_of_all(&self, wanted: &[(&Policy, &str)]) -> Vec<u64> {
        let checks: Vec<_> =
            wanted.iter().map(|&(policy, key)| Check::new(policy, key).cost(0)).collect();
        used(&self.store.decide_now(&checks))
    }

    /// Takes a unit of as many new keys as the first page of a table has room for.
    pub(crate) fn fill_page(&self, policy: &Policy) -> Vec<String> {
        let keys: Vec<_> = any_keys().take(5).collect();
        assert!(keys.iter().all(|key| self.take(policy, key)));
        keys
    }

    /// What must be true when all is quiet: each slot in use is counted once, by its page and by the
    /// store; no group is still locked; each key is where it is looked for.
    pub(crate) fn audit(&self) {
        let tables = self.store.tables.read().all().to_vec();
        let keys: usize = tables.iter().map(|table| audit(table)).sum();
        assert_eq!(keys, self.store.len(), "slots in use, and keys counted");
    }
}

pub(crate) fn mark(key: &str) -> u64 {
    MemoryStore::mark_by(&RapidSecrets::seed(SEED), Key::from(key))
}

/// Any number of keys.
pub(crate) fn any_keys() -> impl Iterator<Item = String> {
    (0..).map(|number| format!("k{number}"))
}

pub(crate) fn used(decision: &Decision<'_>) -> Vec<u64> {
    let used = |status: &crate::PolicyStatus<'_>| status.limit() - status.remaining();
    decision.statuses().iter().map(used).collect()
}

/// A bucket that holds so many, in slots of two words.
pub(crate) fn per_hour(name: &str, limit: u64) -> Policy {
    let policy = Policy::new(name, Quota::per_hour(limit)).unwrap();
    assert_eq!(policy.definition().engine.words(), 1);
    policy
}

/// A window of an hour, in slots of three words.
pub(crate) fn fixed(name: &str, limit: u64) -> Policy {
    let builder = Policy::builder(name, Quota::per_hour(limit)).algorithm(Algorithm::FixedWindow);
    let policy = builder.build().unwrap();
    assert_eq!(policy.definition().engine.words(), 2);
    policy
}

/// A limit of so many by another algorithm.
pub(crate) fn by(algorithm: Algorithm, name: &str, limit: u64) -> Policy {
    let quota = match algorithm {
        Algorithm::Concurrency => Quota::concurrent(limit),
        _ => Quota::per_hour(limit),
    };
    Policy::builder(name, quota).algorithm(algorithm).build().unwrap()
}

fn audit(table: &Table) -> usize {
    let (mut marks, mut pages, mut next) = (BTreeSet::new(), BTreeSet::new(), Some(0));
    while let Some(mark) = next {
        let spot = table.directory().spot(mark).unwrap();
        let page = spot.page;
        assert!(pages.insert(spot.page.number()), "a page is led to from one place");
        assert_eq!(page.owner(), Some(table.number()));
        assert!(page.version().is_some(), "nobody is adding keys");
        assert!(page.structure.try_lock().is_some(), "nobody holds a page");
        let mut keys = 0;
        for group in table.groups_of(page) {
            assert!(group.sequence().is_some(), "no group is locked");
            for copied in group.copies().filter(|copied| copied.mark != 0) {
                keys += 1;
                assert!(marks.insert(copied.mark & !DEFINITION_BITS), "a key has one slot");
                assert!(matches!(table.find(copied.mark), Some(Seat::Slot(..))), "it is found");
            }
        }
        assert_eq!(keys, page.keys(), "a page's slots in use, and keys counted");
        next =
            1_u64.checked_shl(64 - page.depth()).and_then(|width| page.prefix().checked_add(width));
    }
    marks.len()
}
