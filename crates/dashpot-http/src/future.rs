//! The answer to come.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use dashpot::Store;
use http::Response;
use pin_project_lite::pin_project;

use crate::AnyBody;
use crate::judgement::{Sequel, made};

type Answer<B, E> = Result<Response<B>, E>;

pin_project! {
    /// The answer of a [`RateLimit`](crate::RateLimit) service to come.
    pub struct ResponseFuture<F, B, E, St>
    where
        St: Store,
        St: 'static,
    {
        #[pin]
        state: State<F, B, E, St>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<F, B, E, St>
    where
        St: Store,
        St: 'static,
    {
        /// It was refused.
        Refused { response: Option<Box<Response<Bytes>>> },
        /// It is served.
        Serving { #[pin] inner: F, sequel: Option<Sequel<St>> },
        /// Its body, the store or its turn is waited for. That has no type with a name, and borrows
        /// from itself: on the heap, which costs little beside the wait.
        Waiting { future: Pin<Box<dyn Future<Output = Answer<B, E>> + Send>> },
    }
}

impl<F, B, E, St: Store + 'static> ResponseFuture<F, B, E, St> {
    pub(crate) const fn refused(response: Box<Response<Bytes>>) -> Self {
        Self { state: State::Refused { response: Some(response) } }
    }

    pub(crate) const fn serving(inner: F, sequel: Sequel<St>) -> Self {
        Self { state: State::Serving { inner, sequel: Some(sequel) } }
    }

    pub(crate) fn waiting(future: impl Future<Output = Answer<B, E>> + Send + 'static) -> Self {
        Self { state: State::Waiting { future: Box::pin(future) } }
    }
}

impl<F, B, E, St> Future for ResponseFuture<F, B, E, St>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: AnyBody,
    St: Store + 'static,
{
    type Output = Answer<B, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Refused { response } => match response.take() {
                Some(response) => Poll::Ready(Ok(made(*response))),
                // Asked again after its answer.
                None => Poll::Pending,
            },
            StateProjection::Serving { inner, sequel } => {
                let if_it_panics = Fails(sequel);
                let answer = inner.poll(cx);
                mem::forget(if_it_panics);
                let answer = ready!(answer);
                match (sequel.take(), answer) {
                    (Some(sequel), Ok(response)) => Poll::Ready(Ok(sequel.finish(response))),
                    (Some(sequel), Err(error)) => {
                        sequel.fail();
                        Poll::Ready(Err(error))
                    }
                    (None, _) => Poll::Pending,
                }
            }
            StateProjection::Waiting { future } => future.as_mut().poll(cx),
        }
    }
}

/// Dropped, the request has failed: somebody further out may catch the panic, and drop the rest when it is over.
struct Fails<'s, St: Store + 'static>(&'s mut Option<Sequel<St>>);

impl<St: Store + 'static> Drop for Fails<'_, St> {
    fn drop(&mut self) {
        if let Some(sequel) = self.0.take() {
            sequel.fail();
        }
    }
}

impl<F, B, E, St: Store> fmt::Debug for ResponseFuture<F, B, E, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").finish_non_exhaustive()
    }
}
