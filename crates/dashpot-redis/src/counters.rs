//! What became of calls to a server.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct Counters {
    late: AtomicU64,
    failed: AtomicU64,
    refused: AtomicU64,
    outages: Mutex<Outages>,
}

#[derive(Debug, Default)]
struct Outages {
    count: u64,
    total: Duration,
    since: Option<Instant>,
}

impl Counters {
    pub(crate) fn late(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self) {
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn went_down(&self) {
        let mut outages = self.outages.lock();
        if outages.since.is_none() {
            outages.count += 1;
            outages.since = Some(Instant::now());
        }
    }

    pub(crate) fn came_up(&self) {
        let mut outages = self.outages.lock();
        if let Some(since) = outages.since.take() {
            outages.total += since.elapsed();
        }
    }

    /// Late, failed, refused.
    pub(crate) fn calls(&self) -> [u64; 3] {
        [&self.late, &self.failed, &self.refused].map(|count| count.load(Ordering::Relaxed))
    }

    /// How often it was down, and how long in all.
    pub(crate) fn outages(&self) -> (u64, Duration) {
        let outages = self.outages.lock();
        let current = outages.since.map_or(Duration::ZERO, |since| since.elapsed());
        (outages.count, outages.total + current)
    }
}
