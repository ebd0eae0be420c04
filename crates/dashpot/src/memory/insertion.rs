//! How a new key comes by a slot.

use super::directory::Spot;
use super::group::{LockedGroup, Words};
use super::kept::Kept;
use super::page::{Page, Search, lock};
use super::sync::{Backoff, Ordering, fence};
use super::table::{EMPTY_HANDED, Table};
use crate::Timestamp;

impl Table {
    /// Gives a key a slot in the place of an empty or an idle one, with what `moved` says when there
    /// is one; fresh if that is nothing.
    pub(super) fn insert(
        &self,
        mark: u64,
        moved: &dyn Fn() -> Option<Kept>,
        vacancy: Vacancy<'_>,
    ) -> Insertion {
        let newcomer = &mut || match moved() {
            Some(kept) => Some(self.stow(mark, kept)),
            None => Some((mark | EMPTY_HANDED, Words::default())),
        };
        self.insert_with(mark, newcomer, vacancy)
    }

    /// Gives a key a slot with the mark and the state that `newcomer` says when there is one, if it
    /// does.
    pub(super) fn insert_with(
        &self,
        mark: u64,
        newcomer: &mut Newcomer<'_>,
        vacancy: Vacancy<'_>,
    ) -> Insertion {
        loop {
            let Some(spot) = self.directory().spot(mark) else {
                return Insertion::Full;
            };
            let _structure = spot.page.structure.lock();
            if !self.directory().is_still(&spot) {
                continue;
            }
            spot.page.changing();
            let inserted = self.insert_here(&spot, mark, newcomer, vacancy);
            spot.page.changed();
            match inserted {
                Insertion::NoPlace => {
                    if !self.rehouse(spot.page, vacancy.idle_since) {
                        return Insertion::Full;
                    }
                }
                inserted => return inserted,
            }
        }
    }

    fn insert_here(
        &self,
        spot: &Spot<'_>,
        mark: u64,
        newcomer: &mut Newcomer<'_>,
        vacancy: Vacancy<'_>,
    ) -> Insertion {
        // Who charges an overflow cell says so before he looks at the version of the page, and it
        // has changed by now. So one of us sees the other.
        fence(Ordering::SeqCst);
        if (vacancy.is_taken)() {
            return Insertion::Overflowed;
        }
        let page = spot.page;
        let mut backoff = Backoff::default();
        loop {
            match page.find(mark, self.shape()) {
                Search::Found(_) => return Insertion::Known,
                Search::Missing => break,
                Search::Busy => backoff.wait(),
            }
        }
        for group in page.search(mark, self.shape()) {
            let mut locked = lock(group);
            if let Some(empty) = group.copies().find(|copied| copied.mark == 0) {
                // Beyond this, searches take long.
                if page.keys() >= self.slots(page.size()) * 7 / 8 {
                    break;
                }
                if vacancy.force {
                    self.pool().force();
                } else if !self.pool().reserve() {
                    let replaced = self.replace_idle(page, &locked, newcomer, vacancy);
                    return if replaced { Insertion::Done } else { Insertion::Full };
                }
                let Some((mark, words)) = newcomer() else {
                    self.pool().release(1);
                    return Insertion::Full;
                };
                page.set_keys(page.keys() + 1);
                locked.write(empty.slot, mark, words);
                return Insertion::Done;
            }
            if self.replace_idle(page, &locked, newcomer, vacancy) {
                return Insertion::Done;
            }
            locked.spill();
        }
        if vacancy.force || self.pool().keys() < self.pool().max_keys() {
            Insertion::NoPlace
        } else {
            Insertion::Full
        }
    }

    /// Puts a key in the place of one of this group that has been idle long enough, if there is any.
    fn replace_idle(
        &self,
        page: &Page,
        locked: &LockedGroup<'_>,
        newcomer: &mut Newcomer<'_>,
        vacancy: Vacancy<'_>,
    ) -> bool {
        let mut copies = locked.group().copies().filter(|copied| copied.mark != 0);
        let Some(idle) = copies.find(|copied| self.is_idle(copied, vacancy.idle_since)) else {
            return false;
        };
        // Some were let in though there was no room: their places are not handed on.
        if !vacancy.force && self.pool().keys() > self.pool().max_keys() {
            self.clear(locked, &idle);
            page.set_keys(page.keys().saturating_sub(1));
            self.forgot(1);
            return false;
        }
        let Some((mark, words)) = newcomer() else {
            return false;
        };
        self.clear(locked, &idle);
        locked.write(idle.slot, mark, words);
        self.pool().counters.reclaimed.fetch_add(1, Ordering::Relaxed);
        true
    }
}

/// A new key's mark and state, told while its slot is held; none if it is not to have one after all.
pub(super) type Newcomer<'n> = dyn FnMut() -> Option<(u64, Words)> + 'n;

/// What else must be known to insert a key.
#[derive(Clone, Copy)]
pub(super) struct Vacancy<'r> {
    /// Whether the key is counted in an overflow cell by now, and must stay there.
    pub(super) is_taken: &'r dyn Fn() -> bool,
    /// Whether it goes in even if there is no room.
    pub(super) force: bool,
    /// Keys that have been idle since then make room.
    pub(super) idle_since: Timestamp,
}

/// What came of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Insertion {
    /// The key has a slot, as it was to be.
    Done,
    /// It had one already.
    Known,
    /// It has to stay in its overflow cell.
    Overflowed,
    /// There are as many keys as there may be.
    Full,
    /// Its page has no place for it.
    NoPlace,
}

impl Insertion {
    /// Whether the key has a slot now, new or not.
    pub(super) fn has_slot(self) -> bool {
        matches!(self, Self::Done | Self::Known)
    }
}
