//! All pages of a store, by number, and how many keys they may hold.

use std::fmt;
use std::sync::OnceLock;

use super::group::{Copied, Shape};
use super::page::{LINE, Page, SIZES};
use super::sync::{AtomicU32, AtomicU64, AtomicUsize, Mutex, MutexGuard, Once, Ordering};

/// Pages in the first chunk; each chunk has twice as many as the one before.
const FIRST_CHUNK: u32 = 8;
/// So many pages that a million of a million keys would not need them.
const CHUNKS: usize = 28;

/// The pages, and the budget of keys. A page that is given back is used again, by whichever table.
#[derive(Default)]
pub(super) struct Pool {
    chunks: [OnceLock<Box<[Once<Page>]>>; CHUNKS],
    made: AtomicU32,
    /// By size, and by shape of group: what is a lock word once must be one for ever, because
    /// somebody may still try to lock it.
    free: Mutex<[[Vec<u32>; 2]; SIZES.len()]>,
    /// Lists of keys that are moved. They are kept: lists that come and go between pages would leave
    /// gaps that nobody can use, a twentieth of all memory.
    lists: Mutex<Vec<Vec<Copied>>>,
    /// The page a sweep looks at next.
    hand: AtomicU32,
    keys: AtomicUsize,
    max_keys: usize,
    pub(super) counters: Counters,
}

/// What happened so far.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) reclaimed: AtomicU64,
    pub(super) overflowed: AtomicU64,
    pub(super) moved: AtomicU64,
    pub(super) bytes: AtomicU64,
}

impl Pool {
    pub(super) fn new(max_keys: usize) -> Self {
        Self { max_keys, ..Self::default() }
    }

    /// The page of this number, if there is one.
    #[inline]
    pub(super) fn page(&self, number: u32) -> Option<&Page> {
        let (chunk, index) = place(number);
        self.chunks.get(chunk)?.get()?.get(index)?.get()
    }

    /// The page a sweep looks at.
    pub(super) fn under_hand(&self) -> Option<&Page> {
        self.page(self.hand.load(Ordering::Relaxed))
    }

    /// Moves on from a page to the next one.
    pub(super) fn move_hand(&self, from: u32) {
        let next =
            if from.saturating_add(1) < self.made.load(Ordering::Relaxed) { from + 1 } else { 0 };
        // If another has moved it meanwhile, so much the better.
        let _ = self.hand.compare_exchange(from, next, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// An empty page for the table of this number, held: it is not to be swept until a directory
    /// leads to it. None if there are no numbers left.
    pub(super) fn take(
        &self,
        size: usize,
        shape: Shape,
        owner: u32,
        prefix: (u64, u32),
    ) -> Option<(u32, MutexGuard<'_, ()>)> {
        let free = self.free.lock().get_mut(size).and_then(|free| list(free, shape).pop());
        let number = match free {
            Some(number) => number,
            None => self.make(size)?,
        };
        let page = self.page(number)?;
        // Whoever else holds it lets it go as soon as he sees that it is nobody's.
        let structure = page.structure.lock();
        page.renew(shape, owner, prefix);
        Some((number, structure))
    }

    /// Whether a page of this size waits to be used again.
    pub(super) fn has_free(&self, size: usize, shape: Shape) -> bool {
        let mut free = self.free.lock();
        free.get_mut(size).is_some_and(|free| !list(free, shape).is_empty())
    }

    /// Takes back a page that no directory leads to any more and whose groups are all retired.
    pub(super) fn give_back(&self, page: &Page, shape: Shape) {
        page.disown();
        if let Some(free) = self.free.lock().get_mut(page.size()) {
            list(free, shape).push(page.number());
        }
    }

    /// Does something with an empty list.
    pub(super) fn with_list<R>(&self, act: impl FnOnce(&mut Vec<Copied>) -> R) -> R {
        let list = self.lists.lock().pop();
        let mut list = list.unwrap_or_default();
        let done = act(&mut list);
        list.clear();
        self.lists.lock().push(list);
        done
    }

    fn make(&self, size: usize) -> Option<u32> {
        let mut page = Page::new(size);
        self.counters.bytes.fetch_add(page.bytes() as u64, Ordering::Relaxed);
        // Last of all: from now on, others come by and find nothing there yet.
        let number = self.made.fetch_add(1, Ordering::AcqRel);
        page.set_number(number);
        let (chunk, index) = place(number);
        let pages = (FIRST_CHUNK as usize) << chunk;
        let empty = || (0..pages).map(|_| Once::new()).collect();
        self.chunks.get(chunk)?.get_or_init(empty).get(index)?.set(page).ok()?;
        Some(number)
    }

    /// Makes room for one more key, if there is any.
    pub(super) fn reserve(&self) -> bool {
        let more = |keys: usize| (keys < self.max_keys).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Makes room for one more key, whether there is any or not.
    pub(super) fn force(&self) {
        self.keys.fetch_add(1, Ordering::Relaxed);
    }

    /// So many keys are gone.
    pub(super) fn release(&self, keys: usize) {
        self.keys.fetch_sub(keys, Ordering::Relaxed);
    }

    pub(super) fn keys(&self) -> usize {
        self.keys.load(Ordering::Relaxed)
    }

    pub(super) fn max_keys(&self) -> usize {
        self.max_keys
    }
}

fn list(free: &mut [Vec<u32>; 2], shape: Shape) -> &mut Vec<u32> {
    let [one_line, two_lines] = free;
    if shape.group == LINE { one_line } else { two_lines }
}

/// The chunk of a page and its place there.
#[inline]
fn place(number: u32) -> (usize, usize) {
    let number = number.saturating_add(FIRST_CHUNK);
    let chunk = number.ilog2() - FIRST_CHUNK.ilog2();
    (chunk as usize, (number - (FIRST_CHUNK << chunk)) as usize)
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("keys", &self.keys()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        assert_eq!(place(0), (0, 0));
        assert_eq!(place(7), (0, 7));
        assert_eq!(place(8), (1, 0));
        assert_eq!(place(23), (1, 15));
        assert_eq!(place(24), (2, 0));
    }
}
