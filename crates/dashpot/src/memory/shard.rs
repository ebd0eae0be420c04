//! One lock's worth of keys.

use hashbrown::HashTable;

use super::SHARDS;
use super::record::Record;
use crate::algorithm::Verdict;
use crate::{Cost, Key, Policy, Reservation, Standing, Timestamp};

/// Where a check's counters are: under this policy, this key.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) hash: u64,
    pub(super) policy: &'a Policy,
    pub(super) key: Key<'a>,
}

impl Place<'_> {
    pub(super) fn shard(&self) -> usize {
        // Not the low nor the high bits: the table within the shard goes by those.
        (self.hash >> 32) as usize % SHARDS
    }

    pub(super) fn is(&self, policy: &Policy, key: Key<'_>) -> bool {
        self.key == key && self.policy.same_counters(policy)
    }
}

#[derive(Debug, Default)]
pub(super) struct Shard {
    /// Slots by the hash of their place.
    index: HashTable<usize>,
    slots: Vec<Slot>,
    /// The slot the sweep looks at next.
    hand: usize,
}

/// A key and what is remembered of it.
#[derive(Debug)]
pub(super) struct Slot {
    hash: u64,
    key: Box<[u8]>,
    /// The definition under which the record is kept.
    policy: Policy,
    record: Record,
}

impl Slot {
    fn is_at(&self, place: Place<'_>) -> bool {
        self.hash == place.hash && place.is(&self.policy, Key::new(&self.key))
    }

    /// Keeps the record under another definition from now on; the units used stay used.
    fn redefine(&mut self, policy: &Policy, now: Timestamp) {
        if !self.policy.same_definition(policy) {
            let (old, new) = (self.policy.engine(), policy.engine());
            new.adopt(old, &mut self.record.state, now);
            self.policy = policy.clone();
        }
    }
}

/// Slots the sweep looks at for each one inserted. More than one, so that it overtakes growth.
const SWEPT_PER_INSERT: usize = 2;

/// The sweep leaves shards of fewer slots alone: there is nothing to gain.
const WORTH_SWEEPING: usize = 16;

impl Shard {
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Says whether the cost passes.
    pub(super) fn verdict(&mut self, place: Place<'_>, now: Timestamp, cost: u64) -> Verdict {
        let engine = place.policy.engine();
        match self.find(place, now) {
            Some(slot) => slot.record.verdict(engine, now, cost),
            None => Record::fresh(engine).verdict(engine, now, cost),
        }
    }

    /// Takes units, whether they fit or not.
    pub(super) fn charge(&mut self, place: Place<'_>, now: Timestamp, units: u64) {
        let slot = self.find_or_insert(place, now);
        slot.policy.engine().charge(&mut slot.record.state, now, units);
    }

    /// How the key stands.
    pub(super) fn standing(&mut self, place: Place<'_>, now: Timestamp) -> Standing {
        let engine = place.policy.engine();
        match self.find(place, now) {
            Some(slot) => slot.record.standing(engine, now),
            None => Record::fresh(engine).standing(engine, now),
        }
    }

    /// Charges what was really used. The definition under which it was reserved may be an old one;
    /// the record goes on under its own.
    pub(super) fn settle(
        &mut self,
        place: Place<'_>,
        now: Timestamp,
        reservation: &Reservation,
        used: Cost,
    ) {
        let position = match self.position(place) {
            Some(position) => position,
            // Nothing is remembered of the key, so there is nothing to give back.
            None if used <= reservation.cost() || place.policy.quota().is_unlimited() => return,
            None => self.insert(place, now),
        };
        let slot = self.slot(position);
        slot.policy.engine().settle(
            &mut slot.record.state,
            now,
            reservation.charged_at(),
            reservation.cost().units(),
            used.units(),
        );
    }

    /// Forgets what was counted.
    pub(super) fn reset(&mut self, place: Place<'_>, now: Timestamp) {
        if let Some(slot) = self.find(place, now) {
            slot.record.state = slot.policy.engine().reset(now);
        }
    }

    /// Blocks the key until then, which ends any block if it is past.
    pub(super) fn block(&mut self, place: Place<'_>, now: Timestamp, until: Timestamp) {
        if until > now {
            self.find_or_insert(place, now).record.blocked_until = until;
        } else if let Some(slot) = self.find(place, now) {
            // Not `until`, which would be a block again if the clock went back.
            slot.record.blocked_until = Timestamp::EPOCH;
        }
    }

    fn find(&mut self, place: Place<'_>, now: Timestamp) -> Option<&mut Slot> {
        let position = self.position(place)?;
        let slot = self.slot(position);
        slot.redefine(place.policy, now);
        Some(slot)
    }

    fn find_or_insert(&mut self, place: Place<'_>, now: Timestamp) -> &mut Slot {
        let position = match self.position(place) {
            Some(position) => position,
            None => self.insert(place, now),
        };
        let slot = self.slot(position);
        slot.redefine(place.policy, now);
        slot
    }

    fn position(&self, place: Place<'_>) -> Option<usize> {
        let is_here = |&position: &usize| {
            let slot = self.slots.get(position);
            slot.is_some_and(|slot| slot.is_at(place))
        };
        self.index.find(place.hash, is_here).copied()
    }

    fn insert(&mut self, place: Place<'_>, now: Timestamp) -> usize {
        self.sweep(now);
        let position = self.slots.len();
        self.slots.push(Slot {
            hash: place.hash,
            key: place.key.as_bytes().into(),
            policy: place.policy.clone(),
            record: Record::fresh(place.policy.engine()),
        });
        let hashes = |&position: &usize| self.slots.get(position).map_or(0, |slot| slot.hash);
        self.index.insert_unique(place.hash, position, hashes);
        position
    }

    /// Looks at the next few slots and drops those that are as good as new.
    fn sweep(&mut self, now: Timestamp) {
        if self.slots.len() < WORTH_SWEEPING {
            return;
        }
        for _ in 0..SWEPT_PER_INSERT {
            if self.hand >= self.slots.len() {
                self.hand = 0;
            }
            let slot = self.slot(self.hand);
            if slot.record.is_idle(slot.policy.engine(), now) {
                self.remove(self.hand);
            } else {
                self.hand += 1;
            }
        }
    }

    /// Takes a slot out; the last one moves into its position.
    fn remove(&mut self, position: usize) {
        let removed = self.slots.swap_remove(position);
        if let Ok(entry) = self.index.find_entry(removed.hash, |&found| found == position) {
            entry.remove();
        }
        let moved_from = self.slots.len();
        if let Some(moved) = self.slots.get(position)
            && let Some(found) = self.index.find_mut(moved.hash, |&found| found == moved_from)
        {
            *found = position;
        }
    }

    fn slot(&mut self, position: usize) -> &mut Slot {
        // Positions come from the index, which knows no others, or are checked before.
        #[expect(clippy::indexing_slicing)]
        &mut self.slots[position]
    }
}
