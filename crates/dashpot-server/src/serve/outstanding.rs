//! Reservations with permits that were given out and not settled yet.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use crate::serve::reservation::Taken;

/// The most reservations with permits that may be out at once.
const OUT_MAX: usize = 100_000;

/// Reservations with permits, which are given back when their time is over.
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

    /// It is settled.
    pub(crate) fn forget(&self, id: u128) {
        self.inner.lock().out.remove(&id);
    }

    /// Those whose time is over; nobody else settles them any more.
    pub(crate) fn lapsed(&self) -> Vec<Arc<Taken>> {
        let now = Instant::now();
        let mut inner = self.inner.lock();
        let mut lapsed = Vec::new();
        while let Some((_, id)) = inner.lapsing.pop_front_if(|(when, _)| *when <= now) {
            lapsed.extend(inner.out.remove(&id));
        }
        lapsed
    }

    /// How many with permits are out.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().out.len()
    }
}
