//! What does not fit into slots: logs, blocks, and numbers that are out of the ordinary.

use std::sync::OnceLock;

use hashbrown::HashTable;

use super::kept::Kept;
use super::sync::Mutex;
use crate::Timestamp;

/// So many that two threads seldom want the same lock.
const SHARDS: usize = 16;

/// States by mark. Each belongs to one slot, whose group is locked by whoever takes or puts it, so
/// nobody ever finds one missing.
#[derive(Debug, Default)]
pub(super) struct Side(OnceLock<Box<[Shard]>>);

type Shard = Mutex<HashTable<(u64, Kept)>>;

impl Side {
    fn shard(&self, key: u64) -> Option<&Shard> {
        let shards = self.0.get_or_init(|| (0..SHARDS).map(|_| Mutex::default()).collect());
        shards.get((key >> 32) as usize % SHARDS)
    }

    pub(super) fn take(&self, key: u64) -> Option<Kept> {
        let mut shard = self.shard(key)?.lock();
        let entry = shard.find_entry(key, |(found, _)| *found == key).ok()?;
        let ((_, kept), _) = entry.remove();
        Some(kept)
    }

    /// Does something with one where it is.
    pub(super) fn with<R>(&self, key: u64, act: impl FnOnce(&mut Kept) -> Option<R>) -> Option<R> {
        let mut shard = self.shard(key)?.lock();
        let (_, kept) = shard.find_mut(key, |(found, _)| *found == key)?;
        act(kept)
    }

    pub(super) fn put(&self, key: u64, kept: Kept) {
        if let Some(shard) = self.shard(key) {
            shard.lock().insert_unique(key, (key, kept), |(key, _)| *key);
        }
    }

    pub(super) fn is_idle(&self, key: u64, now: Timestamp) -> bool {
        let Some(shard) = self.shard(key) else {
            return true;
        };
        shard.lock().find(key, |(found, _)| *found == key).is_none_or(|(_, kept)| kept.is_idle(now))
    }
}
