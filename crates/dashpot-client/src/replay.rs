//! Bodies that can be sent more than once.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use parking_lot::Mutex;

use crate::BoxError;

/// A body that is kept while it is sent, as far as it is short enough, to be sent again.
///
/// It is what a service under a [`PoliteLayer`](crate::PoliteLayer) is given. What has been sent once is sent again from memory,
/// the rest from where it comes from. If it grows too long, nothing is kept, and it is sent once.
pub struct Replay<B: Body> {
    shared: Arc<Mutex<Shared<B>>>,
    /// Which attempt it belongs to: that of an earlier one is over.
    attempt: u32,
    /// How many frames it has given.
    given: usize,
    hint: SizeHint,
}

/// What was sent, to be sent again.
enum Kept {
    Data(Bytes),
    Trailers(HeaderMap),
}

struct Shared<B> {
    /// Where it comes from; gone when it is over.
    source: Option<Pin<Box<B>>>,
    kept: Vec<Kept>,
    /// How many more bytes are kept.
    room: usize,
    /// How many frames were taken from there.
    taken: usize,
    /// Whether all of them are kept.
    is_whole: bool,
    /// Whether it broke.
    is_broken: bool,
    attempt: u32,
    /// Who waits for more.
    reader: Option<Waker>,
}

/// Why a body cannot be read on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// Where it comes from, it broke.
    #[error(transparent)]
    Source(BoxError),
    /// It belongs to an attempt that is over.
    #[error("this body is gone: the attempt it belongs to is over")]
    Gone,
}

impl<B: Body> Replay<B> {
    /// This body, of which so many bytes are kept.
    pub(crate) fn new(body: B, room: usize) -> Self {
        let hint = body.size_hint();
        let shared = Shared {
            source: (!body.is_end_stream()).then(|| Box::pin(body)),
            kept: Vec::new(),
            room,
            taken: 0,
            is_whole: true,
            is_broken: false,
            attempt: 0,
            reader: None,
        };
        Self { shared: Arc::new(Mutex::new(shared)), attempt: 0, given: 0, hint }
    }

    /// The body of the attempt that is under way, from the beginning.
    pub(crate) fn start(&self) -> Self {
        let attempt = self.shared.lock().attempt;
        Self { shared: self.shared.clone(), attempt, given: 0, hint: self.hint }
    }

    /// Whether it could be sent from the beginning.
    pub(crate) fn can_repeat(&self) -> bool {
        self.shared.lock().can_repeat()
    }

    /// Ends the attempt that is under way: nobody reads on for it. Tells whether there can be another.
    pub(crate) fn rewind(&self) -> bool {
        let mut shared = self.shared.lock();
        if !shared.can_repeat() {
            return false;
        }
        shared.attempt = shared.attempt.wrapping_add(1);
        let reader = shared.reader.take();
        drop(shared);
        reader.into_iter().for_each(Waker::wake);
        true
    }
}

impl Kept {
    fn frame(&self) -> Frame<Bytes> {
        match self {
            Self::Data(data) => Frame::data(data.clone()),
            Self::Trailers(trailers) => Frame::trailers(trailers.clone()),
        }
    }
}

impl<B: Body> Shared<B> {
    const fn can_repeat(&self) -> bool {
        self.is_whole && !self.is_broken
    }

    /// Keeps a frame, if there is room, and gives it back.
    fn keep(&mut self, frame: Frame<B::Data>) -> Frame<Bytes> {
        let frame = frame.map_data(|mut data| data.copy_to_bytes(data.remaining()));
        self.taken += 1;
        let kept = match (frame.data_ref(), frame.trailers_ref()) {
            (Some(data), _) if data.len() <= self.room => Some(Kept::Data(data.clone())),
            (_, Some(trailers)) => Some(Kept::Trailers(trailers.clone())),
            _ => None,
        };
        match kept {
            Some(kept) if self.is_whole => {
                self.room -= frame.data_ref().map_or(0, Bytes::len);
                self.kept.push(kept);
            }
            _ => {
                self.is_whole = false;
                self.kept = Vec::new();
            }
        }
        frame
    }
}

impl<B: Body<Error: Into<BoxError>>> Body for Replay<B> {
    type Data = Bytes;
    type Error = ReplayError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let cell = self.shared.clone();
        let mut shared = cell.lock();
        if self.attempt != shared.attempt {
            return Poll::Ready(Some(Err(ReplayError::Gone)));
        }
        if let Some(kept) = shared.kept.get(self.given) {
            self.given += 1;
            return Poll::Ready(Some(Ok(kept.frame())));
        }
        // Only who was given all before may have what comes next: half a body is worse than none.
        if self.given != shared.taken || shared.is_broken {
            return Poll::Ready(Some(Err(ReplayError::Gone)));
        }
        let Some(source) = &mut shared.source else { return Poll::Ready(None) };
        match source.as_mut().poll_frame(context) {
            Poll::Pending => {
                let old = shared.reader.replace(context.waker().clone());
                drop(shared);
                drop(old);
                Poll::Pending
            }
            Poll::Ready(Some(Ok(frame))) => {
                self.given += 1;
                Poll::Ready(Some(Ok(shared.keep(frame))))
            }
            Poll::Ready(Some(Err(error))) => {
                shared.source = None;
                shared.is_broken = true;
                Poll::Ready(Some(Err(ReplayError::Source(error.into()))))
            }
            Poll::Ready(None) => {
                shared.source = None;
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let shared = self.shared.lock();
        let is_over = shared.source.as_ref().is_none_or(|source| source.is_end_stream());
        let is_read = self.attempt == shared.attempt && self.given == shared.taken;
        is_read && is_over && !shared.is_broken
    }

    fn size_hint(&self) -> SizeHint {
        match self.given {
            0 => self.hint,
            _ => SizeHint::default(),
        }
    }
}

impl<B: Body> fmt::Debug for Replay<B> {
    /// Without what is in it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replay").finish_non_exhaustive()
    }
}
