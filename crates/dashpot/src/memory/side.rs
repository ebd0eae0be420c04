//! What does not fit into slots: logs, blocks, and numbers that are out of the ordinary.

use std::sync::OnceLock;

use super::kept::Kept;
use super::sync::{Mutex, or_in_models};

/// So many that two threads seldom want the same lock.
const SHARDS: usize = or_in_models(16, 1);

/// Places are made so many at a time: however many there are, nothing is moved to make more.
const CHUNK: usize = 64;

/// States by number. Each belongs to one slot, whose group is locked by whoever takes or puts it, so
/// nobody ever finds one missing.
#[derive(Debug, Default)]
pub(super) struct Side(OnceLock<Box<[Mutex<Shard>]>>);

#[derive(Debug, Default)]
struct Shard {
    chunks: Vec<Box<[Option<Kept>]>>,
    /// Places with nothing in them.
    free: Vec<usize>,
}

impl Side {
    fn shards(&self) -> &[Mutex<Shard>] {
        self.0.get_or_init(|| (0..SHARDS).map(|_| Mutex::default()).collect())
    }

    /// Keeps a state, and says under which number. Those who know the same mark meet in one shard.
    pub(super) fn put(&self, mark: u64, kept: Kept) -> u64 {
        let shard = (mark >> 32) as usize % SHARDS;
        let place = self.shards().get(shard).map_or(0, |shard| shard.lock().put(kept));
        (place * SHARDS + shard) as u64
    }

    pub(super) fn take(&self, number: u64) -> Option<Kept> {
        let (shard, place) = self.find(number)?;
        let mut shard = shard.lock();
        let kept = shard.place(place)?.take()?;
        shard.free.push(place);
        Some(kept)
    }

    /// Does something with a state where it is.
    pub(super) fn with<R>(&self, number: u64, act: impl FnOnce(&mut Kept) -> R) -> Option<R> {
        let (shard, place) = self.find(number)?;
        shard.lock().place(place)?.as_mut().map(act)
    }

    fn find(&self, number: u64) -> Option<(&Mutex<Shard>, usize)> {
        let number = usize::try_from(number).ok()?;
        Some((self.shards().get(number % SHARDS)?, number / SHARDS))
    }
}

impl Shard {
    fn place(&mut self, place: usize) -> Option<&mut Option<Kept>> {
        self.chunks.get_mut(place / CHUNK)?.get_mut(place % CHUNK)
    }

    fn put(&mut self, kept: Kept) -> usize {
        if self.free.is_empty() {
            let first = self.chunks.len() * CHUNK;
            self.chunks.push((0..CHUNK).map(|_| None).collect());
            // The last is taken first.
            self.free.extend((first..first + CHUNK).rev());
        }
        let place = self.free.pop().unwrap_or(0);
        if let Some(empty) = self.place(place) {
            *empty = Some(kept);
        }
        place
    }
}
