//! How a quota is enforced.

use std::fmt;
use std::str::FromStr;

use crate::Quota;

/// How a quota is enforced. The [guide](crate#choosing-an-algorithm) says which one fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Bursts up to the capacity, then the sustained rate.
    TokenBucket,
    /// The same bucket seen as a meter; with a queue, what is over the rate waits its turn.
    LeakyBucket,
    /// Counts per window of the clock or the calendar.
    FixedWindow,
    /// Remembers every admission of the last window: exact, at a price in memory.
    SlidingLog,
    /// Two counters, weighted: nearly as good as the log at the price of a window.
    SlidingWindow,
    /// Counts what is in flight.
    Concurrency,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TokenBucket,
        Self::LeakyBucket,
        Self::FixedWindow,
        Self::SlidingLog,
        Self::SlidingWindow,
        Self::Concurrency,
    ];

    /// The name used in rule files and flags.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenBucket => "token-bucket",
            Self::LeakyBucket => "leaky-bucket",
            Self::FixedWindow => "fixed-window",
            Self::SlidingLog => "sliding-log",
            Self::SlidingWindow => "sliding-window",
            Self::Concurrency => "concurrency",
        }
    }

    /// The algorithm that a quota names by its form: concurrency for what is in flight, else the
    /// token bucket.
    #[must_use]
    pub const fn natural(quota: Quota) -> Self {
        if quota.is_concurrent() { Self::Concurrency } else { Self::TokenBucket }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Algorithm {
    type Err = ParseAlgorithmError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
            .ok_or_else(|| ParseAlgorithmError(name.to_owned()))
    }
}

/// There is no algorithm of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not an algorithm; use token-bucket, leaky-bucket, fixed-window, sliding-log, \
     sliding-window or concurrency"
)]
pub struct ParseAlgorithmError(String);
