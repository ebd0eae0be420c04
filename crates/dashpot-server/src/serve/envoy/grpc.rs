//! gRPC: one method by hand, all others by their libraries.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use prost::Message;
use tokio::time::timeout;
use tonic::Status;

use super::Fault;
use super::frame::{FrameError, PREFIX, pack, unpack};
use super::message::{Code, RateLimitRequest, RateLimitResponse};
use crate::serve::api::BODY_MAX;
use crate::serve::received::Received;
use crate::serve::service::Service;
use crate::serve::streams::Coming;

/// The method that asks.
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// How long a message may take to come in.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// What is answered with.
pub(crate) enum Answer {
    /// A message, and that all is well.
    Whole { message: Bytes, trailers: HeaderMap },
    /// Nothing: all was told in the head.
    Empty,
    /// What a library says.
    Other(tonic::body::Body),
}

/// The method that tells of changes, and so may be quiet for long.
const WATCH: &str = "/grpc.health.v1.Health/Watch";

/// What is called, of which no more is kept than is needed: it is moved about, and requests are long.
pub(crate) enum GrpcCall {
    /// The one that counts, as far as its message has been read.
    Decide(Reading),
    /// The same, read, and nobody can say at once.
    Question(RateLimitRequest),
    /// For a library.
    Other(Box<Request<Coming>>),
    /// It is not gRPC.
    Wrong(StatusCode),
}

/// How it went, in words of HTTP, if it is one of those that are counted; and the answer.
pub(crate) type Answered = (Option<StatusCode>, Response<Answer>);

impl GrpcCall {
    pub(crate) fn of(request: Request<RecvStream>) -> Self {
        if request.uri().path() != SHOULD_RATE_LIMIT {
            return Self::Other(Box::new(request.map(Coming)));
        }
        if request.method() != Method::POST {
            return Self::Wrong(StatusCode::METHOD_NOT_ALLOWED);
        }
        let is_grpc = |value: &HeaderValue| value.as_bytes().starts_with(b"application/grpc");
        if !request.headers().get(CONTENT_TYPE).is_some_and(is_grpc) {
            return Self::Wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        Self::Decide(Reading { body: request.into_body(), received: Received::Nothing })
    }

    /// Answers at once, if nothing is to be waited for. By hand, because with tonic's `Grpc::unary` a server did a tenth
    /// less.
    pub(crate) fn answer_now(
        &mut self,
        service: &Service,
        context: &mut Context<'_>,
    ) -> Option<Answered> {
        match self {
            Self::Wrong(status) => {
                let mut response = Response::new(Answer::Empty);
                *response.status_mut() = *status;
                Some((Some(*status), response))
            }
            Self::Decide(reading) => {
                let Poll::Ready(read) = reading.poll(context) else { return None };
                let question = match read.and_then(decode) {
                    Ok(question) => question,
                    Err(wrong) => return Some(wrong.answer()),
                };
                let answer = super::answer_now(service, &question);
                if answer.is_none() {
                    *self = Self::Question(question);
                }
                Some(respond(answer?))
            }
            Self::Question(_) | Self::Other(_) => None,
        }
    }

    /// Whether it listens for changes, which may take long to come.
    pub(crate) fn is_watch(&self) -> bool {
        matches!(self, Self::Other(request) if request.uri().path() == WATCH)
    }

    /// Answers what is to be waited for.
    pub(crate) async fn answer(mut self, service: &Service) -> Answered {
        if let Self::Decide(reading) = &mut self {
            let read = timeout(PATIENCE, poll_fn(|context| reading.poll(context))).await;
            let question = read.map_err(|_| late()).flatten().and_then(decode);
            self = match question {
                Ok(question) => Self::Question(question),
                Err(wrong) => return wrong.answer(),
            };
        }
        match self {
            Self::Question(question) => respond(super::answer_in_time(service, &question).await),
            Self::Other(request) => match timeout(PATIENCE, service.grpc.call(*request)).await {
                Ok(Ok(response)) => (None, response.map(Answer::Other)),
                Err(_) => {
                    let (_, response) = late().answer();
                    (None, response)
                }
            },
            // Those need not be waited for.
            Self::Wrong(_) | Self::Decide(_) => {
                let told = Status::internal("there is no answer");
                Wrong(StatusCode::INTERNAL_SERVER_ERROR, Box::new(told)).answer()
            }
        }
    }
}

/// Why there is no answer, and what that is in words of HTTP.
struct Wrong(StatusCode, Box<Status>);

impl Wrong {
    fn invalid(detail: impl Into<String>) -> Self {
        Self(StatusCode::BAD_REQUEST, Box::new(Status::invalid_argument(detail)))
    }
}

impl From<Fault> for Wrong {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Invalid { field, detail } => Self::invalid(format!("{field}: {detail}")),
            Fault::Unavailable(detail) => {
                Self(StatusCode::SERVICE_UNAVAILABLE, Box::new(Status::unavailable(detail)))
            }
        }
    }
}

impl From<FrameError> for Wrong {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Nothing => Self::invalid("there is no message"),
            FrameError::Compressed => {
                let told = Box::new(Status::unimplemented("send the message uncompressed"));
                Self(StatusCode::UNSUPPORTED_MEDIA_TYPE, told)
            }
            FrameError::TooLong => too_long(),
            FrameError::Early => Self::invalid("the message ended early"),
            FrameError::Several => Self::invalid("there is more than one message"),
        }
    }
}

impl Wrong {
    fn answer(self) -> Answered {
        let Self(status, told) = self;
        let mut response = told.into_http::<()>().map(|()| Answer::Empty);
        response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        (Some(status), response)
    }
}

fn decode(message: Bytes) -> Result<RateLimitRequest, Wrong> {
    RateLimitRequest::decode(message)
        .map_err(|error| Wrong::invalid(format!("not a RateLimitRequest: {error}")))
}

fn respond(answer: Result<RateLimitResponse, Fault>) -> Answered {
    let answer = match answer {
        Ok(answer) => answer,
        Err(fault) => return Wrong::from(fault).answer(),
    };
    let is_over = answer.overall_code == Code::OverLimit as i32;
    let status = if is_over { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    let mut response = Response::new(Answer::Whole { message: pack(&answer), trailers });
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    (Some(status), response)
}

/// A message on its way in.
pub(crate) struct Reading {
    body: RecvStream,
    received: Received,
}

impl Reading {
    /// The one message there is.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, Wrong>> {
        while let Some(data) = ready!(self.body.poll_data(context)) {
            let data = data.and_then(|data| {
                self.body.flow_control().release_capacity(data.len())?;
                Ok(data)
            });
            let Ok(data) = data else {
                return Poll::Ready(Err(Wrong::invalid("the message ended early")));
            };
            self.received = mem::replace(&mut self.received, Received::Nothing).with(data);
            if self.received.len() > PREFIX + BODY_MAX {
                return Poll::Ready(Err(too_long()));
            }
        }
        let body = mem::replace(&mut self.received, Received::Nothing).whole();
        Poll::Ready(unpack(body, BODY_MAX).map_err(Wrong::from))
    }
}

fn late() -> Wrong {
    let told = Box::new(Status::deadline_exceeded("the message did not come in time"));
    Wrong(StatusCode::REQUEST_TIMEOUT, told)
}

fn too_long() -> Wrong {
    let detail = format!("a message has at most {} KiB", BODY_MAX / 1024);
    Wrong(StatusCode::PAYLOAD_TOO_LARGE, Box::new(Status::resource_exhausted(detail)))
}

/// What never fails.
pub(crate) type Called = Result<Response<tonic::body::Body>, Infallible>;
