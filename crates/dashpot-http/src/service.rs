//! The service: a request runs downhill, once.

use std::mem;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dashpot::{MemoryStore, Store};
use dashpot_rules::{Refusal, RuleSet, Ruling};
use http::header::{CONTENT_TYPE, ORIGIN};
use http::{HeaderMap, Request, Response};
use http_body::Body;
use tower_service::Service;

use crate::layer::Shared;
use crate::settle::Charges;
use crate::{HttpDescriptor, RequestBody, ResponseBody, ResponseFuture, Wait, denial, headers};

/// How long to wait for a body in which a field is wanted. After that, the field is absent.
const PATIENCE: Duration = Duration::from_secs(10);

/// A service that is limited by rules. Made by a [`RateLimitLayer`](crate::RateLimitLayer).
///
/// A denied request never reaches the service. An allowed one does, after a queue's delay if there
/// is one; its response tells how the caller stands.
#[derive(Debug)]
pub struct RateLimit<S, St = MemoryStore> {
    inner: S,
    shared: Arc<Shared<St>>,
}

impl<S, St> RateLimit<S, St> {
    pub(crate) const fn new(inner: S, shared: Arc<Shared<St>>) -> Self {
        Self { inner, shared }
    }
}

impl<S: Clone, St> Clone for RateLimit<S, St> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), shared: self.shared.clone() }
    }
}

impl<S, St, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimit<S, St>
where
    S: Service<Request<RequestBody<ReqBody>>, Response = Response<ResBody>>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
    S::Error: Send,
    St: Store + 'static,
    ReqBody: Body<Data = Bytes> + Send + Unpin + 'static,
    ReqBody::Error: Send,
    ResBody: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<ResBody, S::Error>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        // The one that is ready goes with the request; its clone is made ready for the next.
        let next = self.inner.clone();
        let inner = mem::replace(&mut self.inner, next);
        ResponseFuture::new(answer(self.shared.clone(), inner, request))
    }
}

/// Identify, plan, decide, serve, describe.
async fn answer<S, St, ReqBody, ResBody>(
    shared: Arc<Shared<St>>,
    mut inner: S,
    request: Request<ReqBody>,
) -> Result<Response<ResponseBody<ResBody>>, S::Error>
where
    S: Service<Request<RequestBody<ReqBody>>, Response = Response<ResBody>>,
    St: Store + 'static,
    ReqBody: Body<Data = Bytes> + Unpin,
    ResBody: Body<Data = Bytes>,
{
    let rules = shared.rules.current();
    let mut request = request.map(RequestBody::new);
    let manner = Manner::of(&request);

    let selection = rules.select(&HttpDescriptor::new(&rules, &request, None));
    let body = if selection.needs_body() {
        request.body_mut().peek(rules.identity().body_max, PATIENCE).await
    } else {
        None
    };
    let plan = selection.plan(&HttpDescriptor::new(&rules, &request, body.as_ref()));
    drop(body);

    let mut ruling = plan.decide(&*shared.store, &shared.local).await;
    if let Some(refusal) = ruling.refusal() {
        return Ok(refuse(refusal, &ruling, &rules, manner).map(ResponseBody::made));
    }
    let charges = Charges::new(&mut ruling, &shared);
    let delay = ruling.decision().map(|decision| decision.delay()).unwrap_or_default();
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }

    let mut response = inner.call(request).await?;

    let permits = charges.settle(&response);
    if let Some(decision) = ruling.decision() {
        let wait = Wait::of(decision, Duration::ZERO);
        headers::describe_unless_told(decision, &wait, rules.headers(), response.headers_mut());
        manner.finish(&rules, response.headers_mut());
    }
    Ok(response.map(|body| ResponseBody::own(body, permits)))
}

/// What of a request matters to how it is answered.
#[derive(Clone, Copy)]
struct Manner {
    is_grpc: bool,
    /// A script of some origin asks.
    has_origin: bool,
}

impl Manner {
    fn of<B>(request: &Request<B>) -> Self {
        let headers = request.headers();
        let kind = headers.get(CONTENT_TYPE);
        Self {
            is_grpc: kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc")),
            has_origin: headers.contains_key(ORIGIN),
        }
    }

    fn finish(self, rules: &RuleSet, headers: &mut HeaderMap) {
        if self.has_origin {
            headers::expose(rules.headers(), headers);
        }
    }
}

/// The answer to a request that is not served.
fn refuse(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    manner: Manner,
) -> Response<Bytes> {
    let mut response = match (refusal, ruling.decision()) {
        (Refusal::Limited(rule), Some(decision)) => {
            let wait = Wait::of(decision, rules.headers().jitter);
            denial::denied(decision, &wait, rules.headers(), rule.on_deny(), manner.is_grpc)
        }
        (Refusal::Blocked(_), _) => denial::blocked(manner.is_grpc),
        (Refusal::Absent(rule), _) => denial::absent(rule.on_deny(), manner.is_grpc),
        // Nothing is limited without a decision.
        (Refusal::Unavailable(_) | Refusal::Limited(_), _) => denial::unavailable(manner.is_grpc),
    };
    manner.finish(rules, response.headers_mut());
    response
}
