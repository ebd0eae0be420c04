//! The keys of one call, held: nobody else sees or changes them meanwhile.
//!
//! Groups are locked in the order of their addresses, and given up at once if one has changed since
//! its key was found; then overflow cells. So calls cannot block each other for good, and what they
//! do happens at one instant.

use smallvec::SmallVec;

use super::group::LockedGroup;
use super::kept::Kept;
use super::overflow::{Cell, Cells, Overflow};
use super::place::Place;
use super::sync::{MutexGuard, Ordering, fence};
use super::table::{Seat, Table};
use crate::Timestamp;

/// Where a key is counted.
pub(super) enum Source<'t> {
    /// In a slot of its own.
    Slot(&'t Table, Seat<'t>),
    /// In the overflow cell of keys like it.
    Cell(&'t Table, u64, Seat<'t>),
    /// Nowhere yet.
    Nowhere(Option<(&'t Table, u64, Seat<'t>)>),
}

impl<'t> Source<'t> {
    /// Looks for a key; `overflowing` if it is to be counted in a cell for want of room. None if
    /// somebody is in the way.
    pub(super) fn find(
        place: &'t Place<'_>,
        overflow: &Overflow,
        overflowing: bool,
        now: Timestamp,
    ) -> Option<Self> {
        let Some(table) = place.table.as_deref() else {
            return Some(Self::Nowhere(None));
        };
        let seat = table.find(place.mark)?;
        Some(match seat {
            Seat::Slot(..) => Self::Slot(table, seat),
            Seat::Absent(..) => {
                let cell = Overflow::cell(table.number(), place.mark);
                if overflowing || overflow.is_busy(cell, now) {
                    Self::Cell(table, place.mark, seat)
                } else {
                    Self::Nowhere(Some((table, place.mark, seat)))
                }
            }
        })
    }

    /// Its cell, if it is counted in one.
    pub(super) fn cell(&self) -> Option<Cell> {
        match self {
            Self::Cell(table, mark, _) => Some(Overflow::cell(table.number(), *mark)),
            _ => None,
        }
    }

    fn group_address(&self) -> Option<usize> {
        match self {
            Self::Slot(_, Seat::Slot(_, found)) => Some(found.group.address()),
            _ => None,
        }
    }

    /// Whether a key that had no slot still has none.
    pub(super) fn is_still_absent(&self) -> bool {
        match self {
            Self::Cell(table, _, Seat::Absent(spot, version))
            | Self::Nowhere(Some((table, _, Seat::Absent(spot, version)))) => {
                table.is_absent(spot, *version)
            }
            _ => true,
        }
    }
}

/// Some keys, held.
pub(super) struct Hold<'t> {
    /// By address.
    locked: SmallVec<[(usize, LockedGroup<'t>); 4]>,
    cells: Option<MutexGuard<'t, Cells>>,
}

impl<'t> Hold<'t> {
    /// Holds all of these. None if one of them has changed meanwhile.
    pub(super) fn all(
        sources: &[Source<'t>],
        overflow: &'t Overflow,
        now: Timestamp,
    ) -> Option<Self> {
        let mut hold = Self { locked: SmallVec::new(), cells: None };
        let mut slots: SmallVec<[(usize, &Source<'t>); 4]> =
            sources.iter().filter_map(|source| Some((source.group_address()?, source))).collect();
        slots.sort_unstable_by_key(|(address, _)| *address);
        for (address, source) in slots {
            let Source::Slot(table, Seat::Slot(spot, found)) = source else {
                continue;
            };
            match hold.locked.last() {
                // Two keys in one group: both were found there as it is now, or not.
                Some((last, locked)) if *last == address => {
                    if locked.sequence() != found.sequence {
                        return None;
                    }
                }
                _ => hold.locked.push((address, found.group.try_lock(found.sequence)?)),
            }
            if !table.directory().is_still(spot) {
                return None;
            }
        }
        let is_among_others = sources.len() > 1 && !overflow.is_empty();
        let needs_cells = |source: &Source<'_>| match source {
            Source::Cell(..) => true,
            Source::Nowhere(Some(_)) => is_among_others,
            Source::Nowhere(None) | Source::Slot(..) => false,
        };
        if sources.iter().any(needs_cells) {
            let mut cells = overflow.lock();
            for source in sources {
                if let Source::Cell(table, mark, _) = source
                    && let Some(definition) = table.first_definition()
                {
                    let cell = Overflow::cell(table.number(), *mark);
                    overflow.open(&mut cells, cell, definition);
                }
            }
            hold.cells = Some(cells);
            // The cells are open, and everybody who inserts sees it or is seen by us.
            fence(Ordering::SeqCst);
        }
        // A key that was nowhere may have been counted in a cell since, together with one that is held
        // now; they are seen as they were at one instant.
        let is_elsewhere = |source: &Source<'t>| match (source, &hold.cells) {
            (Source::Nowhere(Some((table, mark, _))), Some(cells)) => {
                cells.is_busy(Overflow::cell(table.number(), *mark), now)
            }
            _ => false,
        };
        let unchanged =
            sources.iter().all(|source| source.is_still_absent() && !is_elsewhere(source));
        unchanged.then_some(hold)
    }

    /// Takes a key's state out, to be put back.
    pub(super) fn take(&mut self, source: &Source<'t>, place: &Place<'_>) -> Kept {
        let fresh = || Kept::fresh(place.policy.definition().clone());
        match source {
            Source::Slot(table, Seat::Slot(_, found)) => {
                table.take(&found.copied).unwrap_or_else(fresh)
            }
            Source::Cell(table, mark, _) => {
                let cell = Overflow::cell(table.number(), *mark);
                self.cells.as_mut().and_then(|cells| cells.take(cell)).unwrap_or_else(fresh)
            }
            _ => fresh(),
        }
    }

    /// Puts a key's state where it was.
    pub(super) fn put(&mut self, source: &Source<'t>, kept: Kept) {
        match source {
            Source::Slot(table, Seat::Slot(_, found)) => {
                let address = found.group.address();
                if let Ok(index) = self.locked.binary_search_by_key(&address, |(found, _)| *found)
                    && let Some((_, locked)) = self.locked.get(index)
                {
                    table.put(locked, &found.copied, kept);
                }
            }
            Source::Cell(table, mark, _) => {
                if let Some(cells) = &mut self.cells {
                    cells.put(Overflow::cell(table.number(), *mark), kept);
                }
            }
            _ => {}
        }
    }
}
