//! What a caller's connection is doing, and since when. Timers for each of a request's steps would take longer than the steps.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// What a connection is doing, and since when.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: AtomicU8,
    /// Microseconds since it began.
    since: AtomicU64,
    began: Instant,
}

/// There is no request.
const IDLE: u8 = 0;
/// The head of a request has begun to come.
const HEAD: u8 = 1;
/// The answer is made, or more of it is waited for.
const ANSWERING: u8 = 2;
/// The caller is to take more of the answer.
const SENDING: u8 = 3;

/// How long each may take, but for what others see to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) idle: Duration,
    pub(crate) client: Duration,
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self { phase: AtomicU8::new(IDLE), since: AtomicU64::new(0), began: Instant::now() }
    }

    fn enter(&self, phase: u8) {
        let since = self.began.elapsed().as_micros();
        self.since.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// Something came of it; what, is seen when it is all there.
    pub(crate) fn has_read(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(HEAD);
        }
    }

    pub(crate) fn is_answering(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    pub(crate) fn is_sending(&self) {
        self.enter(SENDING);
    }

    pub(crate) fn is_idle(&self) {
        self.enter(IDLE);
    }

    /// When it will have taken too long, as it is now.
    pub(crate) fn too_late(&self, patience: Patience) -> Option<Instant> {
        let patience = match self.phase.load(Ordering::Relaxed) {
            IDLE => patience.idle,
            ANSWERING => return None,
            _ => patience.client,
        };
        Some(self.began + Duration::from_micros(self.since.load(Ordering::Relaxed)) + patience)
    }

    /// When to look again.
    pub(crate) fn look_at(&self, patience: Patience) -> Instant {
        let soon = || Instant::now() + patience.idle.min(patience.client);
        self.too_late(patience).unwrap_or_else(soon)
    }
}
