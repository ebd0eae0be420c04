//! Why parts do not fit together.

use super::{Algorithm, Consistency, NAME_MAX, SLIDING_LOG_MAX};
use crate::Quota;

/// Why the parts of a [`Policy`](super::Policy) do not fit together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PolicyError {
    /// The name is empty or too long.
    #[error("a policy's name has 1 to {NAME_MAX} bytes")]
    NameLength,
    /// The name is not printable.
    #[error("a policy's name has no control characters")]
    NameCharacters,
    /// A rate for concurrency, or the other way round.
    #[error(
        "`{quota}` does not fit {algorithm}: concurrency takes `N concurrent`, all others `N/WINDOW`"
    )]
    Form {
        /// The quota.
        quota: Quota,
        /// The algorithm it does not fit.
        algorithm: Algorithm,
    },
    /// A burst where nothing can burst.
    #[error("`burst` is the capacity of a bucket; windows have none, and a queue sets its own")]
    Burst,
    /// A queue on something else than a leaky bucket.
    #[error("only a leaky-bucket has a queue")]
    Queue,
    /// More undelayed places than the queue has.
    #[error("`undelayed` is at most the number of places in the queue")]
    Undelayed,
    /// A sliding log that would remember too much.
    #[error(
        "a sliding-log remembers each of its units, so it counts at most {SLIDING_LOG_MAX}; use \
         sliding-window"
    )]
    LogTooLong,
    /// A time zone where there is no calendar.
    #[error("a time zone goes with a fixed-window of whole days, weeks, months or years")]
    Zone,
    /// Any window, of what is no bucket with a rate.
    #[error("only a bucket that lets something pass can go on under any window")]
    AnyWindow,
    /// Not exact, where it can only be that.
    #[error(
        "{consistency} is for a bucket without a queue, a fixed-window or a sliding-window: {reason}"
    )]
    Consistency {
        /// What was asked for.
        consistency: Consistency,
        /// Why it cannot be.
        reason: &'static str,
    },
}
