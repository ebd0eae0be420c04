//! What a caller's connection is doing, and since when. A timer for each of a request's steps would take longer than the step:
//! there is one, and when it rings the connection is looked at.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

use crate::proxy::stream::Heed;

/// What a connection is doing, and since when.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: AtomicU8,
    /// Microseconds since it began.
    since: AtomicU64,
    began: Instant,
    /// Whether the backend took too long.
    is_given_up: AtomicBool,
    /// How often all that was to be written has been.
    flushes: AtomicU64,
}

/// There is no request.
const IDLE: u8 = 0;
/// The head of a request has begun to come.
const HEAD: u8 = 1;
/// The answer is made, or more of it is waited for.
const ANSWERING: u8 = 2;
/// The caller is to take more of the answer.
const SENDING: u8 = 3;
/// The backend is to answer, or to take more of the request.
const BACKEND: u8 = 4;
/// The caller is to take the rest of the answer, all of which is there.
const LAST: u8 = 5;

/// How long each may take, but for what others see to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) idle: Duration,
    pub(crate) client: Duration,
    pub(crate) response: Duration,
}

impl Heed for Arc<Progress> {
    fn read(&self, _: usize) -> io::Result<()> {
        self.has_read();
        Ok(())
    }

    /// The caller took something.
    fn written(&self) {
        let phase = self.phase.load(Ordering::Relaxed);
        if phase == SENDING || phase == LAST {
            self.enter(phase, Instant::now());
        }
    }

    fn flushed(&self) {
        self.flushes.fetch_add(1, Ordering::Relaxed);
        if self.phase.load(Ordering::Relaxed) == LAST {
            self.enter(IDLE, Instant::now());
        }
    }
}

impl Progress {
    pub(crate) fn new() -> Self {
        Self {
            phase: AtomicU8::new(IDLE),
            since: AtomicU64::new(0),
            began: Instant::now(),
            is_given_up: AtomicBool::new(false),
            flushes: AtomicU64::new(0),
        }
    }

    fn enter(&self, phase: u8, now: Instant) {
        let since = now.saturating_duration_since(self.began).as_micros();
        self.since.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// Something came of it; what, is seen when it is all there.
    pub(crate) fn has_read(&self) {
        if self.phase.load(Ordering::Relaxed) == IDLE {
            self.enter(HEAD, Instant::now());
        }
    }

    /// Whether no request is being answered.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == IDLE
    }

    pub(crate) fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Relaxed)
    }

    pub(crate) fn is_answering(&self) {
        self.phase.store(ANSWERING, Ordering::Relaxed);
    }

    pub(crate) fn is_sending(&self, now: Instant) {
        self.enter(SENDING, now);
    }

    /// All of the answer is there; once it was written, there is no request.
    pub(crate) fn has_ended(&self, now: Instant) {
        self.enter(LAST, now);
    }

    pub(crate) fn waits_for_backend(&self) {
        self.is_given_up.store(false, Ordering::Relaxed);
        self.enter(BACKEND, Instant::now());
    }

    /// Whether the backend is waited for.
    pub(crate) fn waits(&self) -> bool {
        self.phase.load(Ordering::Relaxed) == BACKEND
    }

    /// Whether it is the backend that took too long. It is not waited for any more.
    pub(crate) fn gives_up(&self) -> bool {
        let is_backend = self.waits();
        if is_backend {
            self.is_given_up.store(true, Ordering::Relaxed);
            self.is_answering();
        }
        is_backend
    }

    /// Whether the backend is not waited for any more.
    pub(crate) fn is_given_up(&self) -> bool {
        self.is_given_up.load(Ordering::Relaxed)
    }

    /// When it will have taken too long, as it is now.
    pub(crate) fn too_late(&self, patience: Patience) -> Option<Instant> {
        let patience = match self.phase.load(Ordering::Relaxed) {
            IDLE => patience.idle,
            ANSWERING => return None,
            BACKEND => patience.response,
            _ => patience.client,
        };
        Some(self.began + Duration::from_micros(self.since.load(Ordering::Relaxed)) + patience)
    }

    /// When to look again: before anything that begins now can have taken too long.
    pub(crate) fn look_at(&self, patience: Patience) -> Instant {
        let Patience { idle, client, response } = patience;
        let soon = Instant::now() + idle.min(client).min(response);
        self.too_late(patience).map_or(soon, |late| late.min(soon))
    }
}
