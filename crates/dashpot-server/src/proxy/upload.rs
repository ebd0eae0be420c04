//! The body of a request, on its way to the backend.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use dashpot_http::AnyBody;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;

use crate::proxy::body::{BodyError, Lull};
use crate::proxy::headers;

/// What is known of a request's body while it is sent on.
#[derive(Debug, Default)]
pub(crate) struct Upload {
    state: AtomicU8,
    /// How many pieces of it there have been.
    pieces: AtomicU64,
}

/// What a body is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uploading {
    /// The backend is to take more of it.
    Sending = 0,
    /// The caller is to send more of it.
    Waiting = 1,
    /// All of it was sent on.
    Ended = 2,
    /// It is longer than it may be.
    TooLong = 3,
    /// The caller did not go on in time.
    Late = 4,
    /// The caller failed.
    Broken = 5,
}

impl Upload {
    pub(crate) fn now(&self) -> Uploading {
        match self.state.load(Ordering::Relaxed) {
            0 => Uploading::Sending,
            1 => Uploading::Waiting,
            2 => Uploading::Ended,
            3 => Uploading::TooLong,
            4 => Uploading::Late,
            _ => Uploading::Broken,
        }
    }

    /// Changes when the body goes on.
    pub(crate) fn pieces(&self) -> u64 {
        self.pieces.load(Ordering::Relaxed)
    }

    fn set(&self, state: Uploading) {
        self.state.store(state as u8, Ordering::Relaxed);
    }
}

/// The body of a request.
pub(crate) enum RequestBody {
    /// There is none.
    Empty,
    /// It comes.
    Coming(Box<Coming>),
    /// The layer looked into it.
    Held(UnsyncBoxBody<Bytes, BodyError>),
}

/// A body that comes.
pub(crate) struct Coming {
    body: Incoming,
    /// How many bytes more it may have.
    left: u64,
    upload: Arc<Upload>,
    lull: Lull,
}

impl RequestBody {
    /// A body with so many bytes at most, whose caller may take so long before it goes on.
    pub(crate) fn new(body: Incoming, most: u64, patience: Duration, upload: Arc<Upload>) -> Self {
        Self::Coming(Box::new(Coming { body, left: most, upload, lull: Lull::new(patience) }))
    }
}

impl Coming {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Pending => {
                self.upload.set(Uploading::Waiting);
                ready!(self.lull.poll(context));
                self.upload.set(Uploading::Late);
                Poll::Ready(Some(Err(BodyError::Late)))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                self.lull.end();
                if let Some(trailers) = frame.trailers_mut() {
                    headers::clean(trailers);
                }
                self.upload.pieces.fetch_add(1, Ordering::Relaxed);
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let Some(left) = self.left.checked_sub(length) else {
                    self.upload.set(Uploading::TooLong);
                    return Poll::Ready(Some(Err(BodyError::TooLong)));
                };
                self.left = left;
                let is_over = frame.is_trailers() || self.body.is_end_stream();
                self.upload.set(if is_over { Uploading::Ended } else { Uploading::Sending });
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                self.upload.set(Uploading::Broken);
                Poll::Ready(Some(Err(BodyError::Broken(error))))
            }
            Poll::Ready(None) => {
                self.upload.pieces.fetch_add(1, Ordering::Relaxed);
                self.upload.set(Uploading::Ended);
                Poll::Ready(None)
            }
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.get_mut() {
            Self::Empty => Poll::Ready(None),
            Self::Coming(coming) => coming.poll(context),
            Self::Held(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Empty => true,
            Self::Coming(coming) => coming.body.is_end_stream(),
            Self::Held(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Empty => SizeHint::with_exact(0),
            Self::Coming(coming) => coming.body.size_hint(),
            Self::Held(body) => body.size_hint(),
        }
    }
}

impl AnyBody for RequestBody {
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = BodyError> + Send + 'static,
    {
        Self::Held(body.boxed_unsync())
    }
}
