//! A request's body of which the beginning may have been read already.

use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// How many frames are read before others get their turn. A body whose frames are all there, and
/// all empty, would otherwise keep the thread, and patience with it.
const FRAMES_AT_ONCE: usize = 128;

pin_project! {
    /// The body of a request, as it came.
    ///
    /// A rule that counts by `json:email` has to look into the body. What was read for it is read
    /// again here, and then the rest. Nothing is lost; only that small pieces read ahead may come as
    /// one. Nothing is read ahead, and nothing allocated, if no rule asks.
    pub(crate) struct RequestBody<B>
    where
        B: Body,
    {
        #[pin]
        inner: B,
        // Only if something was: bodies are moved a lot, and hardly ever looked into.
        ahead: Option<Box<Ahead<B::Error>>>,
    }
}

/// What was read ahead.
struct Ahead<E> {
    /// The data, if it came in one piece.
    first: Bytes,
    /// The data, if it came in several. Kept together, as a thousand pieces of a byte each would
    /// take a hundred times their size.
    grown: BytesMut,
    /// What came then: trailers, an error, or data that is more than was asked for.
    then: Option<Result<Frame<Bytes>, E>>,
    /// Whether nothing comes any more.
    ended: bool,
}

impl<B> RequestBody<B>
where
    B: Body<Data = Bytes>,
{
    /// A body of which nothing was read yet.
    pub(crate) const fn new(inner: B) -> Self {
        Self { inner, ahead: None }
    }

    /// The whole body, if it has at most `max` bytes and they come before `patience` runs out.
    ///
    /// What was read stays to be read, whatever happens, also if the future is dropped. A body that
    /// says that it is larger is not touched.
    pub(crate) async fn peek(&mut self, max: usize, patience: Duration) -> Option<Bytes>
    where
        B: Unpin,
    {
        let mut body = Pin::new(self);
        // Most bodies came with the head of the request; those need no timer.
        let at_hand = poll_fn(|cx| Poll::Ready(body.as_mut().poll_peek(cx, max))).await;
        if let Poll::Ready(whole) = at_hand {
            return whole;
        }
        let rest = poll_fn(|cx| body.as_mut().poll_peek(cx, max));
        tokio::time::timeout(patience, rest).await.ok().flatten()
    }

    /// Reads on, until the end or until it is clear that there are more than `max` bytes.
    fn poll_peek(self: Pin<&mut Self>, cx: &mut Context<'_>, max: usize) -> Poll<Option<Bytes>> {
        let mut this = self.project();
        let ahead = this.ahead.get_or_insert_with(|| Box::new(Ahead::new()));
        for _ in 0..FRAMES_AT_ONCE {
            let hint = this.inner.size_hint().lower();
            let least = hint.saturating_add(ahead.len() as u64);
            match &ahead.then {
                // Nothing follows trailers.
                Some(Ok(frame)) if frame.is_trailers() && ahead.len() <= max => {
                    return Poll::Ready(Some(ahead.gather()));
                }
                Some(_) => return Poll::Ready(None),
                None if ahead.ended || this.inner.is_end_stream() => {
                    return Poll::Ready((ahead.len() <= max).then(|| ahead.gather()));
                }
                None if least > max as u64 => return Poll::Ready(None),
                None => {}
            }
            match ready!(this.inner.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => ahead.push(frame, max),
                Some(Err(error)) => ahead.then = Some(Err(error)),
                None => ahead.ended = true,
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl<E> Ahead<E> {
    fn new() -> Self {
        Self { first: Bytes::new(), grown: BytesMut::new(), then: None, ended: false }
    }

    /// How many bytes there are, but for those that are more than was asked for.
    fn len(&self) -> usize {
        self.first.len() + self.grown.len()
    }

    fn push(&mut self, frame: Frame<Bytes>, max: usize) {
        match frame.into_data() {
            Ok(data) if self.len().saturating_add(data.len()) > max => {
                self.then = Some(Ok(Frame::data(data)));
            }
            Ok(data) if self.len() == 0 => self.first = data,
            Ok(data) => {
                self.grown.extend_from_slice(&mem::take(&mut self.first));
                self.grown.extend_from_slice(&data);
            }
            Err(other) => self.then = Some(Ok(other)),
        }
    }

    /// The data in one piece.
    fn gather(&mut self) -> Bytes {
        if !self.grown.is_empty() {
            self.first = mem::take(&mut self.grown).freeze();
        }
        self.first.clone()
    }

    /// What comes next of what was read ahead.
    fn next(&mut self) -> Option<Result<Frame<Bytes>, E>> {
        let data = self.gather();
        if data.is_empty() {
            return self.then.take();
        }
        self.first = Bytes::new();
        Some(Ok(Frame::data(data)))
    }
}

impl<B> Body for RequestBody<B>
where
    B: Body<Data = Bytes>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.project();
        let Some(ahead) = this.ahead else { return this.inner.poll_frame(cx) };
        match ahead.next() {
            Some(frame) => Poll::Ready(Some(frame)),
            None if ahead.ended => Poll::Ready(None),
            None => this.inner.poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        let Some(ahead) = &self.ahead else { return self.inner.is_end_stream() };
        ahead.len() == 0 && ahead.then.is_none() && (ahead.ended || self.inner.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        let Some(kept) = &self.ahead else { return self.inner.size_hint() };
        let data = match &kept.then {
            Some(Ok(frame)) => frame.data_ref().map_or(0, Bytes::len),
            _ => 0,
        };
        let ahead = kept.len() as u64 + data as u64;
        if kept.ended {
            return SizeHint::with_exact(ahead);
        }
        let rest = self.inner.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(rest.lower().saturating_add(ahead));
        if let Some(upper) = rest.upper() {
            hint.set_upper(upper.saturating_add(ahead));
        }
        hint
    }
}

#[cfg(test)]
mod tests;
