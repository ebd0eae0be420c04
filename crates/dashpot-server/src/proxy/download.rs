//! The body of an answer, on its way to the caller.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;

use crate::proxy::body::{BodyError, Lull, Next, Passing};
use crate::proxy::failure::Failure;
use crate::proxy::link::{Link, Pool};
use crate::proxy::progress::Progress;

/// The body of an answer.
pub(crate) type ResponseBody = Passing<Answer>;

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
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
        let this = self.get_mut();
        let mut next = Pin::new(&mut this.body).poll_frame(context);
        if next.is_pending()
            && let Some(link) = &mut this.link
        {
            link.drive(context);
            next = Pin::new(&mut this.body).poll_frame(context);
        }
        match next {
            Poll::Pending => {
                ready!(this.lull.poll(context));
                this.give_up(&Failure::Stalled);
                Poll::Ready(Some(Err(BodyError::Late)))
            }
            Poll::Ready(Some(Ok(frame))) => {
                this.lull.end();
                if this.body.is_end_stream() {
                    this.give_back(context);
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                let failure = Failure::Garbled(error);
                this.give_up(&failure);
                Poll::Ready(Some(Err(BodyError::Backend)))
            }
            Poll::Ready(None) => {
                this.give_back(context);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
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
    fn break_off(&mut self) -> Next {
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

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
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
