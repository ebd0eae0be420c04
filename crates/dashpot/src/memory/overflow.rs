//! Where keys are counted when there is no room for more of them: together with others, in cells.
//!
//! A cell counts what all its keys take, so each of them gets less than its due, never more. A key
//! stays in its cell until that is as good as new, or until there is room: then it may have a slot of its
//! own, with all that is counted in the cell.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use super::kept::Kept;
use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering};
use crate::Timestamp;
use crate::policy::Definition;

/// Cells are made so many at a time, and go together.
const CHUNK: u16 = 16;

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
    /// By table and chunk. Those who need the cells of a policy need all of them before long, and maps have
    /// room for twice as much.
    chunks: HashMap<(u32, u16), Chunk>,
    /// All of them, in the order in which they are looked at to see whether they are still needed.
    round: VecDeque<Cell>,
}

/// Some cells that lie next to each other.
#[derive(Debug)]
struct Chunk {
    places: Box<[Option<Kept>]>,
    /// How many there are.
    used: u16,
}

impl Chunk {
    fn new() -> Self {
        Self { places: (0..CHUNK).map(|_| None).collect(), used: 0 }
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

    /// A cell, fresh if there was none. It is there as long as the cells are locked: whoever looks at
    /// them next may drop one that is not charged.
    pub(super) fn open<'c>(
        &self,
        cells: &'c mut Cells,
        cell: Cell,
        definition: &Arc<Definition>,
    ) -> Option<&'c mut Kept> {
        let Cells { chunks, round } = cells;
        let (chunk, place) = spot(cell);
        let Chunk { places, used } = chunks.entry(chunk).or_insert_with(Chunk::new);
        Some(places.get_mut(place)?.get_or_insert_with(|| {
            *used += 1;
            self.used.fetch_add(1, Ordering::SeqCst);
            round.push_back(cell);
            Kept::fresh(definition.clone())
        }))
    }

    /// Looks at all cells of a table.
    pub(super) fn visit(&self, table: u32, mut found: impl FnMut(u16, &Kept)) {
        if self.is_empty() {
            return;
        }
        let cells = self.lock();
        let chunks = cells.chunks.iter().filter(|((owner, _), _)| *owner == table);
        for (&(_, number), chunk) in chunks {
            for (place, kept) in (0..CHUNK).zip(chunk.places.iter()) {
                kept.iter().for_each(|kept| found(number * CHUNK + place, kept));
            }
        }
    }

    /// What is counted in a cell, once more; none if it counts nothing.
    pub(super) fn copy(&self, cell: Cell, now: Timestamp) -> Option<Kept> {
        if self.is_empty() {
            return None;
        }
        self.lock().get_mut(cell).filter(|kept| !kept.is_idle(now)).cloned()
    }

    /// Counts what somebody else has used in a cell, too.
    pub(super) fn add(&self, cell: Cell, other: &Kept, now: Timestamp) {
        let mut cells = self.lock();
        let Some(kept) = self.open(&mut cells, cell, &other.definition) else { return };
        // By the same definition: a unit may take longer under one than under the other.
        kept.slow_down_to(&other.definition, now);
        let other = other.under(&kept.definition, now);
        kept.definition.engine.join(&mut kept.state, &other.state, now);
    }

    /// Drops the next cell in the round if it is as good as new.
    fn tidy(&self, cells: &mut Cells, now: Timestamp) {
        let Some(next) = cells.round.pop_front() else {
            return;
        };
        if cells.is_busy(next, now) {
            return cells.round.push_back(next);
        }
        cells.close(next);
        self.used.fetch_sub(1, Ordering::SeqCst);
        if cells.round.is_empty() {
            *cells = Cells::default();
        }
    }
}

impl Cells {
    /// Whether a cell counts something.
    pub(super) fn is_busy(&self, cell: Cell, now: Timestamp) -> bool {
        let (chunk, place) = spot(cell);
        let kept = self.chunks.get(&chunk).and_then(|chunk| chunk.places.get(place)?.as_ref());
        kept.is_some_and(|kept| !kept.is_idle(now))
    }

    pub(super) fn get_mut(&mut self, cell: Cell) -> Option<&mut Kept> {
        let (chunk, place) = spot(cell);
        self.chunks.get_mut(&chunk)?.places.get_mut(place)?.as_mut()
    }

    /// Drops a cell, and its chunk with the last of them.
    fn close(&mut self, cell: Cell) {
        let (number, place) = spot(cell);
        let Some(chunk) = self.chunks.get_mut(&number) else { return };
        if chunk.places.get_mut(place).and_then(Option::take).is_some() {
            chunk.used -= 1;
        }
        if chunk.used == 0 {
            self.chunks.remove(&number);
        }
    }
}

/// In which chunk a cell is, and where in it.
fn spot((table, cell): Cell) -> ((u32, u16), usize) {
    ((table, cell / CHUNK), usize::from(cell % CHUNK))
}
