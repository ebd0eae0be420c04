//! Which page a key is in: the first bits of its mark lead to it.
//!
//! Extendible hashing. The directory has an entry for each value of the first `depth` bits. A page
//! whose keys have fewer bits in common has several entries. When a page is split and has but one,
//! the directory doubles; the smaller ones before it stay, because somebody may be looking, and are
//! together no larger than the last.
//!
//! An entry is the address of a page and not its number: every check goes this way, and looking the
//! number up would take it three more loads, each waiting for the one before: 33 ns instead of 28 for
//! one key, 77 instead of 64 for three limits. This file has the only `unsafe` there is, in
//! [`Directory::page`].

use std::ptr;
use std::sync::{Arc, OnceLock};

use super::page::Page;
use super::pool::Pool;
use super::sync::{AtomicPtr, AtomicU32, Ordering};

/// More than there are page numbers.
const DEPTHS: usize = 32;

pub(super) struct Directory {
    depth: AtomicU32,
    /// Invariant: all entries are addresses of pages of `pool`.
    levels: [OnceLock<Box<[AtomicPtr<Page>]>>; DEPTHS],
    pool: Arc<Pool>,
}

/// Where the directory led, good while it still does.
#[derive(Clone, Copy)]
pub(super) struct Spot<'t> {
    depth: u32,
    entry: &'t AtomicPtr<Page>,
    pub(super) page: &'t Page,
}

impl Directory {
    /// Leads everywhere to this page of the pool. None if it has no such page.
    pub(super) fn new(number: u32, pool: Arc<Pool>) -> Option<Self> {
        let levels: [OnceLock<_>; DEPTHS] = std::array::from_fn(|_| OnceLock::new());
        levels.first()?.set([AtomicPtr::new(address(pool.page(number)?))].into()).ok()?;
        Some(Self { depth: AtomicU32::new(0), levels, pool })
    }

    /// Whose pages it leads to.
    pub(super) fn pool(&self) -> &Pool {
        &self.pool
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn spot(&self, mark: u64) -> Option<Spot<'_>> {
        let depth = self.depth();
        let entry = self.levels.get(depth as usize)?.get()?.get(prefix(mark, depth))?;
        Some(Spot { depth, entry, page: self.page(entry) })
    }

    /// The page an entry of this directory leads to.
    #[inline]
    #[expect(unsafe_code, reason = "checks take a fifth longer without; see above")]
    fn page(&self, entry: &AtomicPtr<Page>) -> &Page {
        let page = entry.load(Ordering::Acquire);
        // SAFETY: Entries are private, and nothing is written to them but addresses of `&Page`s that
        // `self.pool` gave out. It never moves or frees a page, nor gives one out to be changed other
        // than through its atomics, while it lives; and it lives at least as long as `self`.
        // The page was complete before its address was written, with `Release`, or in `OnceLock`.
        unsafe { &*page }
    }

    /// Whether it still leads where it led. To be asked after the sequence of a group of the page was
    /// read, or the group locked: if the page becomes another's after that, the sequence tells.
    #[inline]
    pub(super) fn is_still(&self, spot: &Spot<'_>) -> bool {
        ptr::eq(spot.entry.load(Ordering::Relaxed), spot.page)
            && self.depth.load(Ordering::Relaxed) == spot.depth
    }

    /// Leads to this page from all marks that have their first `depth` bits in common with this one.
    /// Callers take turns. False if there is no room for so many bits.
    pub(super) fn lead(&self, mark: u64, depth: u32, number: u32) -> bool {
        let Some(page) = self.pool.page(number) else {
            return false;
        };
        while self.depth() < depth {
            if !self.double() {
                return false;
            }
        }
        let spread = self.depth() - depth;
        let first = prefix(mark, depth) << spread;
        let Some(level) = self.levels.get(self.depth() as usize).and_then(OnceLock::get) else {
            return false;
        };
        for entry in level.iter().skip(first).take(1 << spread) {
            entry.store(address(page), Ordering::Release);
        }
        true
    }

    fn double(&self) -> bool {
        let depth = self.depth();
        let (Some(Some(old)), Some(new)) = (
            self.levels.get(depth as usize).map(OnceLock::get),
            self.levels.get(depth as usize + 1),
        ) else {
            return false;
        };
        let twice = || {
            let twice = |entry: &AtomicPtr<Page>| {
                let page = entry.load(Ordering::Relaxed);
                [AtomicPtr::new(page), AtomicPtr::new(page)]
            };
            old.iter().flat_map(twice).collect()
        };
        new.get_or_init(twice);
        self.depth.store(depth + 1, Ordering::Release);
        true
    }
}

/// As an entry. Nobody writes through it.
fn address(page: &Page) -> *mut Page {
    ptr::from_ref(page).cast_mut()
}

/// The first `depth` bits.
#[inline]
pub(super) fn prefix(mark: u64, depth: u32) -> usize {
    // Two shifts, because one by all 64 bits would be none.
    usize::try_from((mark >> 1) >> (63 - depth.min(63))).unwrap_or(0)
}
