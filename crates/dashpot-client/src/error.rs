//! What can go wrong with a call.

use std::error::Error;
use std::time::Duration;

use crate::Report;
use crate::run::Failure;

/// Any error, as tower's services have them.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Why a call was not sent, or not once more. Nothing of any quota was used for that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum NotSent {
    /// It would have to wait longer than it may. Told as soon as it is known.
    #[error("it would have to wait longer than it may; allow more time, or call later")]
    TooLate {
        /// How long it would still take at least, if that is known.
        retry_after: Option<Duration>,
    },
    /// As many wait in its lane as may.
    #[error("too many calls wait already; call later")]
    Full,
    /// Its own pace never lets it go.
    #[error("its pace allows nothing, however long it waits")]
    Never,
}

/// What came of a call that has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// It was not sent, or not once more after it failed.
    #[error("not sent: {reason}")]
    NotSent {
        /// Why not.
        reason: NotSent,
        /// What it waited for until then.
        report: Report,
    },
    /// It was sent, and failed.
    #[error("{source}")]
    Failed {
        /// What the service that makes calls said.
        source: BoxError,
        /// What it waited for until then.
        report: Report,
    },
}

impl<E: Into<BoxError>> From<Failure<E>> for CallError {
    fn from(failure: Failure<E>) -> Self {
        match failure {
            Failure::NotSent(reason, report) => Self::NotSent { reason, report },
            Failure::Failed(source, report) => Self::Failed { source: source.into(), report },
        }
    }
}

impl CallError {
    /// Why it took as long as it did.
    #[must_use]
    pub const fn report(&self) -> &Report {
        match self {
            Self::NotSent { report, .. } | Self::Failed { report, .. } => report,
        }
    }

    /// Why it was not sent, if it was not.
    #[must_use]
    pub const fn not_sent(&self) -> Option<NotSent> {
        match self {
            Self::NotSent { reason, .. } => Some(*reason),
            Self::Failed { .. } => None,
        }
    }
}
