//! The service: a call, and perhaps the same once more.

use std::error::Error;
use std::future::poll_fn;
use std::task::{Context, Poll};

use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::error::BoxError;
use crate::run::Exchange;
use crate::safety::{self, Mishap};
use crate::{Answer, Call, CallError, Manners, Replay, ResponseFuture};

/// A service that makes calls, with [manners](Manners).
///
/// It is always ready: calls wait in line, not in front of it. The service within is cloned for each call, as clients are
/// made for, and has to be ready when it is the call's turn.
#[derive(Clone, Debug)]
pub struct Polite<S> {
    inner: S,
    manners: Manners,
}

impl<S> Polite<S> {
    /// This service, with these manners.
    pub const fn new(inner: S, manners: Manners) -> Self {
        Self { inner, manners }
    }
}

impl<S, B, A> Service<Request<B>> for Polite<S>
where
    S: Service<Request<Replay<B>>, Response = Response<A>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send + 'static,
    A: Body + Send,
{
    type Response = Response<Answer<A>>;
    type Error = CallError;
    type Future = ResponseFuture<A>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), CallError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture<A> {
        let (mut head, body) = request.into_parts();
        let Self { inner, manners } = self.clone();
        manners.mark(&head.method, &mut head.headers);
        let errand = manners.errand(&Call::of(&head));
        let body = Replay::new(body, manners.replay());
        ResponseFuture::new(async move {
            let mut attempts = Attempts { inner, head, body };
            let (answer, flight, report) = manners.run(errand, &mut attempts).await?;
            let (mut head, body) = answer.into_parts();
            head.extensions.insert(report);
            Ok(Response::from_parts(head, Answer::new(body, flight)))
        })
    }
}

/// One call, as often as it is made.
struct Attempts<S, B: Body> {
    inner: S,
    head: Parts,
    body: Replay<B>,
}

impl<S, B, A> Exchange for Attempts<S, B>
where
    S: Service<Request<Replay<B>>, Response = Response<A>> + Clone + Send,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Body + Send,
    A: Send,
{
    type Answer = Response<A>;
    type Error = BoxError;

    async fn send(&mut self) -> Result<Response<A>, BoxError> {
        let request = Request::from_parts(self.head.clone(), self.body.start());
        // A new one each time: one that was not ready once may never be again.
        let mut inner = self.inner.clone();
        poll_fn(|context| inner.poll_ready(context)).await.map_err(Into::into)?;
        inner.call(request).await.map_err(Into::into)
    }

    fn can_repeat(&self) -> bool {
        self.body.can_repeat()
    }

    fn rewind(&mut self) -> bool {
        self.body.rewind()
    }

    fn cause(error: &BoxError) -> &(dyn Error + 'static) {
        &**error
    }

    fn judge(error: &BoxError) -> Mishap {
        safety::judge(&**error)
    }
}
