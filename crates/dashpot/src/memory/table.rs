//! All keys of one policy.

use std::fmt;
use std::sync::{Arc, OnceLock};

use smallvec::SmallVec;

use super::directory::{Directory, Spot};
use super::group::{Copied, Group, LockedGroup, Shape, Words};
use super::kept::Kept;
use super::page::{self, DEFINITION_BITS, Found, Look, Search, lock};
use super::pool::Pool;
use super::side::Side;
use super::sync::{Backoff, Mutex};
use crate::policy::Definition;
use crate::{Policy, Timestamp};

/// As many definitions as the last bits of a mark can tell apart: not 0, which is in no mark, and not
/// those of the newborn.
const DEFINITIONS: usize = page::DEFINITIONS - 1;

/// The bits of a key whose slot has no state in it: the first word is the number under which that is
/// kept aside, less one, or 0 if the key is newborn. It was given a slot then and not charged yet; it
/// is as good as new, but to take the slot away from it before it can use it would help nobody.
pub(super) const EMPTY_HANDED: u64 = DEFINITION_BITS;

/// All keys of one policy: of its name, algorithm, window (unless any will do) and zone.
///
/// A key is known by a *mark*, 58 bits of its hash; the key itself is not kept. Two keys of a table
/// that have the same mark share their counters, which can only be too strict; among a million keys
/// the chance that any two do is one in half a million.
pub(crate) struct Table {
    number: u32,
    shape: Shape,
    directory: Directory,
    /// Held by whoever changes the directory.
    pub(super) growth: Mutex<()>,
    /// The definitions under which states are kept, by the last bits of marks less one.
    definitions: Box<[OnceLock<Arc<Definition>>]>,
    side: Side,
}

/// What a table knows about a key.
pub(super) enum Seat<'t> {
    /// It has a slot.
    Slot(Spot<'t>, Found<'t>),
    /// It has none, by this version of the page.
    Absent(Spot<'t>, u64),
}

impl Table {
    /// An empty table; none if there are no pages left.
    pub(super) fn new(number: u32, definition: &Arc<Definition>, pool: Arc<Pool>) -> Option<Self> {
        let shape = Shape::of(definition.engine.words());
        let (page, _) = pool.take(0, shape, number, (0, 0))?;
        pool.page(page)?.changed();
        let table = Self {
            number,
            shape,
            directory: Directory::new(page, pool)?,
            growth: Mutex::new(()),
            definitions: (0..DEFINITIONS).map(|_| OnceLock::new()).collect(),
            side: Side::default(),
        };
        table.definition_bits(definition);
        Some(table)
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn directory(&self) -> &Directory {
        &self.directory
    }

    pub(super) fn pool(&self) -> &Pool {
        self.directory.pool()
    }

    /// The definition it began with.
    pub(super) fn first_definition(&self) -> Option<&Arc<Definition>> {
        self.definitions.first()?.get()
    }

    /// All definitions so far.
    pub(super) fn known_definitions(&self) -> Vec<Arc<Definition>> {
        self.definitions.iter().map_while(OnceLock::get).cloned().collect()
    }

    /// Looks at all keys of the page that this mark leads to. Says with which mark the next page
    /// begins, if there is one. A visitor who goes on there sees every key that is there all the
    /// time, whatever is moved meanwhile.
    pub(super) fn visit(&self, mark: u64, found: &mut dyn FnMut(u64, &Kept)) -> Option<u64> {
        loop {
            let spot = self.directory.spot(mark)?;
            let _structure = spot.page.structure.lock();
            if !self.directory.is_still(&spot) {
                continue;
            }
            for group in self.groups_of(spot.page) {
                self.visit_group(group, found);
            }
            let width = 1_u64.checked_shl(64 - spot.page.depth())?;
            return spot.page.prefix().checked_add(width);
        }
    }

    fn visit_group(&self, group: Group<'_>, found: &mut dyn FnMut(u64, &Kept)) {
        let is_aside = |copied: &Copied| Self::number_aside(copied).is_some();
        let mut backoff = Backoff::default();
        // Nobody is kept waiting for what can be copied.
        let copies: SmallVec<[Copied; 5]> = loop {
            if let Some(sequence) = group.sequence() {
                let copies = group.copies().filter(|copied| copied.mark != 0).collect();
                if group.is_still(sequence) {
                    break copies;
                }
            }
            backoff.wait();
        };
        if !copies.iter().any(is_aside) {
            for copied in &copies {
                if let Some(kept) = self.take(copied) {
                    found(copied.mark & !DEFINITION_BITS, &kept);
                }
            }
            return;
        }
        // What is aside belongs to whoever has the lock. All of them again: one may have come back.
        let _locked = lock(group);
        for copied in group.copies().filter(|copied| copied.mark != 0) {
            let mark = copied.mark & !DEFINITION_BITS;
            if let Some(number) = Self::number_aside(&copied) {
                self.side.with(number, |kept| found(mark, kept));
            } else if let Some(kept) = self.take(&copied) {
                found(mark, &kept);
            }
        }
    }

    /// The bits that stand for a definition in marks, or for one that keeps its states alike. None if there
    /// have been too many: states under this one are then kept aside.
    pub(super) fn definition_bits(&self, definition: &Arc<Definition>) -> Option<u64> {
        for (bits, known) in (1..).zip(&self.definitions) {
            if known.get_or_init(|| Policy::whole_definition(definition)).keeps_alike(definition) {
                return Some(bits);
            }
        }
        None
    }

    /// The definition that bits of a mark stand for.
    fn definition(&self, mark: u64) -> Option<&Arc<Definition>> {
        let index = usize::try_from((mark & DEFINITION_BITS).checked_sub(1)?).ok()?;
        self.definitions.get(index)?.get()
    }

    /// Looks for this very mark, last bits and all: [`Self::find`] in a hurry.
    #[inline]
    pub(super) fn glance<const WORDS: usize>(&self, mark: u64) -> Look<'_, WORDS> {
        let Some(spot) = self.directory.spot(mark) else {
            return Look::Busy;
        };
        match spot.page.glance(mark) {
            Look::Found(_) if !self.directory.is_still(&spot) => Look::Busy,
            look => look,
        }
    }

    /// Looks for a key. None if somebody is writing where it would have to look.
    #[inline]
    pub(super) fn find(&self, mark: u64) -> Option<Seat<'_>> {
        let spot = self.directory.spot(mark)?;
        match spot.page.find(mark, self.shape) {
            Search::Found(found) => Some(Seat::Slot(spot, found)),
            Search::Busy => None,
            Search::Missing => self.find_absent(mark),
        }
    }

    /// Looks for a key, and is sure if it is absent.
    fn find_absent(&self, mark: u64) -> Option<Seat<'_>> {
        let spot = self.directory.spot(mark)?;
        let version = spot.page.version()?;
        match spot.page.find(mark, self.shape) {
            Search::Found(found) => Some(Seat::Slot(spot, found)),
            Search::Missing if self.is_absent(&spot, version) => Some(Seat::Absent(spot, version)),
            Search::Missing | Search::Busy => None,
        }
    }

    /// Whether a key that was absent by this version of its page still is.
    pub(super) fn is_absent(&self, spot: &Spot<'_>, version: u64) -> bool {
        spot.page.is_still(version) && self.directory.is_still(spot)
    }

    /// Takes a slot's state out, to be put back or dropped by whoever holds the group.
    pub(super) fn take(&self, copied: &Copied) -> Option<Kept> {
        if let Some(number) = Self::number_aside(copied) {
            return self.side.take(number);
        }
        let definition = self.definition(copied.mark)?.clone();
        Some(Kept::unpack(definition, self.state_words(&copied.words)))
    }

    /// Does something with the state of a slot that is kept aside. For those who have locked its group.
    /// `None` if it is not.
    pub(super) fn aside<R>(
        &self,
        copied: &Copied,
        act: impl FnOnce(&mut Kept) -> Option<R>,
    ) -> Option<R> {
        self.side.with(Self::number_aside(copied)?, act)?
    }

    /// Puts a state into a slot, or aside if it does not fit there.
    pub(super) fn put(&self, locked: &LockedGroup<'_>, copied: &Copied, kept: Kept) {
        let (mark, words) = self.stow(copied.mark, kept);
        locked.write(copied.slot, mark, words);
    }

    /// What to write into a slot for this state, which is put aside if it does not fit there.
    pub(super) fn stow(&self, mark: u64, kept: Kept) -> (u64, Words) {
        let key = mark | DEFINITION_BITS;
        let mut words = Words::default();
        let fits = kept.pack(self.state_words_mut(&mut words));
        match self.definition_bits(&kept.definition) {
            Some(bits) if fits => (key & !DEFINITION_BITS | bits, words),
            _ => (key, [self.side.put(mark, kept).saturating_add(1), 0, 0]),
        }
    }

    /// Whether a slot's key can be forgotten.
    pub(super) fn is_idle(&self, copied: &Copied, now: Timestamp) -> bool {
        if let Some(number) = Self::number_aside(copied) {
            return self.side.with(number, |kept| kept.is_idle(now)).unwrap_or(true);
        }
        self.definition(copied.mark).is_some_and(|definition| {
            let engine = &definition.engine;
            engine.is_idle(&engine.unpack(self.state_words(&copied.words)), now)
        })
    }

    /// Whether a key was given a slot and not charged yet.
    pub(super) fn is_newborn(copied: &Copied) -> bool {
        copied.mark & DEFINITION_BITS == EMPTY_HANDED && copied.words.first() == Some(&0)
    }

    /// The number under which a slot's state is kept aside, if it is.
    fn number_aside(copied: &Copied) -> Option<u64> {
        let is_empty_handed = copied.mark & DEFINITION_BITS == EMPTY_HANDED;
        copied.words.first().filter(|_| is_empty_handed)?.checked_sub(1)
    }

    /// Makes a newborn key one that is idle: whoever wanted it has had time enough.
    pub(super) fn wean(locked: &LockedGroup<'_>, copied: &Copied) {
        locked.write(copied.slot, copied.mark & !DEFINITION_BITS | 1, Words::default());
    }

    /// Empties a slot.
    pub(super) fn clear(&self, locked: &LockedGroup<'_>, copied: &Copied) {
        if let Some(number) = Self::number_aside(copied) {
            self.side.take(number);
        }
        locked.write(copied.slot, 0, Words::default());
    }

    /// The words of a state that are in a slot.
    pub(super) fn state_words<'w>(&self, words: &'w Words) -> &'w [u64] {
        words.get(..self.shape.slot - 1).unwrap_or_default()
    }

    pub(super) fn state_words_mut<'w>(&self, words: &'w mut Words) -> &'w mut [u64] {
        words.get_mut(..self.shape.slot - 1).unwrap_or_default()
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Table").field("number", &self.number).finish_non_exhaustive()
    }
}
