//! The in-process store.
//!
//! One [table](table) per policy, all on the pages of one [pool](pool), which bounds how many keys
//! there are. A check on a key that has a slot reads a cache line, decides with the pure algorithm,
//! and if it takes something writes that line, under a sequence lock of the slot's [group](group).
//! Up to four checks go that [quick] way, and so does a new key on its own; everything else (more
//! checks, blocks, changed limits, keys that others write all the time) [holds](hold) its keys while
//! it decides. So calls are linearizable, and free of deadlock.

mod builder;
mod directory;
mod entry;
mod group;
mod growth;
mod held;
mod hold;
mod home;
mod insertion;
mod kept;
#[cfg(test)]
#[cfg(any(dashpot_loom, dashpot_shuttle))]
pub(crate) mod models;
mod overflow;
mod page;
mod place;
mod plan;
mod pool;
mod quick;
mod side;
mod state;
pub(crate) mod sync;
mod table;
mod tables;
mod usage;

use std::fmt;
use std::sync::Arc;
use std::task::Waker;

use parking_lot::Mutex;
use rapidhash::v3::{RapidSecrets, rapidhash_v3_seeded};

use crate::algorithm::Verdict;
use crate::waiting::Room;
use crate::{
    Alarm, Algorithm, Check, Clock, Cost, Decision, Key, KeyOperation, Policy, Reservation, Store,
    StoreError, SystemClock, Timestamp,
};
pub use builder::MemoryStoreBuilder;
use held::Wanted;
pub(crate) use home::Home;
pub(crate) use kept::Kept;
use overflow::Overflow;
use page::DEFINITION_BITS;
use pool::Pool;
pub use state::{StateError, StateKeeper};
use sync::RwLock;
use tables::Tables;
pub use usage::MemoryUsage;

/// State in this process, by this process's clock.
///
/// - **Exact**: it runs the algorithms as they are; see the [promises](crate#promises).
/// - **Linearizable**, several checks included; no deadlock whatever the order of the checks.
/// - **Fast**: one hash, one cache miss and, if something is taken, one atomic write. A denied check
///   writes nothing that threads share, unless it is about a sliding log or a blocked key.
/// - **Small**: a slot of 16 to 32 bytes for each key, whatever its length; only a sliding log takes
///   more. Keys are told apart by 58 bits of a hash with a random seed: among a million keys, the
///   chance that any two are counted as one is one in half a million.
/// - **Bounded**: no more keys than [`max_keys`](MemoryStoreBuilder::max_keys). Keys that are as good
///   as new make room for others, a few at a time. If there are none, newcomers are counted
///   together in overflow cells: each gets less than its due, never more, and no key that is owed a
///   limit is forgotten to make room.
/// - **Who waits comes first**: while somebody [waits](Self::until_ready) for a key, other checks
///   that would take something of it are denied. When nobody does, that costs one load.
pub struct MemoryStore {
    clock: TimeSource,
    /// What marks are made with, and the number all of it is made from.
    secrets: RapidSecrets,
    seed: u64,
    /// Tells this store from all others.
    number: u64,
    tables: RwLock<Tables>,
    pool: Arc<Pool>,
    overflow: Overflow,
    pub(crate) room: Room,
    /// Held by whoever saves it.
    saving: Mutex<()>,
}

/// The usual clock without an indirection, or any other with one.
enum TimeSource {
    System(SystemClock),
    Custom(Arc<dyn Clock>),
}

impl MemoryStore {
    /// An empty store on the system's clock, for up to a million keys.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// An empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self::builder().clock(clock).build()
    }

    /// The store's time.
    #[must_use]
    #[inline]
    pub fn now(&self) -> Timestamp {
        match &self.clock {
            TimeSource::System(clock) => clock.now(),
            TimeSource::Custom(clock) => clock.now(),
        }
    }

    /// Wakes somebody when the store's time has come to `at`, or sooner.
    pub(crate) fn wake_at(&self, at: Timestamp, waker: &Waker) -> Alarm {
        match &self.clock {
            TimeSource::System(clock) => clock.wake_at(at, waker),
            TimeSource::Custom(clock) => clock.wake_at(at, waker),
        }
    }

    /// The number of keys it remembers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pool.keys()
    }

    /// Whether it remembers no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0 && self.overflow.is_empty()
    }

    /// [`Store::decide`], without a future.
    pub fn decide_now<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        match checks {
            _ if !self.room.is_empty() => self.decide_slowly(checks),
            [check] => self.decide_one(check),
            _ => self.decide_few(checks),
        }
    }

    /// Decides by what `judge` makes of each verdict, told where one waits for the key and the cost.
    pub(crate) fn decide_with<'p>(
        &self,
        checks: &[Check<'p, '_>],
        judge: impl Fn(u64, u64, Verdict) -> Verdict,
    ) -> Decision<'p> {
        self.decide_held(checks, &judge)
    }

    #[cold]
    fn decide_slowly<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        self.decide_held(checks, &|line, cost, verdict| self.room.behind(line, cost, verdict))
    }

    /// [`Store::settle`], without a future.
    pub fn settle_now(&self, reservation: &Reservation, used: Cost) -> Timestamp {
        let policy = reservation.policy();
        // If nothing is remembered of the key, there is nothing to give back; debt is remembered.
        let wanted = used > reservation.cost() && !policy.quota().is_unlimited();
        let wanted = if wanted { Wanted::IfThereIsRoom } else { Wanted::No };
        let counts_permits = policy.algorithm() == Algorithm::Concurrency;
        self.change(policy, reservation.key(), wanted, |kept, now, is_shared| {
            kept.settle_under(policy, now);
            // What was not charged to a cell is not given back there, and nobody knows where it was;
            // but a permit that is out is counted where its key is.
            if is_shared && !counts_permits {
                let debt = used.units().saturating_sub(reservation.cost().units());
                return kept.charge_under(policy.definition(), now, debt);
            }
            kept.definition.engine.settle(
                &mut kept.state,
                now,
                reservation.charged_at(),
                reservation.cost().units(),
                used.units(),
            );
        })
    }

    /// [`Store::undo`], without a future.
    pub fn undo_now(&self, reservation: &Reservation) -> Timestamp {
        let policy = reservation.policy();
        let counts_permits = policy.algorithm() == Algorithm::Concurrency;
        self.change(policy, reservation.key(), Wanted::No, |kept, now, is_shared| {
            let is_one_rate = kept.settle_under(policy, now);
            // To and from a cell as when it is settled.
            if counts_permits || (is_one_rate && !is_shared) {
                let (charged_at, cost) = (reservation.charged_at(), reservation.cost().units());
                kept.definition.engine.undo(&mut kept.state, now, charged_at, cost);
            }
        })
    }

    /// [`Store::manage`], without a future.
    pub fn manage_now<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Decision<'p> {
        match operation {
            KeyOperation::Peek => {}
            KeyOperation::Reset => {
                self.change(policy, key, Wanted::IfShared, |kept, now, is_shared| {
                    // What others have is not this key's to forget.
                    if !is_shared {
                        kept.redefine(policy.definition(), now);
                        kept.state = kept.definition.engine.reset(now);
                    }
                });
            }
            KeyOperation::Block(until) => {
                let wanted = if until > self.now() { Wanted::Always } else { Wanted::No };
                self.change(policy, key, wanted, |kept, now, is_shared| {
                    // Not a moment that is past, which would be a block again if the clock went back.
                    let until = if until > now { until } else { Timestamp::EPOCH };
                    // With whom others are blocked, nobody's block ends early.
                    let least = if is_shared { kept.blocked_until } else { Timestamp::EPOCH };
                    kept.blocked_until = until.max(least);
                });
            }
            KeyOperation::Unblock => {
                self.change(policy, key, Wanted::No, |kept, _now, is_shared| {
                    if !is_shared {
                        kept.blocked_until = Timestamp::EPOCH;
                    }
                });
            }
        }
        self.decide_now(&[Check::new(policy, key).cost(Cost::PEEK)])
    }

    #[inline]
    fn mark(&self, key: Key<'_>) -> u64 {
        Self::mark_by(&self.secrets, key)
    }

    #[inline]
    fn mark_by(secrets: &RapidSecrets, key: Key<'_>) -> u64 {
        // Never the mark of an empty slot.
        let hash = rapidhash_v3_seeded(key.as_bytes(), secrets);
        hash.max(DEFINITION_BITS + 1) & !DEFINITION_BITS
    }
}

impl Store for MemoryStore {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        Ok(self.decide_now(checks))
    }

    fn decide_at_once<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> Option<Result<Decision<'p>, StoreError>> {
        Some(Ok(self.decide_now(checks)))
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        Ok(self.settle_now(reservation, used))
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        Ok(self.undo_now(reservation))
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        Ok(self.manage_now(policy, key, operation))
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryStore").field("usage", &self.usage()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nobody outside can tell which keys collide: no two stores agree on it.
    #[test]
    fn hashing_is_seeded() {
        let (one, other) = (MemoryStore::new(), MemoryStore::new());
        let mark = |store: &MemoryStore, key: &str| store.mark(Key::from(key));
        assert_eq!(mark(&one, "alice"), mark(&one, "alice"));
        assert_ne!(mark(&one, "alice"), mark(&one, "bob"));
        assert_ne!(mark(&one, "alice"), mark(&other, "alice"));
    }
}
