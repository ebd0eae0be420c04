//! The ways in over HTTP. One table says what there is; requests are sent by it, and the OpenAPI document
//! is made of it.

pub(crate) mod admin;
pub(crate) mod check;
pub(crate) mod dashboard;
pub(crate) mod envoy;
pub(crate) mod events;
pub(crate) mod forward_auth;
pub(crate) mod health;
pub(crate) mod keys;
pub(crate) mod openapi;
pub(crate) mod rules;
pub(crate) mod settle;
pub(crate) mod simulate;
pub(crate) mod vitals;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode, request};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Incoming};
use serde::{Deserialize, Serialize};
use tokio::task::JoinError;

use crate::serve::body;
use crate::serve::connection::Progress;
use crate::serve::metrics::Door;
use crate::serve::received::Received;
use crate::serve::service::Shared;
use crate::serve::store::AnyStore;
use crate::serve::wrong::Wrong;
use events::Events;
use openapi::Documented;

/// The most that is read of a body, in bytes.
pub(crate) const BODY_MAX: usize = 64 * 1024;

/// The same of a rule file.
const FILE_MAX: usize = 4 * 1024 * 1024;

/// What is answered: mostly all of it at once.
pub(crate) type Answer = Either<Full<Bytes>, Events>;

/// An answer.
pub(crate) type Answered = Result<Response<Answer>, Wrong>;

/// An answer that may take its time.
type Answering<'a> = Pin<Box<dyn Future<Output = Answered> + Send + 'a>>;

/// What answers.
pub(crate) type Handle = for<'a> fn(&'a Shared, &'a Call) -> Answering<'a>;

/// One way in.
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) door: Door,
    pub(crate) handle: Handle,
    pub(crate) documented: fn() -> Documented,
}

/// What is asked, and by whom.
pub(crate) struct Call {
    pub(crate) peer: SocketAddr,
    pub(crate) head: request::Parts,
    pub(crate) body: Bytes,
}

/// All ways in, but for `/v1/forward-auth`, which takes any method and any path after it.
pub(crate) const ROUTES: &[Route] = &[
    check::ROUTE,
    settle::ROUTE,
    keys::PEEK,
    keys::RESET,
    keys::BLOCK,
    keys::UNBLOCK,
    keys::TOP,
    rules::LIST,
    rules::RELOAD,
    rules::DIFF,
    rules::EXPLAIN,
    health::HEALTH,
    vitals::PUSH,
    health::HEALTHZ,
    health::READYZ,
    health::METRICS,
    dashboard::INDEX,
    dashboard::APP,
    dashboard::LOOK,
    events::ROUTE,
    simulate::ROUTE,
    openapi::ROUTE,
    envoy::JSON,
    envoy::HEALTHCHECK,
];

/// Answers a request. Tells by which door it came in.
pub(crate) async fn answer(
    service: &Shared,
    peer: SocketAddr,
    request: Request<Incoming>,
    progress: &Arc<Progress>,
) -> (Door, Response<Answer>) {
    let path = request.uri().path();
    if let Some(rest) = path.strip_prefix(forward_auth::PATH)
        && (rest.is_empty() || rest.starts_with('/'))
    {
        let answered = match receive(peer, request, progress, BODY_MAX, TooLong::Ignored).await {
            Ok(call) => {
                let handle: Handle = |service, call| Box::pin(forward_auth::answer(service, call));
                see_through(service, call, handle).await
            }
            Err(wrong) => Err(wrong),
        };
        return (Door::ForwardAuth, respond(answered));
    }
    // HEAD is GET, and hyper leaves the body out.
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let Some(route) = ROUTES.iter().find(|route| route.path == path && route.method == *method)
    else {
        return (Door::Other, respond(Err(no_route(path))));
    };
    let most = if route.path == rules::DIFF.path { FILE_MAX } else { BODY_MAX };
    let answered = match receive(peer, request, progress, most, TooLong::Wrong).await {
        Ok(call) => see_through(service, call, route.handle).await,
        Err(wrong) => Err(wrong),
    };
    let mut response = respond(answered);
    if let Either::Right(events) = response.body_mut() {
        events.on(progress);
    }
    (route.door, response)
}

/// Answers, to the end: who hangs up while a store far away is asked would leave what was taken to nobody. In memory
/// nothing is waited for between taking something and noting it.
async fn see_through(service: &Shared, call: Call, handle: Handle) -> Answered {
    if let AnyStore::Memory(_) = service.store {
        return handle(service, &call).await;
    }
    let service = service.clone();
    let answering = tokio::spawn(async move { handle(&service, &call).await });
    let failed =
        |error: JoinError| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string());
    answering.await.map_err(failed)?
}

fn respond(answered: Answered) -> Response<Answer> {
    answered.unwrap_or_else(|wrong| wrong.respond().map(Either::Left))
}

fn no_route(path: &str) -> Wrong {
    let routes = ROUTES.iter().filter(|route| route.path == path);
    // Who answers GET answers HEAD.
    let methods: Vec<&str> = { routes }
        .flat_map(|route| match route.method {
            Method::GET => vec!["GET", "HEAD"],
            ref other => vec![other.as_str()],
        })
        .collect();
    if methods.is_empty() {
        return Wrong::new(
            StatusCode::NOT_FOUND,
            "there is nothing here; GET / says what there is",
        );
    }
    let methods = methods.join(", ");
    let wrong = Wrong::new(StatusCode::METHOD_NOT_ALLOWED, format!("use {methods}"));
    match HeaderValue::from_str(&methods) {
        Ok(methods) => wrong.with(ALLOW, methods),
        Err(_) => wrong,
    }
}

/// Reads the body, if it is not too long. How long it takes is the connection's to see.
async fn receive(
    peer: SocketAddr,
    request: Request<Incoming>,
    progress: &Progress,
    most: usize,
    too_long: TooLong,
) -> Result<Call, Wrong> {
    let (head, mut incoming) = request.into_parts();
    if incoming.is_end_stream() {
        return Ok(Call { peer, head, body: Bytes::new() });
    }
    if incoming.size_hint().lower() > most as u64 {
        progress.leave_unread();
        return too_long.answer(peer, head, most);
    }
    progress.receiving();
    let mut body = Received::Nothing;
    while let Some(frame) = incoming.frame().await {
        let frame =
            frame.map_err(|_| Wrong::new(StatusCode::BAD_REQUEST, "the body ended early"))?;
        // Trailers say nothing here.
        if let Ok(data) = frame.into_data() {
            body = body.with(data);
            if body.len() > most {
                progress.leave_unread();
                progress.deciding();
                return too_long.answer(peer, head, most);
            }
        }
    }
    progress.deciding();
    Ok(Call { peer, head, body: body.whole() })
}

/// What becomes of a body that is too long.
#[derive(Clone, Copy)]
enum TooLong {
    /// It is a mistake.
    Wrong,
    /// It is somebody else's, and not looked into.
    Ignored,
}

impl TooLong {
    fn answer(self, peer: SocketAddr, head: request::Parts, most: usize) -> Result<Call, Wrong> {
        match self {
            Self::Ignored => Ok(Call { peer, head, body: Bytes::new() }),
            Self::Wrong => {
                let detail = format!("a body has at most {} KiB", most / 1024);
                Err(Wrong::new(StatusCode::PAYLOAD_TOO_LARGE, detail))
            }
        }
    }
}

impl Call {
    /// The body as JSON; if it is not what it should be, the field is named.
    pub(crate) fn json<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Wrong> {
        plain(&self.head.headers)?;
        body::read(&self.body)
    }
}

/// A compressed body is not inflated: a few bytes of it can be a gigabyte.
fn plain(headers: &HeaderMap) -> Result<(), Wrong> {
    match headers.get(CONTENT_ENCODING) {
        Some(coding) if !coding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(Wrong::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send the body uncompressed"))
        }
        _ => Ok(()),
    }
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, body: &impl Serialize) -> Answered {
    // What we answer with is always JSON; long enough for most.
    let mut text = Vec::with_capacity(256);
    serde_json::to_writer(&mut text, body)
        .map_err(|error| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    let mut response = Response::new(Either::Left(Full::from(text)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// An answer in plain text.
pub(crate) fn text(
    status: StatusCode,
    content_type: &'static str,
    body: impl Into<Bytes>,
) -> Answered {
    let mut response = Response::new(Either::Left(Full::new(body.into())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    Ok(response)
}
