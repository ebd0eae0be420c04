//! A small hash table of fixed size: a row of groups that are searched one after another.

use std::fmt;

use super::group::{Copied, Glance, Group, LockedGroup, Shape};
use super::sync::{
    AtomicU32, AtomicU64, AtomicUsize, Backoff, Mutex, Ordering, fence, or_in_models,
};

/// Words in a cache line.
pub(super) const LINE: usize = 8;

/// The sizes pages come in, in cache lines; see [`suits`].
#[cfg(not(any(dashpot_loom, dashpot_shuttle)))]
pub(super) const SIZES: [usize; 12] = [2, 4, 6, 8, 12, 16, 22, 32, 46, 64, 90, 128];
#[cfg(any(dashpot_loom, dashpot_shuttle))]
pub(super) const SIZES: [usize; 2] = [2, 4];

/// Whether keys whose marks begin like this have pages of this size.
///
/// Sizes double, so that a page of the last size splits into two of the same, and a large table has
/// no others, nor any that nobody can use. Its pages fill up together, though, and are half empty
/// together once they have split. So one half of the marks has sizes in between those of the other:
/// when pages are half empty here, they are not there. Else a bucket would take 29 to 43 bytes, by
/// how many there are; so it takes 34 to 38.
pub(super) fn suits(lines: usize, mark: u64) -> bool {
    lines <= 4 || lines.is_power_of_two() == (mark >> 63 == 0)
}

/// The most groups a search looks at. In pages that are not too full, nearly all keys are in the
/// first.
const SEARCHED: usize = or_in_models(32, 4);

/// Keys are told apart by the mark without these bits, which say under which definition the state
/// is kept.
pub(super) const DEFINITION_BITS: u64 = DEFINITIONS as u64;
pub(super) const DEFINITIONS: usize = 63;

/// A page, or what one was: pages are used again, but never freed while the store lives, so that
/// nobody who still looks at an old one reads anything but old pages. Who has found something in a
/// page must see that the table's directory still leads to it.
pub(super) struct Page {
    /// Its own, in the pool.
    number: u32,
    pairs: Box<[Pair]>,
    /// Index in [`SIZES`], and the size there.
    size: usize,
    lines: usize,
    /// Odd while keys are added or moved; changes whenever they are.
    version: AtomicU64,
    /// Held by whoever adds, drops or moves keys.
    pub(super) structure: Mutex<()>,
    /// The number of the table it belongs to, or `NOBODY`.
    owner: AtomicU32,
    /// How many leading bits its keys have in common, and which.
    depth: AtomicU32,
    prefix: AtomicU64,
    /// Occupied slots.
    keys: AtomicUsize,
    /// The group a sweep looks at next.
    hand: AtomicUsize,
}

/// Two cache lines: the longest group, and every size is a whole number of them. A group then lies in its lines
/// and no others.
#[repr(align(64))]
struct Pair([AtomicU64; 2 * LINE]);

/// The owner of a page that waits to be used again.
const NOBODY: u32 = u32::MAX;

impl Page {
    pub(super) fn new(size: usize) -> Self {
        let lines = SIZES.get(size).copied().unwrap_or(2);
        let empty = |_| Pair(std::array::from_fn(|_| AtomicU64::new(0)));
        Self {
            number: NOBODY,
            pairs: (0..lines / 2).map(empty).collect(),
            size,
            lines,
            version: AtomicU64::new(0),
            structure: Mutex::new(()),
            owner: AtomicU32::new(NOBODY),
            depth: AtomicU32::new(0),
            prefix: AtomicU64::new(0),
            keys: AtomicUsize::new(0),
            hand: AtomicUsize::new(0),
        }
    }

    /// Makes it an empty page of another table, to be filled until [`Self::changed`]. Nobody else may
    /// be using it.
    pub(super) fn renew(&self, shape: Shape, owner: u32, (prefix, depth): (u64, u32)) {
        self.owner.store(owner, Ordering::Relaxed);
        self.depth.store(depth, Ordering::Relaxed);
        self.prefix.store(prefix, Ordering::Relaxed);
        self.keys.store(0, Ordering::Relaxed);
        self.hand.store(0, Ordering::Relaxed);
        for index in 0..self.groups(shape) {
            if let Some(group) = self.group(index, shape) {
                LockedGroup::renew(group);
            }
        }
        // Odd until it is filled, and a directory about to lead to it.
        let version = self.version.load(Ordering::Relaxed) | 1;
        self.version.store(version, Ordering::Release);
    }

    pub(super) fn set_number(&mut self, number: u32) {
        self.number = number;
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.pairs)
    }

    /// The number of the table it belongs to, if it belongs to one.
    pub(super) fn owner(&self) -> Option<u32> {
        let owner = self.owner.load(Ordering::Relaxed);
        (owner != NOBODY).then_some(owner)
    }

    /// It belongs to nobody.
    pub(super) fn disown(&self) {
        self.owner.store(NOBODY, Ordering::Relaxed);
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Relaxed)
    }

    /// A mark whose first bits all its keys have.
    pub(super) fn prefix(&self) -> u64 {
        self.prefix.load(Ordering::Relaxed)
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    /// Notes how many keys it has; for those who hold it.
    pub(super) fn set_keys(&self, keys: usize) {
        self.keys.store(keys, Ordering::Relaxed);
    }

    pub(super) fn hand(&self) -> usize {
        self.hand.load(Ordering::Relaxed)
    }

    /// Notes where the next sweep goes on; for those who hold it.
    pub(super) fn set_hand(&self, group: usize) {
        self.hand.store(group, Ordering::Relaxed);
    }

    #[inline]
    pub(super) fn groups(&self, shape: Shape) -> usize {
        // A division would take longer than all the rest of a search.
        if shape.group == LINE { self.lines } else { self.lines / 2 }
    }

    #[inline]
    pub(super) fn group(&self, index: usize, shape: Shape) -> Option<Group<'_>> {
        let words = if shape.group == LINE {
            let (first, second) = self.pairs.get(index / 2)?.0.split_at(LINE);
            if index.is_multiple_of(2) { first } else { second }
        } else {
            &self.pairs.get(index)?.0
        };
        Group::new(words, shape)
    }

    /// The group in which a search begins: the middle of the mark, scaled to the number of groups.
    /// (Its first bits lead to the page.)
    #[inline]
    pub(super) fn home(mark: u64, groups: usize) -> usize {
        let spread = (mark >> 6) & u64::from(u32::MAX);
        usize::try_from((spread * groups as u64) >> 32).unwrap_or(0)
    }

    /// The groups in which a key may be, in the order of the search.
    pub(super) fn search(&self, mark: u64, shape: Shape) -> impl Iterator<Item = Group<'_>> {
        let groups = self.groups(shape);
        let home = Self::home(mark, groups);
        (0..SEARCHED.min(groups)).filter_map(move |step| {
            let index = home + step;
            self.group(if index < groups { index } else { index - groups }, shape)
        })
    }

    /// Looks for this very mark, last bits and all: [`Self::find`] in a hurry.
    #[inline]
    pub(super) fn glance<const WORDS: usize>(&self, mark: u64) -> Look<'_, WORDS> {
        let shape = const { Shape::of(WORDS) };
        let groups = self.groups(shape);
        let mut index = Self::home(mark, groups);
        for _ in 0..SEARCHED {
            let Some(group) = self.group(index, shape) else {
                break;
            };
            let Some(sequence) = group.sequence() else {
                return Look::Busy;
            };
            if let Some(glance) = group.glance(sequence, mark) {
                return Look::Found(glance);
            }
            if !Group::is_spilled(sequence) {
                break;
            }
            index = if index + 1 < groups { index + 1 } else { 0 };
        }
        Look::Missing
    }

    /// The version to look under, if no key is being added or moved.
    pub(super) fn version(&self) -> Option<u64> {
        let version = self.version.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether no key was added or moved since the version was read.
    pub(super) fn is_still(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        self.version.load(Ordering::Relaxed) == version
    }

    /// Tells those who look that a key is being added or moved, until [`Self::changed`].
    pub(super) fn changing(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
    }

    pub(super) fn changed(&self) {
        let version = self.version.load(Ordering::Relaxed);
        self.version.store(version.wrapping_add(1), Ordering::Release);
    }

    /// Looks for a key among groups nobody may be writing.
    #[inline]
    pub(super) fn find(&self, mark: u64, shape: Shape) -> Search<'_> {
        for group in self.search(mark, shape) {
            let Some(sequence) = group.sequence() else {
                return Search::Busy;
            };
            if let Some(copied) = group.find(mark, DEFINITION_BITS) {
                return Search::Found(Found { group, sequence, copied });
            }
            if !Group::is_spilled(sequence) {
                break;
            }
        }
        Search::Missing
    }
}

impl fmt::Debug for Page {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Page").field("size", &self.size).finish_non_exhaustive()
    }
}

/// What a quick search came to.
pub(super) enum Look<'p, const WORDS: usize> {
    Found(Glance<'p, WORDS>),
    Missing,
    Busy,
}

impl<'p, const WORDS: usize> Look<'p, WORDS> {
    #[inline]
    pub(super) fn found(self) -> Option<Glance<'p, WORDS>> {
        match self {
            Self::Found(glance) => Some(glance),
            Self::Missing | Self::Busy => None,
        }
    }
}

/// What a search came to. Nothing of it is certain until it is checked.
pub(super) enum Search<'p> {
    Found(Found<'p>),
    Missing,
    /// Somebody is writing where it would have to look.
    Busy,
}

/// A slot with the key, and its copy, good while the group's sequence is still the same.
#[derive(Clone, Copy)]
pub(super) struct Found<'p> {
    pub(super) group: Group<'p>,
    pub(super) sequence: u64,
    pub(super) copied: Copied,
}

/// Locks a group, however long it takes. Only for those who hold its page's structure: the group of
/// a page that is retired is never let go.
pub(super) fn lock(group: Group<'_>) -> LockedGroup<'_> {
    let mut backoff = Backoff::default();
    loop {
        if let Some(locked) = group.sequence().and_then(|sequence| group.try_lock(sequence)) {
            return locked;
        }
        backoff.wait();
    }
}
