//! The body of a request, on its way to the backend.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, SizeHint};
use hyper::body::Incoming;

use crate::proxy::body::{BodyError, Lull, Next, Passing};
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
pub(crate) type RequestBody = Passing<Coming>;

/// A body that comes.
pub(crate) struct Coming {
    body: Incoming,
    /// How many bytes more it may have.
    left: u64,
    upload: Arc<Upload>,
    lull: Lull,
}

impl Coming {
    /// A body with so many bytes at most, whose caller may take so long before it goes on.
    pub(crate) const fn new(
        body: Incoming,
        most: u64,
        patience: Duration,
        upload: Arc<Upload>,
    ) -> Self {
        Self { body, left: most, upload, lull: Lull::new(patience) }
    }
}

impl Body for Coming {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Next {
        let this = self.get_mut();
        match Pin::new(&mut this.body).poll_frame(context) {
            Poll::Pending => {
                this.upload.set(Uploading::Waiting);
                ready!(this.lull.poll(context));
                this.upload.set(Uploading::Late);
                Poll::Ready(Some(Err(BodyError::Late)))
            }
            Poll::Ready(Some(Ok(mut frame))) => {
                this.lull.end();
                if let Some(trailers) = frame.trailers_mut() {
                    headers::clean(trailers);
                }
                this.upload.pieces.fetch_add(1, Ordering::Relaxed);
                let length = frame.data_ref().map_or(0, |data| data.len() as u64);
                let Some(left) = this.left.checked_sub(length) else {
                    this.upload.set(Uploading::TooLong);
                    return Poll::Ready(Some(Err(BodyError::TooLong)));
                };
                this.left = left;
                let is_over = frame.is_trailers() || this.body.is_end_stream();
                this.upload.set(if is_over { Uploading::Ended } else { Uploading::Sending });
                Poll::Ready(Some(Ok(frame)))
            }
            Poll::Ready(Some(Err(error))) => {
                this.upload.set(Uploading::Broken);
                Poll::Ready(Some(Err(BodyError::Broken(error))))
            }
            Poll::Ready(None) => {
                this.upload.pieces.fetch_add(1, Ordering::Relaxed);
                this.upload.set(Uploading::Ended);
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
