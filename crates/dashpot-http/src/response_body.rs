//! The body of a response that is watched until it was sent.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

/// What is kept until a response was sent, and let go of by dropping it.
pub(crate) trait Held: Send + Sync {
    /// So many bytes more of the body were sent.
    fn sent(&self, _: usize) {}
}

pin_project! {
    /// The body of a response, and what is let go of when it ends, fails or is dropped, whichever
    /// comes first.
    ///
    /// A place in flight is given back when the body was sent, not when the service returned: a
    /// slow download is work as well.
    pub(crate) struct ResponseBody<B> {
        #[pin]
        body: B,
        // The last field, so that it goes last when both are dropped.
        held: Vec<Box<dyn Held>>,
    }
}

impl<B> ResponseBody<B> {
    pub(crate) const fn new(body: B, held: Vec<Box<dyn Held>>) -> Self {
        Self { body, held }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body<Data = Bytes>,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(cx));
        if let Some(Ok(frame)) = &frame
            && let Some(data) = frame.data_ref()
        {
            this.held.iter().for_each(|held| held.sent(data.len()));
        }
        // Servers do not ask again once a body says that this was its last frame.
        if !matches!(frame, Some(Ok(_))) || this.body.is_end_stream() {
            this.held.clear();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http_body_util::{BodyExt, Full};

    use super::*;

    impl Held for Arc<()> {}

    type Frames = Vec<Result<Frame<Bytes>, &'static str>>;

    /// A body of these frames that never knows that it is at its end.
    struct Slow(std::vec::IntoIter<Result<Frame<Bytes>, &'static str>>);

    impl Body for Slow {
        type Data = Bytes;
        type Error = &'static str;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
            Poll::Ready(self.0.next())
        }
    }

    fn guarded<B>(body: B) -> (ResponseBody<B>, Arc<()>) {
        let held = Arc::new(());
        (ResponseBody::new(body, vec![Box::new(Arc::clone(&held))]), held)
    }

    fn is_held(held: &Arc<()>) -> bool {
        Arc::strong_count(held) > 1
    }

    fn slow(frames: Frames) -> Slow {
        Slow(frames.into_iter())
    }

    fn data(text: &'static str) -> Result<Frame<Bytes>, &'static str> {
        Ok(Frame::data(Bytes::from_static(text.as_bytes())))
    }

    #[tokio::test]
    async fn the_guard_goes_with_the_end() {
        let (mut body, held) = guarded(slow(vec![data("a"), data("b")]));
        for _ in 0..2 {
            body.frame().await.unwrap().unwrap();
            assert!(is_held(&held));
        }
        assert!(body.frame().await.is_none());
        assert!(!is_held(&held));
        assert!(body.frame().await.is_none());
    }

    #[tokio::test]
    async fn the_guard_goes_with_the_last_frame_if_it_is_known_to_be_the_last() {
        let (mut body, held) = guarded(Full::<Bytes>::from("all"));
        assert_eq!(body.size_hint().exact(), Some(3));
        body.frame().await.unwrap().unwrap();
        assert!(!is_held(&held));
    }

    #[tokio::test]
    async fn the_guard_goes_with_an_error() {
        let (mut body, held) = guarded(slow(vec![data("a"), Err("gone")]));
        body.frame().await.unwrap().unwrap();
        assert_eq!(body.frame().await.unwrap().unwrap_err(), "gone");
        assert!(!is_held(&held));
    }

    #[tokio::test]
    async fn the_guard_goes_with_the_body() {
        let (mut body, held) = guarded(slow(vec![data("a"), data("b")]));
        body.frame().await.unwrap().unwrap();
        assert!(is_held(&held));
        drop(body);
        assert!(!is_held(&held));
    }

    #[tokio::test]
    async fn trailers_pass() {
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
        let (body, held) = guarded(slow(vec![data("a"), Ok(Frame::trailers(trailers.clone()))]));
        assert_eq!(body.collect().await.unwrap().trailers(), Some(&trailers));
        assert!(!is_held(&held));
    }
}
