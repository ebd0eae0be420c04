//! Reservations that were given out and not settled yet, as far as they have to be remembered.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::serve::reservation::Taken;

/// The most reservations with permits that may be out at once.
const OUT_MAX: usize = 100_000;

/// How many are remembered as settled. Within their time, nothing is settled twice, unless there are more.
const SETTLED_MAX: usize = 1_000_000;

/// Reservations with permits, which are given back when their time is over; and those that are settled,
/// which are not settled again.
#[derive(Debug)]
pub(crate) struct Outstanding {
    ttl: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    out: HashMap<u128, Arc<Taken>>,
    /// In the order in which their time is over.
    lapsing: VecDeque<(Instant, u128)>,
    settled: HashSet<u128>,
    forgetting: VecDeque<(Instant, u128)>,
}

impl Outstanding {
    pub(crate) fn new(ttl: Duration) -> Self {
        Self { ttl, inner: Mutex::default() }
    }

    pub(crate) const fn ttl(&self) -> Duration {
        self.ttl
    }

    /// Whether one more with permits may be given out.
    pub(crate) fn has_room(&self) -> bool {
        self.inner.lock().out.len() < OUT_MAX
    }

    /// Remembers permits that are given out.
    pub(crate) fn give_out(&self, taken: Arc<Taken>) {
        let mut inner = self.inner.lock();
        inner.lapsing.push_back((Instant::now() + self.ttl, taken.id));
        inner.out.insert(taken.id, taken);
    }

    /// Notes that it is settled. `false` if it was before.
    pub(crate) fn settle(&self, id: u128) -> bool {
        let mut inner = self.inner.lock();
        if !inner.settled.insert(id) {
            return false;
        }
        inner.out.remove(&id);
        inner.forgetting.push_back((Instant::now() + self.ttl, id));
        if inner.forgetting.len() > SETTLED_MAX
            && let Some((_, oldest)) = inner.forgetting.pop_front()
        {
            inner.settled.remove(&oldest);
        }
        true
    }

    /// Those whose time is over; nobody else settles them any more.
    pub(crate) fn lapsed(&self) -> Vec<Arc<Taken>> {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let mut lapsed = Vec::new();
        while let Some((_, id)) = inner.lapsing.pop_front_if(|(when, _)| *when <= now) {
            lapsed.extend(inner.out.remove(&id));
        }
        while let Some((_, id)) = inner.forgetting.pop_front_if(|(when, _)| *when <= now) {
            inner.settled.remove(&id);
        }
        lapsed
    }

    /// How many with permits are out.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().out.len()
    }
}
