//! Where people wait: a line for each key somebody waits for.

use std::collections::BTreeMap;
use std::mem;
use std::task::Waker;

use super::NotReady;
use crate::memory::sync::{AtomicUsize, Mutex, Ordering, fence, or_in_models};

/// How many may wait in one store.
const MOST: usize = 65_536;

/// How many may wait for one key.
const MOST_PER_KEY: usize = 1_024;

/// Enough that checks seldom share one with somebody who waits for another key.
const SECTIONS: usize = or_in_models(64, 2);

/// The lines, by the hash of policy and key. Should two keys ever have the same, they share a line:
/// one of them waits a little longer than it must, and nothing else.
///
/// Nobody is woken, and no waker dropped, under a lock: either may run anything, and come back.
#[derive(Debug)]
pub(crate) struct Room {
    sections: Box<[Section]>,
    waiting: AtomicUsize,
    most: usize,
    most_per_key: usize,
}

#[derive(Debug, Default)]
struct Section {
    /// How many lines there are: what a check looks at, without the lock.
    occupied: AtomicUsize,
    lines: Mutex<BTreeMap<u64, Line>>,
}

/// Those who wait for one key by their ticket, the first one first. Tickets only grow while there
/// is a line. A waker is missing if it was used and its owner has not been back yet.
type Line = BTreeMap<u64, Option<Waker>>;

impl Default for Room {
    fn default() -> Self {
        Self::new(MOST, MOST_PER_KEY)
    }
}

impl Room {
    pub(crate) fn new(most: usize, most_per_key: usize) -> Self {
        let sections = (0..SECTIONS).map(|_| Section::default()).collect();
        Self { sections, waiting: AtomicUsize::new(0), most, most_per_key }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Whether nobody waits: what a check looks at first.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) == 0
    }

    /// Whether somebody waits for this key. One load if nobody waits for it or its neighbours.
    pub(crate) fn is_waited_for(&self, place: u64) -> bool {
        let section = self.section(place);
        // Whoever was told to wait before this check had entered before; the store's own lock lies
        // between the two, so no more order is needed here.
        section.occupied.load(Ordering::Relaxed) > 0 && section.lines.lock().contains_key(&place)
    }

    /// Something was given back or forgotten: wakes the first one in line, to try again.
    pub(crate) fn touched(&self, place: u64) {
        // With the one in `is_first`: either the one in line sees what was given back, or is seen
        // here. A store that changes and reads under one lock has that without; others have not.
        fence(Ordering::SeqCst);
        let section = self.section(place);
        if section.occupied.load(Ordering::Relaxed) == 0 {
            return;
        }
        let first = section.lines.lock().get_mut(&place).and_then(waker_of_first);
        if let Some(first) = first {
            first.wake();
        }
    }

    /// Something was given back that several keys share, nobody knows which: wakes the first one in
    /// every line.
    pub(crate) fn touched_all(&self) {
        fence(Ordering::SeqCst);
        for section in &self.sections {
            if section.occupied.load(Ordering::Relaxed) > 0 {
                let mut lines = section.lines.lock();
                let first: Vec<_> = lines.values_mut().filter_map(waker_of_first).collect();
                drop(lines);
                first.into_iter().for_each(Waker::wake);
            }
        }
    }

    /// Gets in line.
    pub(super) fn enter(&self, place: u64) -> Result<Waiter<'_>, NotReady> {
        let one_more = |waiting| (waiting < self.most).then_some(waiting + 1);
        let entered = self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        if entered.is_err() {
            return Err(NotReady::Full);
        }
        let section = self.section(place);
        let mut lines = section.lines.lock();
        let line = lines.entry(place).or_default();
        let ticket = line.last_key_value().map_or(0, |(last, _)| last.wrapping_add(1));
        let is_full = line.len() >= self.most_per_key;
        if !is_full {
            line.insert(ticket, None);
        }
        section.tidy(&mut lines, place);
        drop(lines);
        if is_full {
            self.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(NotReady::Full);
        }
        Ok(Waiter { room: self, place, ticket })
    }

    fn section(&self, place: u64) -> &Section {
        // The remainder is one of them.
        #[expect(clippy::indexing_slicing)]
        &self.sections[(place >> 32) as usize % SECTIONS]
    }
}

impl Section {
    /// Takes a line away that has become empty, and shows how many there are.
    fn tidy(&self, lines: &mut BTreeMap<u64, Line>, place: u64) {
        if lines.get(&place).is_some_and(BTreeMap::is_empty) {
            lines.remove(&place);
        }
        self.occupied.store(lines.len(), Ordering::Relaxed);
    }
}

/// Somebody in line. Dropped, the line closes up at once.
#[derive(Debug)]
pub(super) struct Waiter<'r> {
    room: &'r Room,
    place: u64,
    ticket: u64,
}

impl Waiter<'_> {
    /// Whether it is this one's turn. If not, or if it comes to nothing, `waker` is woken when there
    /// is a reason to look again.
    pub(super) fn is_first(&self, waker: &Waker) -> bool {
        let mut waker = Some(waker.clone());
        let mut lines = self.room.section(self.place).lines.lock();
        let Some(line) = lines.get_mut(&self.place) else {
            return false; // Never so: the line is there while this is in it.
        };
        if let Some(registered) = line.get_mut(&self.ticket) {
            mem::swap(registered, &mut waker);
        }
        let is_first = line.first_key_value().is_some_and(|(first, _)| *first == self.ticket);
        drop(lines);
        fence(Ordering::SeqCst);
        is_first
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let section = self.room.section(self.place);
        let mut lines = section.lines.lock();
        let (mut own, mut next) = (None, None);
        if let Some(line) = lines.get_mut(&self.place) {
            let was_first = line.first_key_value().is_some_and(|(first, _)| *first == self.ticket);
            own = line.remove(&self.ticket);
            next = was_first.then(|| waker_of_first(line)).flatten();
        }
        section.tidy(&mut lines, self.place);
        drop(lines);
        self.room.waiting.fetch_sub(1, Ordering::Relaxed);
        drop(own);
        if let Some(next) = next {
            next.wake();
        }
    }
}

/// Takes the waker of the first one, who leaves another when it comes back to look.
fn waker_of_first(line: &mut Line) -> Option<Waker> {
    line.first_entry()?.get_mut().take()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_so_many_for_a_key_and_so_many_in_all() {
        let room = Room::new(3, 2);
        let (one, _other) = (room.enter(7).unwrap(), room.enter(7).unwrap());
        assert_eq!(room.enter(7).unwrap_err(), NotReady::Full);
        let third = room.enter(8).unwrap();
        assert_eq!(room.enter(9).unwrap_err(), NotReady::Full);
        assert_eq!(room.len(), 3);
        drop(third);
        let _for_another_key = room.enter(9).unwrap();
        drop(one);
        let _for_the_same = room.enter(7).unwrap();
        assert_eq!(room.len(), 3);
    }

    #[test]
    fn nothing_is_left_of_a_line_when_the_last_one_leaves() {
        let room = Room::default();
        let waiters = [1, 2, 1].map(|place| room.enter(place).unwrap());
        assert!(room.is_waited_for(1) && room.is_waited_for(2) && !room.is_waited_for(3));
        drop(waiters);
        assert_eq!(room.len(), 0);
        for section in &room.sections {
            assert!(section.lines.lock().is_empty());
            assert_eq!(section.occupied.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn a_full_room_leaves_no_empty_line_behind() {
        let room = Room::new(1, 0);
        assert_eq!(room.enter(7).unwrap_err(), NotReady::Full);
        assert_eq!(room.len(), 0);
        assert!(!room.is_waited_for(7));
    }

    /// Were a lock taken, this would wait for itself for ever.
    #[test]
    fn while_nobody_waits_nobody_takes_a_lock() {
        let room = Room::default();
        let _all: Vec<_> = room.sections.iter().map(|section| section.lines.lock()).collect();
        for place in 0..1000 {
            assert!(!room.is_waited_for(place << 32));
            room.touched(place << 32);
        }
    }

    #[test]
    fn keys_that_share_a_section_do_not_share_a_line() {
        let room = Room::default();
        let _waiter = room.enter(1).unwrap();
        assert!(!room.is_waited_for(2));
    }
}
