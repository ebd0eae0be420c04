//! How a table grows and shrinks: a page at a time, by moving its keys to other pages.

use super::directory::Spot;
use super::group::{Copied, Group};
use super::page::{LINE, Page, SIZES, lock, suits};
use super::sync::{MutexGuard, Ordering, or_in_models};
use super::table::Table;
use crate::Timestamp;

/// Keys get pages with room for one and a half as many.
const ROOM: (usize, usize) = (3, 2);

/// Groups a sweep looks at before it lets others get on.
const SWEPT: usize = or_in_models(8, 1);

impl Table {
    /// Moves the keys of a page that has no place for another to one that has, or to two. Whoever
    /// calls holds the page. False if it cannot be done.
    pub(super) fn rehouse(&self, page: &Page, now: Timestamp) -> bool {
        let keys = page.keys();
        self.pool().with_list(|moving| {
            self.vacate(page, now, moving);
            // If nobody stayed behind, then not into one of the same size, where all would be as it
            // was.
            let least = if moving.len() < keys { 0 } else { self.slots(page.size()) + 1 };
            let room = (least, self.slots(page.size()));
            let moved = self.settle_in(moving, page.prefix(), page.depth(), room);
            self.pool().give_back(page, self.shape());
            moved
        })
    }

    /// Moves the keys of a page that is nearly empty to a smaller one, or together with those of its
    /// neighbour if they need no more than one. Whoever calls holds the page.
    pub(super) fn shrink(&self, page: &Page, now: Timestamp) {
        let depth = page.depth();
        let Some(bit) = depth.checked_sub(1).map(|above| 1 << (63 - above)) else {
            return self.fit(page, now);
        };
        let larger = |neighbour: &Page| self.slots(page.size().max(neighbour.size()));
        let together = |neighbour: &Spot<'_>| {
            let keys = page.keys() + neighbour.page.keys();
            let few = (self.slots(SIZES.len() - 1) / 4).max(larger(neighbour.page) / 2);
            neighbour.page.depth() == depth && keys < few && self.directory().is_still(neighbour)
        };
        let neighbour = self.directory().spot(page.prefix() ^ bit);
        if let Some(neighbour) = neighbour
            && let Some(_structure) = neighbour.page.structure.try_lock()
            && together(&neighbour)
        {
            self.pool().with_list(|moving| {
                self.vacate(page, now, moving);
                self.vacate(neighbour.page, now, moving);
                let most = larger(neighbour.page);
                self.settle_in(moving, page.prefix() & !bit, depth - 1, (0, most));
            });
            self.pool().give_back(page, self.shape());
            self.pool().give_back(neighbour.page, self.shape());
        } else {
            self.fit(page, now);
        }
    }

    /// Moves the keys of a page to the smallest that takes them. If there will be a neighbour to go together with, only to one
    /// that is free: pages that were made for what is left in each would take as much again.
    fn fit(&self, page: &Page, now: Timestamp) {
        let room = (0, self.slots(page.size()));
        let Some(size) = self.sizes_for(page.keys(), page.prefix(), room).next() else { return };
        // Into one of its own size it would be moved again and again.
        if size == page.size() || page.depth() > 0 && !self.pool().has_free(size, self.shape()) {
            return;
        }
        self.pool().with_list(|moving| {
            self.vacate(page, now, moving);
            self.settle_in(moving, page.prefix(), page.depth(), room);
        });
        self.pool().give_back(page, self.shape());
    }

    /// Takes all keys out of a page, but for idle ones, which are forgotten; the page is locked for
    /// good.
    fn vacate(&self, page: &Page, now: Timestamp, moving: &mut Vec<Copied>) {
        // Never `changed` again: what was found here is not to be believed any more.
        page.changing();
        let (before, mut idle) = (moving.len(), 0);
        for group in self.groups_of(page) {
            let locked = lock(group);
            for copied in locked.group().copies().filter(|copied| copied.mark != 0) {
                if self.is_idle(&copied, now) {
                    self.clear(&locked, &copied);
                    idle += 1;
                } else {
                    moving.push(copied);
                }
            }
            locked.retire();
        }
        self.forgot(idle);
        let moved = moving.len() - before;
        self.pool().counters.moved.fetch_add(moved as u64, Ordering::Relaxed);
    }

    /// The slots in a page of this size.
    pub(super) fn slots(&self, size: usize) -> usize {
        let lines = SIZES.get(size).copied().unwrap_or(0);
        lines * LINE / self.shape().group * self.shape().slots()
    }

    /// Pages that so many keys with these first bits may go to, the best one first. Each has at least so many slots; one
    /// that is free may have so many.
    fn sizes_for(
        &self,
        keys: usize,
        mark: u64,
        (least, most): (usize, usize),
    ) -> impl Iterator<Item = usize> {
        let wanted = ((keys + 1) * ROOM.0 / ROOM.1).max(least);
        let takes_them = move |&(size, lines): &(usize, &usize)| {
            suits(*lines, mark) && self.slots(size) >= wanted
        };
        let fitting = move || SIZES.iter().enumerate().filter(takes_them).map(|(size, _)| size);
        // The smallest, but if one of up to twice its size is free, or of the size that is given up for it, rather that: to
        // tables that shrink and grow again, new pages would be made while larger ones lie idle.
        let most = fitting().next().map_or(0, |size| self.slots(size) * 2).max(most);
        let is_free =
            |size: &usize| self.slots(*size) <= most && self.pool().has_free(*size, self.shape());
        fitting().find(is_free).into_iter().chain(fitting())
    }

    /// Puts keys that have their first `depth` bits in common with this mark into new pages, and the
    /// directory leads to those. A page alone has at least so many slots, and may have so many.
    fn settle_in(
        &self,
        moving: &mut [Copied],
        mark: u64,
        depth: u32,
        room: (usize, usize),
    ) -> bool {
        for size in self.sizes_for(moving.len(), mark, room) {
            if let Some((number, _structure)) = self.settle_one(moving, mark, depth, size) {
                let _growth = self.growth.lock();
                self.pool().page(number).inspect(|page| page.changed());
                return self.directory().lead(mark, depth, number);
            }
        }
        // More than one page takes: half of them here, half there.
        let bit = 1 << (63 - depth.min(62));
        moving.sort_unstable_by_key(|copied| copied.mark & bit);
        let (zeros, ones) = moving.split_at_mut(moving.partition_point(|one| one.mark & bit == 0));
        self.settle_in(zeros, mark & !bit, depth + 1, (0, room.1))
            && self.settle_in(ones, mark | bit, depth + 1, (0, room.1))
    }

    /// Puts keys into a new page, and holds it. None if one of them finds no place there.
    fn settle_one(
        &self,
        moving: &[Copied],
        mark: u64,
        depth: u32,
        size: usize,
    ) -> Option<(u32, MutexGuard<'_, ()>)> {
        let taken = self.pool().take(size, self.shape(), self.number(), (mark, depth));
        let (number, structure) = taken?;
        let page = self.pool().page(number)?;
        page.set_keys(moving.len());
        if moving.iter().all(|copied| self.settle_key(page, copied)) {
            return Some((number, structure));
        }
        for group in self.groups_of(page) {
            lock(group).retire();
        }
        self.pool().give_back(page, self.shape());
        None
    }

    fn settle_key(&self, page: &Page, key: &Copied) -> bool {
        for group in page.search(key.mark, self.shape()) {
            let mut locked = lock(group);
            if let Some(empty) = locked.group().copies().find(|copied| copied.mark == 0) {
                locked.write(empty.slot, key.mark, key.words);
                return true;
            }
            locked.spill();
        }
        false
    }

    pub(super) fn groups_of<'p>(&self, page: &'p Page) -> impl Iterator<Item = Group<'p>> {
        let shape = self.shape();
        (0..page.groups(shape)).filter_map(move |index| page.group(index, shape))
    }

    /// Forgets idle keys in the next few groups of a page. Whoever calls holds the page. Says whether
    /// that was the last of them.
    pub(super) fn sweep(&self, page: &Page, now: Timestamp) -> bool {
        let (groups, mut idle) = (page.groups(self.shape()), 0);
        let from = page.hand();
        let next = from + SWEPT;
        for group in (from..next.min(groups)).filter_map(|index| page.group(index, self.shape())) {
            let is_due = |copied: &Copied| {
                copied.mark != 0 && (Self::is_newborn(copied) || self.is_idle(copied, now))
            };
            if !group.copies().any(|copied| is_due(&copied)) {
                continue; // As far as one can see without keeping anybody waiting.
            }
            let locked = lock(group);
            for copied in group.copies().filter(is_due) {
                if Self::is_newborn(&copied) {
                    Self::wean(&locked, &copied);
                } else {
                    self.clear(&locked, &copied);
                    idle += 1;
                }
            }
        }
        page.set_keys(page.keys().saturating_sub(idle));
        self.forgot(idle);
        page.set_hand(if next < groups { next } else { 0 });
        next >= groups
    }

    /// Notes that so many idle keys are forgotten.
    pub(super) fn forgot(&self, keys: usize) {
        if keys > 0 {
            self.pool().release(keys);
            self.pool().counters.reclaimed.fetch_add(keys as u64, Ordering::Relaxed);
        }
    }
}
