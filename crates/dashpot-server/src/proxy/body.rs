//! Bodies on their way through: what both ways have in common.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dashpot_http::AnyBody;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use tokio::time::Instant;

use crate::proxy::bell::Bell;

/// Why a body is broken off.
#[derive(Debug)]
pub(crate) enum BodyError {
    /// The caller failed, or what it sends is no body.
    Broken(hyper::Error),
    /// The backend failed, or what it sends is no body.
    Backend,
    /// It is longer than it may be.
    TooLong,
    /// It did not go on in time.
    Late,
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken(error) => write!(f, "the body is broken: {error}"),
            Self::Backend => f.write_str("the backend broke off"),
            Self::TooLong => f.write_str("the body is too long"),
            Self::Late => f.write_str("the body did not go on in time"),
        }
    }
}

impl std::error::Error for BodyError {}

/// The wait for a body to go on, for so long at most.
pub(crate) struct Lull {
    patience: Duration,
    since: Option<Instant>,
    /// One for all waits.
    timer: Option<Pin<Box<Bell>>>,
}

impl Lull {
    pub(crate) const fn new(patience: Duration) -> Self {
        Self { patience, since: None, timer: None }
    }

    /// It does not go on. Ready when that has been so for too long.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let end = *self.since.get_or_insert_with(Instant::now) + self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(Bell::at(end)));
        if timer.end() != end {
            timer.as_mut().set(end);
        }
        timer.as_mut().poll(context)
    }

    /// It goes on.
    pub(crate) const fn end(&mut self) {
        self.since = None;
    }
}

/// A body on its way through.
pub(crate) enum Passing<C> {
    /// It is all here.
    Whole(Option<Bytes>),
    /// It comes.
    Coming(Box<C>),
    /// The layer looks at it.
    Held(UnsyncBoxBody<Bytes, BodyError>),
}

impl<C> Passing<C> {
    /// There is none.
    pub(crate) const EMPTY: Self = Self::Whole(None);
}

/// What comes of a body next.
pub(crate) type Next = Poll<Option<Result<Frame<Bytes>, BodyError>>>;

impl<C> Body for Passing<C>
where
    C: Body<Data = Bytes, Error = BodyError> + Unpin,
{
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
            Self::Coming(coming) => Pin::new(coming).poll_frame(context),
            Self::Held(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Coming(coming) => coming.is_end_stream(),
            Self::Held(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Coming(coming) => coming.size_hint(),
            Self::Held(body) => body.size_hint(),
        }
    }
}

impl<C> AnyBody for Passing<C>
where
    C: Body<Data = Bytes, Error = BodyError> + Unpin + Send + 'static,
{
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::Held(body.boxed_unsync())
    }
}
