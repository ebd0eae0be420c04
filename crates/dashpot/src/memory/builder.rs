//! A store in the making.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rapidhash::v3::RapidSecrets;

use super::overflow::Overflow;
use super::pool::Pool;
use super::{MemoryStore, TimeSource};
use crate::waiting::Room;
use crate::{Clock, SystemClock};

/// As many keys as a store remembers unless told otherwise: some 40 MB of them.
const MAX_KEYS: usize = 1_000_000;

/// A [`MemoryStore`] in the making.
///
/// ```
/// use dashpot::MemoryStore;
///
/// let store = MemoryStore::builder().max_keys(10_000).build();
/// ```
#[must_use]
pub struct MemoryStoreBuilder {
    clock: TimeSource,
    max_keys: usize,
}

impl MemoryStore {
    /// Starts a store with settings of your choice.
    pub fn builder() -> MemoryStoreBuilder {
        MemoryStoreBuilder { clock: TimeSource::System(SystemClock::new()), max_keys: MAX_KEYS }
    }
}

impl MemoryStoreBuilder {
    /// Keeps time by this clock.
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = TimeSource::Custom(Arc::new(clock));
        self
    }

    /// Remembers at most so many keys, of all policies together: a million if left out. Beyond that,
    /// newcomers share their limits with others (65 536 cells for each policy). Keys that are blocked
    /// are remembered all the same: whoever blocks them bounds them.
    pub fn max_keys(mut self, keys: usize) -> Self {
        self.max_keys = keys;
        self
    }

    /// The store, empty.
    #[must_use]
    pub fn build(self) -> MemoryStore {
        // A number nobody outside can know: the standard library asks the system for one.
        self.build_with(std::hash::RandomState::new().hash_one(0))
    }

    /// The store, empty, with marks made by this seed.
    pub(super) fn build_with(self, seed: u64) -> MemoryStore {
        static STORES: AtomicU64 = AtomicU64::new(0);
        MemoryStore {
            clock: self.clock,
            secrets: RapidSecrets::seed(seed),
            seed,
            number: STORES.fetch_add(1, Ordering::Relaxed),
            tables: Default::default(),
            pool: Arc::new(Pool::new(self.max_keys)),
            overflow: Overflow::default(),
            room: Room::default(),
            saving: Default::default(),
        }
    }
}
