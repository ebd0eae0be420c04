//! What a call comes to.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;

use crate::{Answer, CallError};

/// What comes of it.
type Outcome<A> = Result<Response<Answer<A>>, CallError>;

/// A call under way. Dropping it leaves the line, or gives the call up.
#[must_use = "a call is not made unless it is awaited"]
pub struct ResponseFuture<A> {
    // Boxed: a call over the network can afford it, and has a name that can be written down.
    run: Pin<Box<dyn Future<Output = Outcome<A>> + Send>>,
}

impl<A> ResponseFuture<A> {
    pub(crate) fn new(run: impl Future<Output = Outcome<A>> + Send + 'static) -> Self {
        Self { run: Box::pin(run) }
    }
}

impl<A> Future for ResponseFuture<A> {
    type Output = Outcome<A>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.run.as_mut().poll(context)
    }
}

impl<A> fmt::Debug for ResponseFuture<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
