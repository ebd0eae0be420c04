//! Time: where `now` comes from, and time in tests.

mod alarm;
mod manual;
mod system;
mod timer;

use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

pub use alarm::Alarm;
pub use manual::ManualClock;
pub use system::SystemClock;

/// A moment: whole nanoseconds since the Unix epoch.
///
/// Moments run from 1970 to 2262; what lies beyond is cut to the nearest end, so arithmetic on
/// moments neither wraps nor panics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The last moment there is, in the year 2262.
    pub const MAX: Self = Self(i64::MAX as u64);

    /// The moment this many nanoseconds after the Unix epoch.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        if nanos > Self::MAX.0 { Self::MAX } else { Self(nanos) }
    }

    /// The moment this many seconds after the Unix epoch.
    #[must_use]
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_nanos(secs.saturating_mul(1_000_000_000))
    }

    /// Nanoseconds since the Unix epoch.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The moment `wait` later.
    #[must_use]
    pub fn after(self, wait: Duration) -> Self {
        Self::from_nanos(self.0.saturating_add(saturating_nanos(wait)))
    }

    /// The moment `wait` earlier.
    #[must_use]
    pub fn before(self, wait: Duration) -> Self {
        Self(self.0.saturating_sub(saturating_nanos(wait)))
    }

    /// How long ago `earlier` was; zero if it is not in the past.
    #[must_use]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

/// Whose time counts.
///
/// Implementations should be cheap (one call per decision) and should not run backwards. If one
/// does, nothing breaks, and no key has more than it had before the clock went back: to every
/// algorithm an earlier `now` is a longer wait.
pub trait Clock: Send + Sync {
    /// The current moment.
    fn now(&self) -> Timestamp;

    /// Wakes somebody when this clock shows `at`, which may be now or past.
    ///
    /// It may also wake sooner: those who wait look at the clock and ask again. As provided, it
    /// takes the clock to run about as fast as the machine's, and wakes at least once a minute;
    /// no runtime is needed. A clock that runs by other means should bring its own.
    fn wake_at(&self, at: Timestamp, waker: &Waker) -> Alarm {
        timer::wake_after(at.since(self.now()), waker)
    }
}

impl<C: Clock + ?Sized> Clock for Arc<C> {
    fn now(&self) -> Timestamp {
        C::now(self)
    }

    fn wake_at(&self, at: Timestamp, waker: &Waker) -> Alarm {
        C::wake_at(self, at, waker)
    }
}

/// A duration in nanoseconds, as long as 584 years.
pub(crate) fn saturating_nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
