//! The in-process store.
//!
//! One [table](table) per policy, all on the pages of one [pool](pool), which bounds how many keys
//! there are. A check on a key that has a slot reads a cache line, decides with the pure algorithm,
//! and if it takes something writes that line, under a sequence lock of the slot's [group](group).
//! Everything else (several checks, new keys, blocks, changed limits) [holds](hold) its keys while it
//! decides. So calls are linearizable, and free of deadlock.

mod builder;
mod directory;
mod group;
mod growth;
mod hold;
mod kept;
mod overflow;
mod page;
mod place;
mod plan;
mod pool;
mod side;
mod state;
mod sync;
mod table;
mod usage;

use std::fmt;
use std::slice;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use parking_lot::RwLock;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::algorithm::{ASIDE, Judgement, Verdict};
use crate::waiting::Room;
use crate::{
    Alarm, Check, Clock, Cost, Decision, Key, KeyOperation, Policy, PolicyStatus, Reservation,
    Standing, Store, StoreError, SystemClock, Timestamp,
};
pub use builder::MemoryStoreBuilder;
use hold::{Hold, Source};
use kept::Kept;
use overflow::Overflow;
use page::DEFINITION_BITS;
use place::{Place, TableRef};
use plan::{Plan, Question};
use pool::Pool;
pub use state::{StateError, StateKeeper};
use sync::Backoff;
pub(crate) use table::Home;
use table::{Insertion, Seat, Table, Vacancy};
pub use usage::MemoryUsage;

/// State in this process, by this process's clock.
///
/// - **Exact**: it runs the algorithms as they are; see the [promises](crate#promises).
/// - **Linearizable**, several checks included; no deadlock whatever the order of the checks.
/// - **Fast**: one hash, one cache miss and, if something is taken, one atomic write. A denied check
///   of a single policy writes nothing that threads share (a sliding log's aside).
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
    seed: u64,
    /// Tells this store from all others.
    number: u64,
    tables: RwLock<Vec<Arc<Table>>>,
    pool: Arc<Pool>,
    overflow: Overflow,
    pub(crate) room: Room,
}

/// The usual clock without an indirection, or any other with one.
enum TimeSource {
    System(SystemClock),
    Custom(Arc<dyn Clock>),
}

/// How often a check tries to get by without holding its key.
const ATTEMPTS: usize = 4;

/// How many stretches of slots are swept for a new key, and for one that finds no room.
const SWEEPS: usize = 1;
const SWEEPS_FOR_ROOM: usize = 16;

/// The size from which on pages are swept before there is need to.
const WORTH_SWEEPING: usize = 2;

/// How long a key must have been idle to make room while there is room enough. It may be back soon,
/// and to put it in again costs more than to have kept it.
const GRACE: Duration = Duration::from_secs(10);

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
            [check] if self.room.is_empty() => self.decide_one(check),
            _ => self.decide_gated(checks),
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
    fn decide_gated<'p>(&self, checks: &[Check<'p, '_>]) -> Decision<'p> {
        self.decide_held(checks, &|line, cost, verdict| self.room.gate(line, cost, verdict))
    }

    /// Decides a single check, quickly if its key has a slot and nothing is special about it.
    #[inline]
    fn decide_one<'p>(&self, check: &Check<'p, '_>) -> Decision<'p> {
        if let Some((table, bits)) = Home::of(check.policy, self.number) {
            let mark = self.mark(check.key) & !DEFINITION_BITS | bits;
            return match table.shape().slot {
                2 => self.decide_at::<1>(table, mark, check),
                3 => self.decide_at::<2>(table, mark, check),
                _ => self.decide_at::<3>(table, mark, check),
            };
        }
        self.decide_gated(slice::from_ref(check))
    }

    // Decisions are returned from where they are made, and not wrapped and unwrapped on their way:
    // they are large, and copies would show.
    #[inline]
    fn decide_at<'p, const WORDS: usize>(
        &self,
        table: &Table,
        mark: u64,
        check: &Check<'p, '_>,
    ) -> Decision<'p> {
        let engine = &check.policy.definition().engine;
        let cost = check.cost.units();
        for _ in 0..ATTEMPTS {
            let Some(spot) = table.directory().spot(mark, &table.pool) else {
                break;
            };
            let Some(glance) = spot.page.glance::<WORDS>(mark) else {
                break;
            };
            let mut state = glance.state;
            if state.first() == Some(&ASIDE) {
                break;
            }
            // Between the reading and the writing, if nothing changes meanwhile: so each key sees
            // time in the order in which it is asked about.
            let now = self.now();
            let still = || table.directory().is_still(&spot);
            let commit = |state: [u64; WORDS], verdict| match verdict {
                Verdict::Allow { .. } if cost > 0 => glance.replace(state, still),
                _ => glance.is_still() && still(),
            };
            if let Some(Judgement { verdict, standing }) = engine.judge_short(&mut state, now, cost)
            {
                if commit(state, verdict) {
                    return Decision::one(now, check.policy, standing, verdict);
                }
                continue;
            }
            let Some(Judgement { verdict, standing }) = engine.judge(&mut state, now, cost) else {
                break;
            };
            if commit(state, verdict) {
                return Decision::one(now, check.policy, standing, verdict);
            }
        }
        self.decide_gated(slice::from_ref(check))
    }

    /// Decides any checks, holding their keys.
    fn decide_held<'p>(&self, checks: &[Check<'p, '_>], judge: &Judge<'_>) -> Decision<'p> {
        let mut plan = Plan::new(checks.iter().map(|check| Question {
            place: self.place(check.policy, check.key),
            cost: check.cost.units(),
        }));
        let mut overflowing: SmallVec<[bool; 4]> = SmallVec::new();
        overflowing.resize(plan.questions.len(), false);
        let mut backoff = Backoff::default();
        let (now, verdicts, standings) = loop {
            match self.try_held(&plan.questions, &overflowing, judge) {
                Tried::Decided(answer) => break answer,
                Tried::Disturbed => backoff.wait(),
                Tried::Wanting => {
                    for (question, overflowing) in plan.questions.iter_mut().zip(&mut overflowing) {
                        if question.takes_something() {
                            *overflowing = !self.insert(&mut question.place, false);
                        }
                    }
                }
            }
        };

        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        let status = |(check, &member): (&Check<'p, '_>, &usize)| {
            let standing = *standings.get(member)?;
            Some(match *verdicts.get(member)? {
                Verdict::Allow { delay } => {
                    PolicyStatus::allow(check.policy, standing, if allowed { delay } else { 0 })
                }
                Verdict::Deny(retry) => PolicyStatus::deny(check.policy, standing, retry),
            })
        };
        Decision::new(now, checks.iter().zip(&plan.members).filter_map(status))
    }

    fn try_held(
        &self,
        questions: &[Question<'_>],
        overflowing: &[bool],
        judge: &Judge<'_>,
    ) -> Tried {
        let before = self.now();
        let mut sources: SmallVec<[Source<'_>; 4]> = SmallVec::new();
        for (question, &overflowing) in questions.iter().zip(overflowing) {
            match Source::find(&question.place, &self.overflow, overflowing, before) {
                Some(source) => sources.push(source),
                None => return Tried::Disturbed,
            }
        }
        let Some(mut hold) = Hold::all(&sources, &self.overflow) else {
            return Tried::Disturbed;
        };
        // While all keys are held, so that each sees time in the order in which it is asked about.
        let now = self.now();
        let mut kept: SmallVec<[Kept; 4]> = questions
            .iter()
            .zip(&sources)
            .map(|(question, source)| {
                let mut kept = hold.take(source, &question.place);
                kept.redefine(question.place.policy.definition(), now);
                kept
            })
            .collect();
        let verdicts: SmallVec<[Verdict; 4]> = questions
            .iter()
            .zip(&kept)
            .map(|(Question { place, cost }, kept)| {
                judge(place.line(), *cost, kept.verdict(now, *cost))
            })
            .collect();
        let allowed = verdicts.iter().all(|verdict| matches!(verdict, Verdict::Allow { .. }));
        let wanting = allowed
            && questions.iter().zip(&sources).any(|(question, source)| {
                question.takes_something() && matches!(source, Source::Nowhere(_))
            });
        if allowed && !wanting {
            for (question, kept) in questions.iter().zip(&mut kept) {
                kept.charge(now, question.cost);
            }
        }
        let standings = kept.iter().map(|kept| kept.standing(now)).collect();
        for (source, kept) in sources.iter().zip(kept) {
            hold.put(source, kept);
        }
        if wanting { Tried::Wanting } else { Tried::Decided((now, verdicts, standings)) }
    }

    /// [`Store::settle`], without a future.
    pub fn settle_now(&self, reservation: &Reservation, used: Cost) -> Timestamp {
        let policy = reservation.policy();
        // If nothing is remembered of the key, there is nothing to give back; debt is remembered.
        let wanted = used > reservation.cost() && !policy.quota().is_unlimited();
        let wanted = if wanted { Wanted::IfThereIsRoom } else { Wanted::No };
        self.change(policy, reservation.key(), wanted, |kept, now| {
            // The definition under which it was reserved may be an old one; the state goes on under
            // its own.
            kept.definition.engine.settle(
                &mut kept.state,
                now,
                reservation.charged_at(),
                reservation.cost().units(),
                used.units(),
            );
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
                let overflowed = {
                    let place = self.place(policy, key);
                    let cell = place.table.map(|table| Overflow::cell(table.number(), place.mark));
                    cell.is_some_and(|cell| self.overflow.is_busy(cell, self.now()))
                };
                // A cell is not this key's alone: the key gets a slot of its own instead.
                let wanted = if overflowed { Wanted::Always } else { Wanted::No };
                self.change(policy, key, wanted, |kept, now| {
                    kept.redefine(policy.definition(), now);
                    kept.state = kept.definition.engine.reset(now);
                });
            }
            KeyOperation::Block(until) => {
                let wanted = if until > self.now() { Wanted::Always } else { Wanted::No };
                self.change(policy, key, wanted, |kept, now| {
                    kept.redefine(policy.definition(), now);
                    // Not a moment that is past, which would be a block again if the clock went back.
                    kept.blocked_until = if until > now { until } else { Timestamp::EPOCH };
                });
            }
            KeyOperation::Unblock => {
                self.change(policy, key, Wanted::No, |kept, now| {
                    kept.redefine(policy.definition(), now);
                    kept.blocked_until = Timestamp::EPOCH;
                });
            }
        }
        self.decide_now(&[Check::new(policy, key).cost(Cost::PEEK)])
    }

    /// Changes what is remembered of a key, if anything is or is wanted to be.
    fn change(
        &self,
        policy: &Policy,
        key: Key<'_>,
        wanted: Wanted,
        mut change: impl FnMut(&mut Kept, Timestamp),
    ) -> Timestamp {
        let mut place = self.place(policy, key);
        let mut overflowing = false;
        let mut backoff = Backoff::default();
        loop {
            let before = self.now();
            let found = Source::find(&place, &self.overflow, overflowing, before);
            let to_insert = match (&found, wanted) {
                (Some(Source::Nowhere(_)), Wanted::IfThereIsRoom) => Some(false),
                (Some(Source::Nowhere(_) | Source::Cell(..)), Wanted::Always) => Some(true),
                _ => None,
            };
            let done = match (&found, to_insert) {
                (None, _) | (_, Some(_)) => None,
                (Some(Source::Nowhere(_)), None) => Some(before),
                (Some(source), None) => {
                    Hold::all(slice::from_ref(source), &self.overflow).map(|mut hold| {
                        let now = self.now();
                        let mut kept = hold.take(source, &place);
                        change(&mut kept, now);
                        hold.put(source, kept);
                        now
                    })
                }
            };
            match (done, to_insert) {
                (Some(now), _) => {
                    self.room.touched(place.line());
                    return now;
                }
                (None, Some(force)) => overflowing = !self.insert(&mut place, force),
                (None, None) => backoff.wait(),
            }
        }
    }

    /// Gives a key a slot. False if it is to be counted in its overflow cell, which is then open.
    #[cold]
    fn insert(&self, place: &mut Place<'_>, force: bool) -> bool {
        let (mark, definition) = (place.mark, place.policy.definition());
        let Some(table) = self.table_for(place) else {
            return true; // There is no memory left to have a table in; there is none to go on with.
        };
        let now = self.now();
        let cell = Overflow::cell(table.number(), mark);
        let is_taken = || !force && self.overflow.is_busy(cell, now);
        let vacancy = |idle_since| Vacancy { is_taken: &is_taken, force, idle_since };
        // Before, because the new key is idle until it is charged.
        let idle_since = now.before(GRACE);
        self.sweep(idle_since, SWEEPS);
        match table.insert(mark, vacancy(idle_since)) {
            Insertion::Done => return true,
            Insertion::Overflowed => {}
            Insertion::Full | Insertion::NoPlace => {
                self.sweep(now, SWEEPS_FOR_ROOM);
                if table.insert(mark, vacancy(now)) == Insertion::Done {
                    return true;
                }
            }
        }
        self.pool.counters.overflowed.fetch_add(1, sync::Ordering::Relaxed);
        self.overflow.open(cell, definition);
        false
    }

    /// Forgets keys that have been idle since then, wherever they are, a few at a time.
    fn sweep(&self, idle_since: Timestamp, stretches: usize) {
        let tables = self.tables.read();
        for _ in 0..stretches {
            let Some((number, page)) = self.pool.under_hand() else {
                return;
            };
            let owner = || tables.get(page.owner()? as usize);
            let Some(_structure) = page.structure.try_lock() else {
                self.pool.move_hand(number);
                continue;
            };
            match owner() {
                // There is nothing to gain in so small a page, unless there is no room at all.
                Some(_) if page.size() < WORTH_SWEEPING && stretches == SWEEPS => {
                    self.pool.move_hand(number);
                }
                Some(table) if !table.sweep(page, idle_since) => {}
                Some(table) => {
                    self.pool.move_hand(number);
                    if page.size() > 0 && page.keys() * 4 < table.slots(page.size()) {
                        table.shrink(number, page, idle_since);
                    }
                }
                None => self.pool.move_hand(number),
            }
        }
    }

    /// Where those who wait for this check's key stand in line.
    pub(crate) fn line(&self, check: Check<'_, '_>) -> u64 {
        self.place(check.policy, check.key).line()
    }

    fn place<'p>(&self, policy: &'p Policy, key: Key<'_>) -> Place<'p> {
        let table = match Home::of(policy, self.number) {
            Some((table, _)) => Some(TableRef::Home(table)),
            None => self.known_table(policy),
        };
        Place { policy, table, mark: self.mark(key) }
    }

    /// The table of a policy that has its home elsewhere, or none yet.
    fn known_table<'p>(&self, policy: &'p Policy) -> Option<TableRef<'p>> {
        let found = find(&self.tables.read(), policy)?;
        let _ = policy.home().set(Home::new(self.number, found.clone(), policy));
        Some(TableRef::Shared(found))
    }

    /// The table of a place, made if there is none.
    fn table_for<'a>(&self, place: &'a mut Place<'_>) -> Option<&'a Table> {
        if place.table.is_none() {
            let mut tables = self.tables.write();
            let table = match find(&tables, place.policy) {
                Some(table) => table,
                None => {
                    let number = u32::try_from(tables.len()).ok()?;
                    let definition = place.policy.definition();
                    let table = Arc::new(Table::new(number, definition, self.pool.clone())?);
                    tables.push(table.clone());
                    table
                }
            };
            place.table = Some(TableRef::Shared(table));
        }
        place.table.as_deref()
    }

    /// Takes in what was remembered of a key, or of a cell, before this process began.
    fn restore(&self, is_cell: bool, mark: u64, kept: Kept) {
        let policy = Policy::from_definition(kept.definition.clone());
        let mut place = Place { policy: &policy, table: self.known_table(&policy), mark };
        let Some(table) = self.table_for(&mut place) else {
            return; // There is no memory left.
        };
        let now = self.now();
        if is_cell {
            let cell = u16::try_from(mark).unwrap_or_default();
            return self.overflow.add((table.number(), cell), &kept, now);
        }
        // If fewer keys are allowed now, what is too much goes where newcomers go; but for blocks.
        let force = kept.blocked_for(now) > 0;
        let vacancy = Vacancy { is_taken: &|| false, force, idle_since: now };
        if table.insert(mark, vacancy) != Insertion::Done {
            return self.overflow.add(Overflow::cell(table.number(), mark), &kept, now);
        }
        if let Some(Seat::Slot(_, found)) = table.find(mark)
            && let Some(locked) = found.group.try_lock(found.sequence)
        {
            table.put(&locked, &found.copied, kept);
        }
    }

    #[inline]
    fn mark(&self, key: Key<'_>) -> u64 {
        Self::mark_by(self.seed, key)
    }

    #[inline]
    fn mark_by(seed: u64, key: Key<'_>) -> u64 {
        // Never the mark of an empty slot.
        xxh3_64_with_seed(key.as_bytes(), seed).max(DEFINITION_BITS + 1)
    }
}

/// What is made of a verdict: told where one waits for the key, and the cost.
type Judge<'j> = dyn Fn(u64, u64, Verdict) -> Verdict + 'j;

/// What came of an attempt to decide.
#[expect(clippy::large_enum_variant, reason = "it lives for a moment, and never on the heap")]
enum Tried {
    Decided((Timestamp, SmallVec<[Verdict; 4]>, SmallVec<[Standing; 4]>)),
    /// Somebody was in the way.
    Disturbed,
    /// Everything passes, but some keys have nowhere to be counted yet.
    Wanting,
}

/// Whether a key that is not remembered is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    No,
    /// Else in its overflow cell.
    IfThereIsRoom,
    /// In a slot of its own, come what may.
    Always,
}

fn find(tables: &[Arc<Table>], policy: &Policy) -> Option<Arc<Table>> {
    let wanted = policy.definition();
    let is_wanted = |table: &&Arc<Table>| {
        table.first_definition().is_some_and(|known| {
            known.identity_hash == wanted.identity_hash && known.same_counters(wanted)
        })
    };
    tables.iter().find(is_wanted).cloned()
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
