//! The answer to come.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use crate::ResponseBody;

type Answer<B, E> = Result<Response<ResponseBody<B>>, E>;

/// The answer of a [`RateLimit`](crate::RateLimit) service to come.
pub struct ResponseFuture<B, E> {
    // One allocation for each request. The future of a store is of no type that has a name, and on
    // its way through rules, store and service it borrows from itself.
    inner: Pin<Box<dyn Future<Output = Answer<B, E>> + Send>>,
}

impl<B, E> ResponseFuture<B, E> {
    pub(crate) fn new(future: impl Future<Output = Answer<B, E>> + Send + 'static) -> Self {
        Self { inner: Box::pin(future) }
    }
}

impl<B, E> Future for ResponseFuture<B, E> {
    type Output = Answer<B, E>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.inner.as_mut().poll(cx)
    }
}

impl<B, E> fmt::Debug for ResponseFuture<B, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
