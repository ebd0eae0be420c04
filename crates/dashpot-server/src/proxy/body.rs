//! The body of an answer, on its way to the caller.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use dashpot_http::AnyBody;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::proxy::failure::Failure;
use crate::proxy::link::{Link, Pool};
use crate::proxy::progress::Progress;

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
    timer: Option<Pin<Box<Sleep>>>,
}

impl Lull {
    pub(crate) const fn new(patience: Duration) -> Self {
        Self { patience, since: None, timer: None }
    }

    /// It does not go on. Ready when that has been so for too long.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let end = *self.since.get_or_insert_with(Instant::now) + self.patience;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(end)));
        if timer.deadline() != end {
            timer.as_mut().reset(end);
        }
        timer.as_mut().poll(context)
    }

    /// It goes on.
    pub(crate) const fn end(&mut self) {
        self.since = None;
    }
}

/// The body of an answer.
pub(crate) enum ResponseBody {
    /// It is all here.
    Whole(Option<Bytes>),
    /// The backend sends it.
    Coming(Box<Answer>),
    /// The layer watches it.
    Held(UnsyncBoxBody<Bytes, BodyError>),
}

/// What the backend sends, and the connection it comes by: who reads the one drives the other, so nobody else is woken.
pub(crate) struct Answer {
    body: Incoming,
    link: Option<Box<Link>>,
    pool: Arc<Pool>,
    lull: Lull,
}

impl Answer {
    pub(crate) const fn new(
        body: Incoming,
        link: Box<Link>,
        pool: Arc<Pool>,
        patience: Duration,
    ) -> Self {
        Self { body, link: Some(link), pool, lull: Lull::new(patience) }
    }

    /// Closes the connection, and counts that.
    fn give_up(&mut self, failure: &Failure) {
        if let Some(link) = self.link.take() {
            link.note(failure);
        }
    }

    /// Takes the connection back to where others find it.
    pub(crate) fn give_back(&mut self, context: &mut Context<'_>) {
        if let Some(link) = self.link.take() {
            self.pool.give_back(link, context);
        }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut next = Pin::new(&mut self.body).poll_frame(context);
        if next.is_pending()
            && let Some(link) = &mut self.link
        {
            link.drive(context);
            next = Pin::new(&mut self.body).poll_frame(context);
        }
        match next {
            Poll::Pending => {
                ready!(self.lull.poll(context));
                self.give_up(&Failure::Stalled);
                Poll::Ready(Some(Err(BodyError::Late)))
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.lull.end();
                if self.body.is_end_stream() {
                    self.give_back(context);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let failure = Failure::Garbled(error);
                self.give_up(&failure);
                Poll::Ready(Some(Err(BodyError::Backend)))
            }
            Poll::Ready(None) => {
                self.give_back(context);
                Poll::Ready(None)
            }
        }
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(Frame::data).map(Ok)),
            Self::Coming(answer) => answer.poll(context),
            Self::Held(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Coming(answer) => answer.body.is_end_stream(),
            Self::Held(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Coming(answer) => answer.body.size_hint(),
            Self::Held(body) => body.size_hint(),
        }
    }
}

impl AnyBody for ResponseBody {
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::Held(body.boxed_unsync())
    }
}

/// An answer's body as it is sent to the caller: notes whether the caller takes it, and tells when it has ended.
pub(crate) struct Sent {
    body: ResponseBody,
    progress: Arc<Progress>,
    /// Whether it is known when all that was to be written has been: not where several answers share a stream.
    is_alone: bool,
    bytes: u64,
    /// Why it is broken off, once what came before has been written: that is not lost with it.
    broken: Option<(BodyError, u64)>,
    /// Told how many bytes there were.
    ended: Option<Box<dyn FnOnce(u64) + Send>>,
}

impl Sent {
    pub(crate) const fn new(
        body: ResponseBody,
        progress: Arc<Progress>,
        is_alone: bool,
        ended: Option<Box<dyn FnOnce(u64) + Send>>,
    ) -> Self {
        Self { body, progress, is_alone, bytes: 0, broken: None, ended }
    }

    /// Breaks off, if what came before has been written.
    fn break_off(&mut self) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.broken.take() {
            Some((error, flushes)) if !self.is_alone || flushes != self.progress.flushes() => {
                Poll::Ready(Some(Err(error)))
            }
            broken => {
                self.broken = broken;
                Poll::Pending
            }
        }
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        if this.broken.is_some() {
            return this.break_off();
        }
        let polled = Pin::new(&mut this.body).poll_frame(context);
        match &polled {
            Poll::Pending => this.progress.is_answering(),
            Poll::Ready(Some(Ok(frame))) => {
                this.bytes += frame.data_ref().map_or(0, |data| data.len() as u64);
                let now = Instant::now();
                if this.body.is_end_stream() {
                    this.progress.has_ended(now);
                } else {
                    this.progress.is_sending(now);
                }
            }
            Poll::Ready(Some(Err(_))) => this.progress.is_sending(Instant::now()),
            Poll::Ready(None) => this.progress.has_ended(Instant::now()),
        }
        match polled {
            Poll::Ready(Some(Err(error))) => {
                this.broken = Some((error, this.progress.flushes()));
                // Who waits is asked again when something can be written; but perhaps all has been.
                context.waker().wake_by_ref();
                Poll::Pending
            }
            polled => polled,
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Sent {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended(self.bytes);
        }
    }
}
