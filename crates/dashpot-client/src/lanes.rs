//! All lanes, by what they are known by.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Key, MemoryStore, Timestamp};
use parking_lot::Mutex;

use crate::traffic::Traffic;
use crate::{Lane, Pace};

/// So long nobody has to have called before a lane is forgotten.
const REST: Duration = Duration::from_secs(60);

/// All lanes, at most so many.
#[derive(Debug)]
pub(crate) struct Lanes {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    lanes: HashMap<Box<[u8]>, Arc<Traffic>>,
    /// When idle ones are looked for again, at the earliest.
    sweep_at: Timestamp,
    /// Where those go who find no lane of their own.
    crowd: Option<Arc<Traffic>>,
}

impl Lanes {
    pub(crate) fn new(most: usize) -> Self {
        Self { most, known: Mutex::default() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.known.lock().lanes.len()
    }

    /// The traffic of a lane. If there are as many as may be, idle ones make room; if none is, newcomers share one: that is
    /// slower than it could be, and never too fast.
    pub(crate) fn find(
        &self,
        mut lane: Lane,
        pace: &Pace,
        store: &MemoryStore,
        now: Timestamp,
    ) -> Arc<Traffic> {
        let mut known = self.known.lock();
        if let Some(traffic) = known.lanes.get(lane.key().as_bytes()) {
            return traffic.clone();
        }
        if known.lanes.len() >= self.most && now >= known.sweep_at {
            known.lanes.retain(|_, traffic| {
                Arc::strong_count(traffic) > 1 || !traffic.is_idle(store, now, REST)
            });
            // To look through all of them is not for every newcomer.
            known.sweep_at = now.after(Duration::from_secs(1));
        }
        if known.lanes.len() >= self.most {
            let crowd = known.crowd.get_or_insert_with(|| {
                tracing::warn!(lanes = self.most, "there are too many lanes: newcomers share one");
                Arc::new(Traffic::new("all others".into(), Key::new(b""), pace.clone()))
            });
            return crowd.clone();
        }
        let pace = lane.take_pace().unwrap_or_else(|| pace.clone());
        let traffic = Arc::new(Traffic::new(lane.name().clone(), lane.key(), pace));
        known.lanes.insert(lane.key().as_bytes().into(), traffic.clone());
        traffic
    }
}
