//! The in-process store.
//!
//! First form: simple and right. Shards of a hash table behind locks; a call locks the shards of
//! all its keys in one order, decides with the pure algorithms, and charges all or nothing before
//! it lets go. That order is what makes calls linearizable, and free of deadlock.

mod plan;
mod record;
mod shard;

use std::fmt;
use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;
use std::task::Waker;

use foldhash::quality::RandomState;
use parking_lot::{Mutex, MutexGuard};
use smallvec::SmallVec;

use crate::algorithm::Verdict;
use crate::waiting::Room;
use crate::{
    Alarm, Check, Clock, Cost, Decision, Key, KeyOperation, Policy, PolicyStatus, Reservation,
    Standing, Store, StoreError, SystemClock, Timestamp,
};
use plan::{Group, Plan};
use shard::{Place, Shard};

/// Enough that two threads seldom want the same lock, few enough to cost nothing.
const SHARDS: usize = 64;

/// State in this process, by this process's clock.
///
/// - **Exact**: it runs the algorithms as they are; see the [promises](crate#promises).
/// - **Linearizable**, several checks included; no deadlock whatever the order of the checks.
/// - **No allocation** for up to four checks on keys that are known, but for a sliding log that
///   grows and a calendar window that begins. A new key is copied once.
/// - **Keys make room**: those that are as good as new are reclaimed, a few at each insertion of
///   another. A key that is owed a limit is never forgotten, however many others come.
/// - Keys are spread by a hash with a random seed, so nobody can choose keys that collide without
///   knowing it.
/// - **Who waits comes first**: while somebody [waits](Self::until_ready) for a key, other checks
///   that would take something of it are denied. When nobody does, that costs one load.
pub struct MemoryStore {
    clock: TimeSource,
    seed: RandomState,
    shards: Box<[Mutex<Shard>]>,
    pub(crate) room: Room,
}

/// The usual clock without an indirection, or any other with one.
enum TimeSource {
    System(SystemClock),
    Custom(Arc<dyn Clock>),
}

impl MemoryStore {
    /// An empty store on the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::on(TimeSource::System(SystemClock::new()))
    }

    /// An empty store on this clock.
    #[must_use]
    pub fn with_clock(clock: impl Clock + 'static) -> Self {
        Self::on(TimeSource::Custom(Arc::new(clock)))
    }

    fn on(clock: TimeSource) -> Self {
        Self {
            clock,
            seed: RandomState::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            room: Room::default(),
        }
    }

    /// The store's time.
    #[must_use]
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
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    /// Whether it remembers no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.shards.iter().all(|shard| shard.lock().len() == 0)
    }

    /// [`Store::decide`], without a future.
    pub fn decide_now<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        self.decide_with(checks, |place, cost, verdict| self.room.gate(place, cost, verdict))
    }

    /// Decides by what `judge` makes of each verdict, told the place's hash and the cost.
    pub(crate) fn decide_with<'p>(
        &self,
        checks: &[Check<'p, '_>],
        judge: impl Fn(u64, u64, Verdict) -> Verdict,
    ) -> Decision<'p> {
        let Plan { groups, members } = Plan::new(checks.iter().map(|check| Group {
            place: self.place(check.policy, check.key),
            cost: check.cost.units(),
        }));
        let mut shards = self.lock_all(groups.iter().map(|group| group.place));
        // Under the locks, so that each key sees time in the order in which it is asked about.
        let now = self.now();

        let verdicts: SmallVec<[Verdict; 4]> = groups
            .iter()
            .map(|group| {
                let verdict = shards.of(group.place).verdict(group.place, now, group.cost);
                judge(group.place.hash, group.cost, verdict)
            })
            .collect();
        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        if allowed {
            for group in groups.iter().filter(|group| group.takes_something()) {
                shards.of(group.place).charge(group.place, now, group.cost);
            }
        }
        let standings: SmallVec<[Standing; 4]> =
            groups.iter().map(|group| shards.of(group.place).standing(group.place, now)).collect();
        drop(shards);

        let status = |(check, &member): (&Check<'p, '_>, &usize)| {
            let standing = *standings.get(member)?;
            Some(match *verdicts.get(member)? {
                Verdict::Allow { delay } => {
                    PolicyStatus::allow(check.policy, standing, if allowed { delay } else { 0 })
                }
                Verdict::Deny(retry) => PolicyStatus::deny(check.policy, standing, retry),
            })
        };
        Decision::new(now, checks.iter().zip(&members).filter_map(status))
    }

    /// [`Store::settle`], without a future.
    pub fn settle_now(&self, reservation: &Reservation, used: Cost) -> Timestamp {
        let place = self.place(reservation.policy(), reservation.key());
        let mut shard = self.lock(place);
        let now = self.now();
        shard.settle(place, now, reservation, used);
        drop(shard);
        self.room.touched(place.hash);
        now
    }

    /// [`Store::manage`], without a future.
    pub fn manage_now<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Decision<'p> {
        let place = self.place(policy, key);
        let mut shard = self.lock(place);
        let now = self.now();
        match operation {
            KeyOperation::Peek => {}
            KeyOperation::Reset => shard.reset(place, now),
            KeyOperation::Block(until) => shard.block(place, now, until),
            KeyOperation::Unblock => shard.block(place, now, Timestamp::EPOCH),
        }
        let standing = shard.standing(place, now);
        drop(shard);
        if operation != KeyOperation::Peek {
            self.room.touched(place.hash);
        }
        Decision::new(now, [PolicyStatus::allow(policy, standing, 0)])
    }

    /// Where those who wait for this check's key stand in line.
    pub(crate) fn place_hash(&self, check: Check<'_, '_>) -> u64 {
        self.place(check.policy, check.key).hash
    }

    fn place<'a>(&self, policy: &'a Policy, key: Key<'a>) -> Place<'a> {
        let mut hasher = self.seed.build_hasher();
        hasher.write_u64(policy.identity_hash());
        hasher.write(key.as_bytes());
        let hash = hasher.finish();
        Place { hash, policy, key }
    }

    fn lock(&self, place: Place<'_>) -> MutexGuard<'_, Shard> {
        // There are shards, and the remainder is one of them.
        #[expect(clippy::indexing_slicing)]
        self.shards[place.shard()].lock()
    }

    /// Locks the shards of these places, which come in the order of their shards.
    fn lock_all<'a>(&self, places: impl Iterator<Item = Place<'a>>) -> Locked<'_> {
        let mut locked = Locked(SmallVec::new());
        for place in places {
            if locked.0.last().is_none_or(|(shard, _)| *shard != place.shard()) {
                locked.0.push((place.shard(), self.lock(place)));
            }
        }
        locked
    }
}

/// The shards a call holds, in order.
struct Locked<'s>(SmallVec<[(usize, MutexGuard<'s, Shard>); 4]>);

impl Locked<'_> {
    fn of(&mut self, place: Place<'_>) -> &mut Shard {
        let found = self.0.binary_search_by_key(&place.shard(), |(shard, _)| *shard);
        let index = found.unwrap_or_else(|index| index);
        // Every place asked about here was among those locked.
        #[expect(clippy::indexing_slicing)]
        &mut self.0[index].1
    }
}

impl Store for MemoryStore {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        Ok(self.decide_now(checks))
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        Ok(self.settle_now(reservation, used))
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
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Quota;

    /// Nobody outside can tell which keys collide: no two stores agree on it.
    #[test]
    fn hashing_is_seeded() {
        let policy = Policy::unnamed(Quota::per_second(1));
        let (one, other) = (MemoryStore::new(), MemoryStore::new());
        let hash = |store: &MemoryStore, key: &str| store.place(&policy, Key::from(key)).hash;
        assert_eq!(hash(&one, "alice"), hash(&one, "alice"));
        assert_ne!(hash(&one, "alice"), hash(&one, "bob"));
        assert_ne!(hash(&one, "alice"), hash(&other, "alice"));
    }
}
