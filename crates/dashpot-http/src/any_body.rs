//! Bodies that can hold any other.

use bytes::Bytes;
use http_body::Body;

/// A body that can hold any other, as those of axum and tonic can, and
/// [`UnsyncBoxBody`](http_body_util::combinators::UnsyncBoxBody).
///
/// Services and their callers keep their own types, so that a layer costs nothing where it has
/// nothing to do; but where a body was looked into, or is to be watched until it was sent, another
/// takes its place. With hyper alone, box bodies before they come here:
/// `map_request(|request: Request<Incoming>| request.map(BodyExt::boxed_unsync))`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot take the place of another body",
    note = "bodies of axum and tonic can (features `axum`, `tonic`), and `UnsyncBoxBody`; \
            box others with `http_body_util::BodyExt::boxed_unsync`"
)]
pub trait AnyBody: Body<Data = Bytes, Error: Send> + Send + Unpin + Sized + 'static {
    /// A body that is this one.
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = Self::Error> + Send + 'static;
}

#[cfg(feature = "axum")]
impl AnyBody for axum::body::Body {
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = Self::Error> + Send + 'static,
    {
        Self::new(body)
    }
}

#[cfg(feature = "tonic")]
impl AnyBody for tonic::body::Body {
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = Self::Error> + Send + 'static,
    {
        Self::new(body)
    }
}

impl<E: Send + 'static> AnyBody for http_body_util::combinators::UnsyncBoxBody<Bytes, E> {
    fn hold<B>(body: B) -> Self
    where
        B: Body<Data = Bytes, Error = E> + Send + 'static,
    {
        Self::new(body)
    }
}
