//! Sends a request to the backend, and brings back its answer.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use http::{Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use tower_service::Service;

use crate::proxy::bell::Bell;
use crate::proxy::connection::Caller;
use crate::proxy::download::{Answer, ResponseBody};
use crate::proxy::failure::Failure;
use crate::proxy::headers;
use crate::proxy::link::Link;
use crate::proxy::progress::Progress;
use crate::proxy::upload::{RequestBody, Upload, Uploading};

/// The way to the backend, for one request.
#[derive(Clone)]
pub(crate) struct Forward {
    pub(crate) caller: Arc<Caller>,
    /// What becomes of the request's body, if it has one.
    pub(crate) upload: Option<Arc<Upload>>,
    pub(crate) progress: Arc<Progress>,
}

impl Service<Request<RequestBody>> for Forward {
    type Response = Response<ResponseBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let forward = self.clone();
        Box::pin(async move {
            let answered = forward.forward(request).await;
            Ok(answered.unwrap_or_else(|failure| {
                forward.caller.gateway().counters.note(&failure);
                failure.respond()
            }))
        })
    }
}

impl Forward {
    async fn forward(
        &self,
        request: Request<RequestBody>,
    ) -> Result<Response<ResponseBody>, Failure> {
        let Self { caller, upload, .. } = self;
        let gateway = caller.gateway();
        let (mut head, body) = request.into_parts();
        let has_body = upload.is_some();
        let is_upgrade = headers::is_upgrade(&head, has_body);
        headers::to_backend(
            &mut head,
            &caller.origin,
            &gateway.rules.borrow(),
            &gateway.host,
            (has_body, is_upgrade),
        );
        // What the connection and the layer know of it is not the backend's.
        head.extensions.clear();
        let (response, link) = self.send(Request::from_parts(head, body)).await?;
        let (mut head, body) = response.into_parts();
        head.version = Version::HTTP_11;
        let has_switched = head.status == StatusCode::SWITCHING_PROTOCOLS;
        headers::to_caller(&mut head.headers, has_switched);
        if has_switched {
            if !is_upgrade {
                return Err(Failure::Switched);
            }
            head.extensions.clear();
            caller.switch(link);
            return Ok(Response::from_parts(head, ResponseBody::EMPTY));
        }
        let is_empty = body.is_end_stream();
        let patience = gateway.settings.patience.response;
        let mut answer = Answer::new(body, link, caller.worker.pool.clone(), patience);
        if !is_empty {
            return Ok(Response::from_parts(head, ResponseBody::Coming(Box::new(answer))));
        }
        poll_fn(|context| {
            answer.give_back(context);
            Poll::Ready(())
        })
        .await;
        Ok(Response::from_parts(head, ResponseBody::EMPTY))
    }

    /// Sends a request by a connection that was kept, or by a new one. If one that was kept turns out to be closed, and nothing can
    /// have come of the request that must not come of it twice, it is sent again.
    async fn send(&self, request: Request<RequestBody>) -> Result<Answered, Failure> {
        let gateway = self.caller.gateway();
        let Some(link) = self.caller.worker.pool.take() else {
            let link = Link::open(gateway).await?;
            return self.exchange(link, request).await.map_err(|(failure, _)| failure);
        };
        let again = repeated(&request);
        let (failure, unsent) = match self.exchange(link, request).await {
            Ok(answered) => return Ok(answered),
            Err(failed) => failed,
        };
        let request = match unsent.or(again) {
            Some(request) if failure.is_closed() => request,
            _ => return Err(failure),
        };
        gateway.counters.retries.fetch_add(1, Ordering::Relaxed);
        let link = Link::open(gateway).await?;
        self.exchange(link, request).await.map_err(|(failure, _)| failure)
    }

    /// Sends a request and waits for the head of the answer. What was not sent comes back.
    async fn exchange(
        &self,
        mut link: Box<Link>,
        request: Request<RequestBody>,
    ) -> Result<Answered, (Failure, Option<Request<RequestBody>>)> {
        let upload = self.upload.as_deref();
        link.begin();
        let mut sending = pin!(link.sender.try_send_request(request));
        let mut waiting = Waiting::default();
        let answered = poll_fn(|context| {
            link.drive(context);
            if let Poll::Ready(answered) = sending.as_mut().poll(context) {
                return Poll::Ready(Some(answered));
            }
            if link.is_over() {
                // It was closed before it took the request, which comes back.
                link.close();
                return sending.as_mut().poll(context).map(Some);
            }
            self.poll_given_up(&mut waiting, context).map(|()| None)
        })
        .await;
        self.progress.is_answering();
        match answered {
            Some(Ok(response)) => {
                link.has_begun();
                Ok((response, link))
            }
            Some(Err(mut failed)) => {
                let unsent = failed.take_message();
                let failure = match upload.map(Upload::now) {
                    Some(Uploading::TooLong) => Failure::TooLong,
                    Some(Uploading::Late) => Failure::Late,
                    Some(Uploading::Broken) => Failure::BadBody,
                    _ if link.has_heard() => Failure::Garbled(failed.into_error()),
                    _ => Failure::Broken(failed.into_error()),
                };
                Err((failure, unsent))
            }
            None => Err((Failure::ResponseTimeout, None)),
        }
    }

    /// Whether the backend has taken too long.
    fn poll_given_up(&self, waiting: &mut Waiting, context: &mut Context<'_>) -> Poll<()> {
        if self.upload.as_ref().is_some_and(|upload| upload.now() == Uploading::Waiting) {
            // That is the caller's time, and is seen to where its body is read.
            self.progress.is_answering();
            *waiting = Waiting::default();
            return Poll::Pending;
        }
        let pieces = self.upload.as_ref().map_or(0, |upload| upload.pieces());
        let is_new = waiting.pieces.replace(pieces) != Some(pieces);
        if is_new {
            self.progress.waits_for_backend();
        }
        if !self.caller.is_multiplexed {
            // Who looks after the connection looks after this, too.
            return if self.progress.is_given_up() { Poll::Ready(()) } else { Poll::Pending };
        }
        let patience = self.caller.gateway().settings.patience.response;
        if is_new {
            waiting.timer = Some(Box::pin(Bell::after(patience)));
        }
        waiting.timer.as_mut().map_or(Poll::Pending, |timer| timer.as_mut().poll(context))
    }
}

/// How the backend is waited for.
#[derive(Default)]
struct Waiting {
    /// How many pieces of the request's body there had been when that began.
    pieces: Option<u64>,
    timer: Option<Pin<Box<Bell>>>,
}

/// An answer, and the connection by which its body comes.
type Answered = (Response<Incoming>, Box<Link>);

/// The same request once more, if that changes nothing: it has no body, and its method may be repeated.
fn repeated(request: &Request<RequestBody>) -> Option<Request<RequestBody>> {
    let is_repeatable = request.method().is_idempotent() && request.body().is_end_stream();
    is_repeatable.then(|| {
        let mut again = Request::new(RequestBody::EMPTY);
        again.method_mut().clone_from(request.method());
        again.uri_mut().clone_from(request.uri());
        again.headers_mut().clone_from(request.headers());
        again
    })
}
