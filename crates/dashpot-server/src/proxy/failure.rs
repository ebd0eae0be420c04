//! Why there is no answer of the backend's, and what the caller hears instead.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot::{Limiter, Quota};
use http::{Response, StatusCode};
use tracing::warn;

use crate::proxy::download::ResponseBody;
use crate::serve::wrong::Wrong;

/// Why there is no answer of the backend's.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It cannot be reached.
    Connect(io::Error),
    /// It did not accept a connection in time.
    ConnectTimeout,
    /// It did not answer in time.
    ResponseTimeout,
    /// It closed without a word.
    Broken(hyper::Error),
    /// It broke off, or said what is not HTTP.
    Garbled(hyper::Error),
    /// It did not go on with its answer in time.
    Stalled,
    /// It switched to another protocol, and nobody had asked for that.
    Switched,
    /// The caller did not send its body in time.
    Late,
    /// The caller sent more than it may.
    TooLong,
    /// The caller sent what is no body.
    BadBody,
}

/// What came of the backend.
#[derive(Debug)]
pub(crate) struct Counters {
    /// So many failures are logged.
    logged: Limiter,
    pub(crate) connections: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) tunnels: AtomicU64,
    connect: AtomicU64,
    connect_timeout: AtomicU64,
    response_timeout: AtomicU64,
    broken: AtomicU64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            logged: Limiter::new(Quota::per_second(1)),
            connections: AtomicU64::default(),
            retries: AtomicU64::default(),
            tunnels: AtomicU64::default(),
            connect: AtomicU64::default(),
            connect_timeout: AtomicU64::default(),
            response_timeout: AtomicU64::default(),
            broken: AtomicU64::default(),
        }
    }
}

impl Counters {
    /// Failures, and what they are called.
    pub(crate) fn failures(&self) -> [(&'static str, u64); 4] {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        [
            ("connect", load(&self.connect)),
            ("connect_timeout", load(&self.connect_timeout)),
            ("response_timeout", load(&self.response_timeout)),
            ("broken", load(&self.broken)),
        ]
    }

    /// Counts a failure.
    pub(crate) fn note(&self, failure: &Failure) {
        let count = match failure {
            Failure::Connect(_) => &self.connect,
            Failure::ConnectTimeout => &self.connect_timeout,
            Failure::ResponseTimeout | Failure::Stalled => &self.response_timeout,
            Failure::Broken(_) | Failure::Garbled(_) | Failure::Switched => &self.broken,
            Failure::Late | Failure::TooLong | Failure::BadBody => return,
        };
        count.fetch_add(1, Ordering::Relaxed);
        // A flood of failures is not to become a flood of lines.
        if self.logged.check("").is_allowed() {
            warn!("no answer of the backend's: {failure}");
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, detail) = self.told();
        match self {
            Self::Connect(error) => write!(f, "{detail}: {error}"),
            Self::Broken(error) | Self::Garbled(error) => write!(f, "{detail}: {error}"),
            _ => f.write_str(detail),
        }
    }
}

impl Failure {
    /// Whether the connection was closed, and nothing was said.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self, Self::Broken(error) if !error.is_user())
    }

    const fn told(&self) -> (StatusCode, &'static str) {
        match self {
            Self::Connect(_) => (StatusCode::BAD_GATEWAY, "the backend cannot be reached"),
            Self::ConnectTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "the backend did not accept a connection in time")
            }
            Self::Stalled => {
                (StatusCode::GATEWAY_TIMEOUT, "the backend did not go on with its answer in time")
            }
            Self::ResponseTimeout => {
                (StatusCode::GATEWAY_TIMEOUT, "the backend did not answer in time")
            }
            Self::Broken(_) => (StatusCode::BAD_GATEWAY, "the backend closed without an answer"),
            Self::Garbled(_) => {
                (StatusCode::BAD_GATEWAY, "the backend broke off, or its answer is not HTTP")
            }
            Self::Switched => {
                (StatusCode::BAD_GATEWAY, "the backend switched protocols without being asked")
            }
            Self::Late => (StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
            Self::TooLong => {
                (StatusCode::PAYLOAD_TOO_LARGE, "the body is longer than this gateway takes")
            }
            Self::BadBody => (StatusCode::BAD_REQUEST, "the body is broken"),
        }
    }

    /// What the caller hears.
    pub(crate) fn respond(&self) -> Response<ResponseBody> {
        let (status, detail) = self.told();
        tell(&Wrong::new(status, detail))
    }
}

/// An answer of the gateway's own.
pub(crate) fn tell(wrong: &Wrong) -> Response<ResponseBody> {
    wrong.tell().map(|body| ResponseBody::Whole(Some(body)))
}
