//! Where keys are counted when there is no room for more of them: together with others, in cells.
//!
//! A cell counts what all its keys take, so each of them gets less than its due, never more. A key
//! stays in its cell until that is as good as new, or until there is room: then it may have a slot of its
//! own, with all that is counted in the cell.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use super::kept::Kept;
use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::Timestamp;
use crate::policy::Definition;

/// Cells are made so many at a time, and go together.
const CHUNK: u16 = 32;

/// Which cell: the number of the table, and some bits of the mark.
pub(super) type Cell = (u32, u16);

#[derive(Debug, Default)]
pub(super) struct Overflow {
    /// How many cells there are or will be in a moment.
    used: AtomicUsize,
    cells: Mutex<Cells>,
}

#[derive(Debug, Default)]
pub(super) struct Cells {
    /// By table and number. Those who need the cells of a policy need all of them before long, and maps have
    /// room for twice as much.
    chunks: HashMap<(u32, u16), Chunk>,
    /// All of them, in the order in which they are looked at to see which cells are still needed.
    round: VecDeque<(u32, u16)>,
    /// The place in the first of those that is looked at next.
    hand: usize,
}

/// Some cells that lie next to each other.
#[derive(Debug)]
struct Chunk {
    places: Box<[Contents; CHUNK as usize]>,
    /// How many there are.
    used: u16,
}

/// What is in the place of a cell.
#[derive(Debug)]
enum Contents {
    /// What fits into two words, as nearly everything does.
    Packed(Arc<Definition>, [u64; 2]),
    /// All else: longer logs, and blocks. `None` if there is no cell.
    Whole(Option<Box<Kept>>),
}

// There are as many as 65 536 of them for each policy.
const _: () = assert!(size_of::<Contents>() == 24);

impl Contents {
    const EMPTY: Self = Self::Whole(None);

    fn of(kept: Kept) -> Self {
        let mut words = [0; 2];
        match kept.pack(&mut words) {
            true => Self::Packed(kept.definition, words),
            false => Self::Whole(Some(Box::new(kept))),
        }
    }

    const fn is_empty(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    /// Takes out what is counted here; none if there is no cell.
    fn take(&mut self) -> Option<Kept> {
        match mem::replace(self, Self::EMPTY) {
            Self::Packed(definition, words) => Some(Kept::unpack(definition, &words)),
            Self::Whole(kept) => kept.map(|kept| *kept),
        }
    }

    /// Does something with what is counted here.
    fn with<R>(&self, act: impl FnOnce(&Kept) -> R) -> Option<R> {
        match self {
            Self::Packed(definition, words) => Some(act(&Kept::unpack(definition.clone(), words))),
            Self::Whole(kept) => kept.as_deref().map(act),
        }
    }

    fn is_busy(&self, now: Timestamp) -> bool {
        match self {
            Self::Packed(definition, words) => {
                let engine = &definition.engine;
                !engine.is_idle(&engine.unpack(words), now)
            }
            Self::Whole(kept) => kept.as_deref().is_some_and(|kept| !kept.is_idle(now)),
        }
    }
}

impl Chunk {
    fn new() -> Self {
        Self { places: Box::new([const { Contents::EMPTY }; CHUNK as usize]), used: 0 }
    }
}

impl Overflow {
    /// The cell of a key.
    pub(super) fn cell(table: u32, mark: u64) -> Cell {
        // Not the first bits, nor the last: pages and groups go by those.
        #[expect(clippy::cast_possible_truncation, reason = "as many cells as there are numbers")]
        (table, (mark >> 38) as u16)
    }

    /// Whether nobody is counted here.
    pub(super) fn is_empty(&self) -> bool {
        self.used.load(Ordering::SeqCst) == 0
    }

    pub(super) fn len(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Cells> {
        self.cells.lock()
    }

    /// Whether a cell counts something.
    pub(super) fn is_busy(&self, cell: Cell, now: Timestamp) -> bool {
        if self.is_empty() {
            return false;
        }
        let mut cells = self.lock();
        self.tidy(&mut cells, now);
        cells.is_busy(cell, now)
    }

    /// Makes a cell, unless there is one. It is there as long as the cells are locked: whoever looks at
    /// them next may drop one that is not charged.
    pub(super) fn open(&self, cells: &mut Cells, cell: Cell, definition: &Arc<Definition>) {
        let Cells { chunks, round, .. } = cells;
        let (number, place) = spot(cell);
        let chunk = chunks.entry(number).or_insert_with(|| {
            round.push_back(number);
            Chunk::new()
        });
        if let Some(empty) = chunk.places.get_mut(place).filter(|contents| contents.is_empty()) {
            chunk.used += 1;
            self.used.fetch_add(1, Ordering::SeqCst);
            *empty = Contents::of(Kept::fresh(definition.clone()));
        }
    }

    /// Looks at all cells of a table.
    pub(super) fn visit(&self, table: u32, mut found: impl FnMut(u16, &Kept)) {
        if self.is_empty() {
            return;
        }
        let cells = self.lock();
        let chunks = cells.chunks.iter().filter(|((owner, _), _)| *owner == table);
        for (&(_, number), chunk) in chunks {
            for (place, contents) in (0..CHUNK).zip(chunk.places.iter()) {
                contents.with(|kept| found(number * CHUNK + place, kept));
            }
        }
    }

    /// What is counted in a cell, once more, for a key that leaves it; none if it counts nothing. In short: a log of
    /// everybody's there would take as much again for each that leaves.
    pub(super) fn copy(&self, cell: Cell, now: Timestamp) -> Option<Kept> {
        if self.is_empty() {
            return None;
        }
        self.lock().contents(cell).filter(|contents| contents.is_busy(now))?.with(Kept::coarse)
    }

    /// Counts what somebody else has used in a cell, too.
    pub(super) fn add(&self, cell: Cell, other: &Kept, now: Timestamp) {
        let mut cells = self.lock();
        self.open(&mut cells, cell, &other.definition);
        let Some(mut kept) = cells.take(cell) else { return };
        kept.join(other, now);
        cells.put(cell, kept);
    }

    /// Drops the next cell in the round if it is as good as new, and a chunk with the last of them.
    fn tidy(&self, cells: &mut Cells, now: Timestamp) {
        let Some(&number) = cells.round.front() else {
            return;
        };
        let Some(chunk) = cells.chunks.get_mut(&number) else {
            return; // There is one for each in the round.
        };
        let mut ahead = chunk.places.iter_mut().enumerate().skip(cells.hand);
        let next = ahead.find(|(_, contents)| !contents.is_empty());
        cells.hand = next.as_ref().map_or(CHUNK.into(), |(place, _)| place + 1);
        if let Some((_, contents)) = next.filter(|(_, contents)| !contents.is_busy(now)) {
            *contents = Contents::EMPTY;
            chunk.used -= 1;
            if self.used.fetch_sub(1, Ordering::SeqCst) == 1 {
                *cells = Cells::default();
                return;
            }
        }
        if chunk.used == 0 {
            cells.chunks.remove(&number);
            cells.round.pop_front();
            cells.hand = 0;
        } else if cells.hand == usize::from(CHUNK) {
            cells.round.rotate_left(1);
            cells.hand = 0;
        }
    }
}

impl Cells {
    fn contents(&self, cell: Cell) -> Option<&Contents> {
        let (chunk, place) = spot(cell);
        self.chunks.get(&chunk)?.places.get(place)
    }

    fn contents_mut(&mut self, cell: Cell) -> Option<&mut Contents> {
        let (chunk, place) = spot(cell);
        self.chunks.get_mut(&chunk)?.places.get_mut(place)
    }

    /// Whether a cell counts something.
    pub(super) fn is_busy(&self, cell: Cell, now: Timestamp) -> bool {
        self.contents(cell).is_some_and(|contents| contents.is_busy(now))
    }

    /// Takes out what an open cell counts, to be put back before the cells are let go.
    pub(super) fn take(&mut self, cell: Cell) -> Option<Kept> {
        self.contents_mut(cell)?.take()
    }

    /// Puts back what was taken out of a cell.
    pub(super) fn put(&mut self, cell: Cell, kept: Kept) {
        if let Some(contents) = self.contents_mut(cell) {
            *contents = Contents::of(kept);
        }
    }
}

/// In which chunk a cell is, and where in it.
const fn spot((table, cell): Cell) -> ((u32, u16), usize) {
    ((table, cell / CHUNK), (cell % CHUNK) as usize)
}
