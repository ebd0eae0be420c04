//! What a store takes, and what became of its keys.

use super::MemoryStore;
use super::sync::Ordering;

/// What a store takes, and what became of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUsage {
    /// Keys it remembers.
    pub keys: u64,
    /// Keys it may remember.
    pub max_keys: u64,
    /// Overflow cells in use.
    pub cells: u64,
    /// Bytes in its pages. Sliding logs, and what is kept aside or in overflow cells, come on top.
    pub bytes: u64,
    /// Keys that were as good as new and made room for others, so far.
    pub reclaimed: u64,
    /// How often a key found no room and was counted in an overflow cell, so far.
    pub overflowed: u64,
    /// Keys that were moved to another page as tables grew or shrank, so far.
    pub moved: u64,
}

impl MemoryStore {
    /// What it takes, and what became of its keys so far.
    #[must_use]
    pub fn usage(&self) -> MemoryUsage {
        let counters = &self.pool.counters;
        MemoryUsage {
            keys: self.pool.keys() as u64,
            max_keys: self.pool.max_keys() as u64,
            cells: self.overflow.len() as u64,
            bytes: counters.bytes.load(Ordering::Relaxed),
            reclaimed: counters.reclaimed.load(Ordering::Relaxed),
            overflowed: counters.overflowed.load(Ordering::Relaxed),
            moved: counters.moved.load(Ordering::Relaxed),
        }
    }
}
