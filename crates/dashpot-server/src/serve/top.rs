//! Who is denied most.

use std::hash::{BuildHasher, RandomState};

use datasketches::frequencies::{ErrorType, FrequentItemsSketch};
use parking_lot::Mutex;
use smallvec::SmallVec;

/// Sketches, each for its part of the keys, so that few wait for each other.
const SHARDS: usize = 8;

/// How many keys a sketch tells apart.
const KEYS: usize = 1024;

/// Who was denied how often: exactly for few keys, about for many, in bounded memory.
#[derive(Debug)]
pub(crate) struct Top {
    shards: Vec<Mutex<FrequentItemsSketch<Vec<u8>>>>,
    seed: RandomState,
}

/// Somebody who was denied.
#[derive(Debug)]
pub(crate) struct Denied {
    /// By which rule; nothing if by a limit made up on the spot.
    pub(crate) rule: String,
    pub(crate) key: Vec<u8>,
    /// How often at most.
    pub(crate) times: u64,
    /// How much less it may be.
    pub(crate) error: u64,
}

impl Top {
    /// Nobody yet.
    pub(crate) fn new() -> Self {
        // It fails only for a size that is no power of two.
        let sketch = |_| FrequentItemsSketch::new(KEYS).ok().map(Mutex::new);
        Self { shards: (0..SHARDS).filter_map(sketch).collect(), seed: RandomState::new() }
    }

    /// Somebody was denied so many times.
    pub(crate) fn count(&self, rule: &str, key: &[u8], times: u64) {
        // Names of rules have no zero in them.
        let mut item: SmallVec<[u8; 128]> = SmallVec::new();
        item.extend_from_slice(rule.as_bytes());
        item.push(0);
        item.extend_from_slice(key);
        let hash = self.seed.hash_one(&*item);
        if let Some(shard) = self.shards.get(usize::try_from(hash % SHARDS as u64).unwrap_or(0)) {
            shard.lock().update_with_count_ref(&*item, times);
        }
    }

    /// Those who were denied most often, at most so many.
    pub(crate) fn list(&self, most: usize) -> Vec<Denied> {
        let mut all: Vec<Denied> = Vec::new();
        for shard in &self.shards {
            let rows = shard.lock().frequent_items(ErrorType::NoFalseNegatives);
            all.extend(rows.iter().map(|row| {
                let mut parts = row.item().splitn(2, |byte| *byte == 0);
                let rule = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
                let key = parts.next().unwrap_or_default().to_vec();
                let (times, least) = (row.upper_bound(), row.lower_bound());
                Denied { rule, key, times, error: times.saturating_sub(least) }
            }));
        }
        all.sort_by(|one, other| other.times.cmp(&one.times).then_with(|| one.key.cmp(&other.key)));
        all.truncate(most);
        all
    }
}
