use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::{Clock, Timestamp};

/// A clock that stands still until told otherwise: for tests, yours included, and simulations.
///
/// Clones show the same time.
///
/// ```
/// use dashpot::{Limiter, ManualClock, MemoryStore, Policy, Quota};
/// use std::time::Duration;
///
/// let clock = ManualClock::default();
/// let store = MemoryStore::with_clock(clock.clone());
/// let limiter = Limiter::on(Policy::new("api", Quota::per_second(1))?, store);
///
/// assert!(limiter.check("alice").is_allowed());
/// assert!(!limiter.check("alice").is_allowed());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check("alice").is_allowed());
/// # Ok::<(), dashpot::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    nanos: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        Self { nanos: Arc::new(AtomicU64::new(now.as_nanos())) }
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        let later = |nanos| Some(Timestamp::from_nanos(nanos).after(by).as_nanos());
        // Never an error: there is always a later.
        let _ = self.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Shows `now` from here on, be it earlier or later than before.
    pub fn set(&self, now: Timestamp) {
        self.nanos.store(now.as_nanos(), Ordering::SeqCst);
    }
}

/// Starts in September 2001, a billion seconds after the epoch.
impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::from_secs(1_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.nanos.load(Ordering::SeqCst))
    }
}
