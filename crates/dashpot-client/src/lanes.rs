//! All lanes, by what they are known by.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use dashpot::{Key, MemoryStore, Timestamp};
use parking_lot::Mutex;

use crate::traffic::Traffic;
use crate::{Lane, Pace};

/// So long nobody has to have called before a lane is forgotten.
const REST: Duration = Duration::from_secs(60);

/// All lanes, at most so many.
pub(crate) struct Lanes {
    most: usize,
    known: Mutex<Known>,
}

#[derive(Default)]
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

    /// The traffic of a lane. If there are as many as may be, idle ones make room; if none is, newcomers share one, each at its
    /// own pace: that is slower than it could be, and never too fast.
    pub(crate) fn find(
        &self,
        mut lane: Lane,
        usual: &Pace,
        store: &MemoryStore,
        now: Timestamp,
    ) -> (Arc<Traffic>, Option<Pace>) {
        let mut known = self.known.lock();
        if let Some(traffic) = known.lanes.get(lane.key().as_bytes()) {
            return (traffic.clone(), None);
        }
        if known.lanes.len() >= self.most && now >= known.sweep_at {
            known.lanes.retain(|_, traffic| !is_over(traffic, store, now));
            // To look through all of them is not for every newcomer.
            known.sweep_at = now.after(Duration::from_secs(1));
        }
        let pace = lane.take_pace().unwrap_or_else(|| usual.clone());
        // Who was in the crowd is to have a lane of its own only when nothing that was said to the crowd still counts.
        if known.crowd.as_ref().is_some_and(|crowd| is_over(crowd, store, now)) {
            known.crowd = None;
        }
        if known.lanes.len() < self.most && known.crowd.is_none() {
            let traffic = Arc::new(Traffic::new(lane.name().clone(), lane.key(), pace));
            known.lanes.insert(lane.key().as_bytes().into(), traffic.clone());
            return (traffic, None);
        }
        let is_first = known.crowd.is_none();
        let crowd = known.crowd.get_or_insert_with(|| {
            Arc::new(Traffic::new("all others".into(), Key::new(b""), usual.clone()))
        });
        let crowd = crowd.clone();
        drop(known);
        if is_first {
            tracing::warn!(lanes = self.most, "there are too many lanes: newcomers share one");
        }
        (crowd, Some(pace))
    }
}

/// Whether it can be forgotten.
fn is_over(traffic: &Arc<Traffic>, store: &MemoryStore, now: Timestamp) -> bool {
    Arc::strong_count(traffic) == 1 && traffic.is_idle(store, now, REST)
}

impl fmt::Debug for Lanes {
    /// Without what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lanes").field("len", &self.len()).finish_non_exhaustive()
    }
}
