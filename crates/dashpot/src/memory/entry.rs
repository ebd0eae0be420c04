//! How keys come in, and make room for others.

use std::time::Duration;

use super::MemoryStore;
use super::insertion::{Insertion, Newcomer, Vacancy};
use super::kept::Kept;
use super::overflow::Overflow;
use super::place::Place;
use super::sync::{Ordering, or_in_models};
use super::table::{Seat, Table};
use crate::{Algorithm, Policy, Timestamp};

/// Whether a key of this policy can be given a slot while its cell counts something. Permits that are out come back
/// to where they are counted, so their keys stay there.
pub(super) fn can_leave_its_cell(policy: &Policy) -> bool {
    policy.algorithm() != Algorithm::Concurrency
}

/// How many stretches of slots are swept for a new key, and for one that finds no room.
const SWEEPS: usize = 1;
const SWEEPS_FOR_ROOM: usize = or_in_models(16, 4);

/// For how many new keys there is a sweep: few enough that it overtakes growth.
const SWEPT_FOR: u64 = 4;

/// The size from which on pages are swept before there is need to.
const WORTH_SWEEPING: usize = or_in_models(3, 1);

/// How long a key must have been idle to make room while there is room enough. It may be back soon,
/// and to put it in again costs more than to have kept it.
const GRACE: Duration = Duration::from_secs(1);

impl MemoryStore {
    /// Sweeps a little before keys of one call are given slots: between one and the next it would be those that have a slot
    /// and were not charged yet.
    pub(super) fn make_room<'a>(&self, places: impl Iterator<Item = &'a Place<'a>>) {
        let idle_since = self.now().before(GRACE);
        places.for_each(|place| self.sweep_for(place.mark, idle_since));
    }

    /// Gives a key a slot. False if it is to be counted in its overflow cell.
    #[cold]
    pub(super) fn insert(&self, place: &mut Place<'_>, force: bool) -> bool {
        let (mark, policy) = (place.mark, place.policy);
        let Some(table) = self.table_for(place) else {
            return true; // There is no memory left to have a table in; there is none to go on with.
        };
        let now = self.now();
        let cell = Overflow::cell(table.number(), mark);
        // What others have used is taken along with the key, while nobody charges the cell for it: its page
        // is changing, and they would notice.
        let moves = can_leave_its_cell(policy);
        let moved = || if moves { self.overflow.copy(cell, now) } else { None };
        let is_taken = || !moves && self.overflow.is_busy(cell, now);
        let vacancy = |idle_since| Vacancy { is_taken: &is_taken, force, idle_since };
        let idle_since = now.before(GRACE);
        match table.insert(mark, &moved, vacancy(idle_since)) {
            Insertion::Done | Insertion::Known => return true,
            Insertion::Overflowed => {}
            Insertion::Full | Insertion::NoPlace => {
                self.sweep(now, SWEEPS_FOR_ROOM);
                if table.insert(mark, &moved, vacancy(now)).has_slot() {
                    return true;
                }
            }
        }
        self.pool.counters.overflowed.fetch_add(1, Ordering::Relaxed);
        false
    }

    /// Gives a key a slot in which its first units are taken already, if that is all there is to it.
    #[inline(never)]
    pub(super) fn insert_charged(
        &self,
        table: &Table,
        mark: u64,
        newcomer: &mut Newcomer<'_>,
    ) -> bool {
        let now = self.now();
        let cell = Overflow::cell(table.number(), mark);
        let is_taken = || self.overflow.is_busy(cell, now);
        if is_taken() {
            return false; // As one can see without keeping others from the page.
        }
        let idle_since = now.before(GRACE);
        self.sweep_for(mark, idle_since);
        let vacancy = Vacancy { is_taken: &is_taken, force: false, idle_since };
        table.insert_with(mark, newcomer, vacancy) == Insertion::Done
    }

    /// Sweeps a little, for every so many new keys.
    fn sweep_for(&self, mark: u64, idle_since: Timestamp) {
        if (mark >> 6).is_multiple_of(SWEPT_FOR) {
            self.sweep(idle_since, SWEEPS);
        }
    }

    /// Sweeps for room that nobody asked for yet.
    pub(super) fn sweep_a_little(&self) {
        self.sweep(self.now().before(GRACE), SWEEPS);
    }

    /// Forgets keys that have been idle since then, wherever they are, a few at a time.
    pub(super) fn sweep(&self, idle_since: Timestamp, stretches: usize) {
        let tables = self.tables.read();
        let is_full = self.pool.keys() >= self.pool.max_keys();
        for _ in 0..stretches {
            let Some(page) = self.pool.under_hand() else {
                return;
            };
            let owner = || tables.get(page.owner()?);
            let Some(_structure) = page.structure.try_lock() else {
                self.pool.move_hand(page.number());
                continue;
            };
            match owner() {
                // There is nothing to gain in so small a page, unless there is no room at all.
                Some(_) if page.size() < WORTH_SWEEPING && stretches == SWEEPS && !is_full => {
                    self.pool.move_hand(page.number());
                }
                Some(table) if !table.sweep(page, idle_since) => {}
                Some(table) => {
                    self.pool.move_hand(page.number());
                    if page.size() > 0 && page.keys() * 4 < table.slots(page.size()) {
                        table.shrink(page, idle_since);
                    }
                }
                None => self.pool.move_hand(page.number()),
            }
        }
    }

    /// Takes in what was remembered of a key, or of a cell, before this process began.
    pub(super) fn restore(&self, is_cell: bool, mark: u64, kept: Kept) {
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
        if !table.insert(mark, &|| None, vacancy).has_slot() {
            return self.overflow.add(Overflow::cell(table.number(), mark), &kept, now);
        }
        if let Some(Seat::Slot(_, found)) = table.find(mark)
            && let Some(locked) = found.group.try_lock(found.sequence)
        {
            // A key that was moved while it was saved may be there twice.
            table.take(&found.copied);
            table.put(&locked, &found.copied, kept);
        }
    }
}
