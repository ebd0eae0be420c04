//! The keys that are asked about often.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dashpot::{Key, Policy};
use hashbrown::HashTable;
use parking_lot::RwLock;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};
use smallvec::SmallVec;

use super::slot::Slot;

/// Parts with a lock each.
const PARTS: usize = 64;

/// How many keys there are at most. Others are asked about exactly.
const MOST: usize = 100_000;

/// Those that one name in Redis has: definitions of a policy may come and go.
pub(crate) type Named = SmallVec<[Arc<Slot>; 1]>;

/// The keys that are asked about often, by policy and caller.
pub(crate) struct Table {
    parts: Box<[RwLock<HashTable<Arc<Slot>>>]>,
    /// The same by their names in Redis, for those who do not have the very policy at hand.
    names: RwLock<HashMap<Box<[u8]>, Named>>,
    count: AtomicUsize,
    secrets: RapidSecrets,
}

/// What tells two policies apart while both are there: where its name is. Clones of a policy share it.
fn identity(policy: &Policy) -> usize {
    policy.name().as_ptr().addr()
}

impl Default for Table {
    fn default() -> Self {
        Self {
            parts: (0..PARTS).map(|_| RwLock::default()).collect(),
            names: RwLock::default(),
            count: AtomicUsize::new(0),
            secrets: RapidSecrets::seed(fastrand::u64(..)),
        }
    }
}

impl Table {
    pub(crate) fn is_empty(&self) -> bool {
        self.count.load(Ordering::Relaxed) == 0
    }

    pub(crate) fn len(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    pub(crate) fn hash(&self, policy: &Policy, key: Key<'_>) -> u64 {
        let apart = u64::try_from(identity(policy)).unwrap_or_default();
        rapidhash_v3_seeded(key.as_bytes(), &self.secrets)
            ^ apart.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    fn part(&self, hash: u64) -> Option<&RwLock<HashTable<Arc<Slot>>>> {
        // Not by the bits that tell entries of one part apart.
        self.parts.get(usize::try_from(hash >> 48).unwrap_or_default() % PARTS)
    }

    /// Does something with the slot of a key, if it has one, while nobody takes it away.
    pub(crate) fn with<T>(
        &self,
        hash: u64,
        policy: &Policy,
        key: Key<'_>,
        work: impl FnOnce(&Arc<Slot>) -> T,
    ) -> Option<T> {
        let part = self.part(hash)?.read();
        part.find(hash, |slot| is(slot, policy, key)).map(work)
    }

    /// The slot of a key, if it has one.
    pub(crate) fn find(&self, policy: &Policy, key: Key<'_>) -> Option<Arc<Slot>> {
        if self.is_empty() {
            return None;
        }
        self.with(self.hash(policy, key), policy, key, Arc::clone)
    }

    /// All slots of a name in Redis.
    pub(crate) fn named(&self, name: &[u8]) -> Named {
        if self.is_empty() {
            return Named::new();
        }
        self.names.read().get(name).cloned().unwrap_or_default()
    }

    /// Makes a slot for a key, unless there is one, or there are too many.
    pub(crate) fn make(
        &self,
        policy: &Policy,
        key: Key<'_>,
        slot: impl FnOnce() -> Slot,
    ) -> Option<Arc<Slot>> {
        if self.len() >= MOST {
            return None;
        }
        let hash = self.hash(policy, key);
        let mut part = self.part(hash)?.write();
        if part.find(hash, |slot| is(slot, policy, key)).is_some() {
            return None;
        }
        let slot = Arc::new(slot());
        part.insert_unique(hash, slot.clone(), |slot| self.hash(&slot.policy, Key::new(&slot.key)));
        self.names.write().entry(slot.name.as_slice().into()).or_default().push(slot.clone());
        self.count.fetch_add(1, Ordering::Relaxed);
        Some(slot)
    }

    /// Takes a slot away.
    pub(crate) fn remove(&self, slot: &Arc<Slot>) {
        let hash = self.hash(&slot.policy, Key::new(&slot.key));
        let Some(part) = self.part(hash) else { return };
        if let Ok(found) = part.write().find_entry(hash, |one| Arc::ptr_eq(one, slot)) {
            found.remove();
            let mut names = self.names.write();
            if let Some(named) = names.get_mut(slot.name.as_slice()) {
                named.retain(|one| !Arc::ptr_eq(one, slot));
                if named.is_empty() {
                    names.remove(slot.name.as_slice());
                }
            }
            self.count.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Those of all slots that are to be looked at.
    pub(crate) fn those(&self, which: impl Fn(&Slot) -> bool) -> Vec<Arc<Slot>> {
        let mut those = Vec::new();
        for part in &self.parts {
            those.extend(part.read().iter().filter(|slot| which(slot)).cloned());
        }
        those
    }
}

fn is(slot: &Slot, policy: &Policy, key: Key<'_>) -> bool {
    identity(&slot.policy) == identity(policy) && *slot.key == *key.as_bytes()
}
