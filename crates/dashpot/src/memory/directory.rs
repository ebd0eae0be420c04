//! Which page a key is in: the first bits of its mark lead to it.
//!
//! Extendible hashing. The directory has an entry for each value of the first `depth` bits. A page
//! whose keys have fewer bits in common has several entries. When a page is split and has but one,
//! the directory doubles; the smaller ones before it stay, because somebody may be looking, and are
//! together no larger than the last.

use std::sync::OnceLock;

use super::page::Page;
use super::pool::Pool;
use super::sync::{AtomicU32, Ordering};

/// More than there are page numbers.
const DEPTHS: usize = 32;

#[derive(Debug)]
pub(super) struct Directory {
    depth: AtomicU32,
    levels: [OnceLock<Box<[AtomicU32]>>; DEPTHS],
}

/// Where the directory led, good while it still does.
#[derive(Clone, Copy)]
pub(super) struct Spot<'t> {
    depth: u32,
    entry: &'t AtomicU32,
    pub(super) number: u32,
    pub(super) page: &'t Page,
}

impl Directory {
    /// Leads everywhere to this page.
    pub(super) fn new(page: u32) -> Self {
        let levels: [OnceLock<_>; DEPTHS] = std::array::from_fn(|_| OnceLock::new());
        if let Some(level) = levels.first() {
            let _ = level.set([AtomicU32::new(page)].into());
        }
        Self { depth: AtomicU32::new(0), levels }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth.load(Ordering::Acquire)
    }

    #[inline]
    pub(super) fn spot<'t>(&'t self, mark: u64, pool: &'t Pool) -> Option<Spot<'t>> {
        let depth = self.depth();
        let entry = self.levels.get(depth as usize)?.get()?.get(prefix(mark, depth))?;
        let number = entry.load(Ordering::Acquire);
        Some(Spot { depth, entry, number, page: pool.page(number)? })
    }

    /// Whether it still leads where it led. To be asked after something was read from the page, or
    /// something in it was locked.
    #[inline]
    pub(super) fn is_still(&self, spot: &Spot<'_>) -> bool {
        spot.entry.load(Ordering::Relaxed) == spot.number
            && self.depth.load(Ordering::Relaxed) == spot.depth
    }

    /// Leads to this page from all marks that have their first `depth` bits in common with this one.
    /// Callers take turns. False if there is no room for so many bits.
    pub(super) fn lead(&self, mark: u64, depth: u32, page: u32) -> bool {
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
            entry.store(page, Ordering::Release);
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
            let twice = |entry: &AtomicU32| {
                let page = entry.load(Ordering::Relaxed);
                [AtomicU32::new(page), AtomicU32::new(page)]
            };
            old.iter().flat_map(twice).collect()
        };
        new.get_or_init(twice);
        self.depth.store(depth + 1, Ordering::Release);
        true
    }
}

/// The first `depth` bits.
#[inline]
pub(super) fn prefix(mark: u64, depth: u32) -> usize {
    // Two shifts, because one by all 64 bits would be none.
    usize::try_from((mark >> 1) >> (63 - depth.min(63))).unwrap_or(0)
}
