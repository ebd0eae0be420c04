//! Why there is no answer.

use std::time::Duration;

use dashpot::StoreError;
use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why there is no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    #[error("Redis is down: {0}")]
    Down(String),
    #[error("Redis did not answer within {0:?}")]
    Late(Duration),
    #[error("Redis refused: {0}")]
    Refused(RedisError),
    #[error("Redis gave an answer that makes no sense: {0}")]
    Odd(&'static str),
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        Self::Unavailable(Box::new(failure))
    }
}

/// What to do about an error that a server or connection gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The connection is of no use any more, nor is who is at its other end.
    Lost,
    /// It does not know the script.
    NoScript,
    /// Somebody else has the slot.
    Moved,
    /// Somebody else has this key, but not yet the slot.
    Ask,
    /// The slot is on its way.
    TryAgain,
    /// The cluster as a whole is not up to it.
    ClusterDown,
    /// Anything else.
    Other,
}

impl Kind {
    pub(crate) fn of(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::Server(kind) => match kind {
                ServerErrorKind::NoScript => Self::NoScript,
                ServerErrorKind::Moved => Self::Moved,
                ServerErrorKind::Ask => Self::Ask,
                ServerErrorKind::TryAgain => Self::TryAgain,
                ServerErrorKind::ClusterDown => Self::ClusterDown,
                // It was demoted, restarts, or lost whom it copies.
                ServerErrorKind::ReadOnly
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown => Self::Lost,
                _ => Self::Other,
            },
            ErrorKind::Io | ErrorKind::AuthenticationFailed => Self::Lost,
            _ if error.is_connection_dropped() || error.is_unrecoverable_error() => Self::Lost,
            _ => match error.code() {
                Some("NOAUTH") => Self::Lost,
                _ => Self::Other,
            },
        }
    }
}
