//! gRPC: one method by hand, all others by their libraries.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use prost::Message;
use tokio::time::timeout;
use tonic::Status;

use super::Fault;
use super::message::{Code, RateLimitRequest};
use crate::serve::api::BODY_MAX;
use crate::serve::received::Received;
use crate::serve::service::Service;

/// The method that asks.
const SHOULD_RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";

/// What comes before a message: whether it is compressed, and how long it is.
const PREFIX: usize = 5;

/// How long a message may take to come in.
const PATIENCE: Duration = Duration::from_secs(10);

const GRPC: HeaderValue = HeaderValue::from_static("application/grpc");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// What is answered with.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A message, and that all is well; or nothing, if it was told in the head.
    Whole { message: Option<Bytes>, trailers: Option<HeaderMap> },
    /// What a library says.
    Other(tonic::body::Body),
}

impl Default for Answer {
    fn default() -> Self {
        Self::Whole { message: None, trailers: None }
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
        match self.get_mut() {
            Self::Whole { message, trailers } => {
                let frame = message.take().map(Frame::data);
                let frame = frame.or_else(|| trailers.take().map(Frame::trailers));
                Poll::Ready(frame.map(Ok))
            }
            Self::Other(body) => Pin::new(body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole { message, trailers } => message.is_none() && trailers.is_none(),
            Self::Other(body) => body.is_end_stream(),
        }
    }
}

/// What a request is, of which no more is kept than is needed: futures are moved about, and requests are long.
pub(crate) enum Asked {
    /// The one that counts, and its message.
    Decide(Incoming),
    /// For a library.
    Other(Box<Request<Incoming>>),
    /// It is not gRPC.
    Wrong(StatusCode),
}

impl Asked {
    pub(crate) fn of(request: Request<Incoming>) -> Self {
        if request.uri().path() != SHOULD_RATE_LIMIT {
            return Self::Other(Box::new(request));
        }
        if request.method() != Method::POST {
            return Self::Wrong(StatusCode::METHOD_NOT_ALLOWED);
        }
        let is_grpc = |value: &HeaderValue| value.as_bytes().starts_with(b"application/grpc");
        if !request.headers().get(CONTENT_TYPE).is_some_and(is_grpc) {
            return Self::Wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        }
        Self::Decide(request.into_body())
    }
}

/// Answers a request. Tells how it went, in words of HTTP, if it is one of those that are counted.
pub(crate) async fn answer(
    service: &Service,
    asked: Asked,
) -> (Option<StatusCode>, Response<Answer>) {
    match asked {
        Asked::Other(request) => {
            let Ok(response) = service.grpc.call(*request).await;
            (None, response.map(Answer::Other))
        }
        Asked::Wrong(status) => {
            let mut response = Response::new(Answer::default());
            *response.status_mut() = status;
            (Some(status), response)
        }
        // By hand, because with tonic's `Grpc::unary` a server did a tenth less.
        Asked::Decide(body) => match unary(service, body).await {
            Ok((status, response)) => (Some(status), response),
            Err(Wrong(status, told)) => {
                let mut response = told.into_http();
                let identity = HeaderValue::from_static("identity");
                response.headers_mut().insert(ACCEPT_ENCODING, identity);
                (Some(status), response)
            }
        },
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

async fn unary(service: &Service, body: Incoming) -> Result<(StatusCode, Response<Answer>), Wrong> {
    let question = RateLimitRequest::decode(receive(body).await?)
        .map_err(|error| Wrong::invalid(format!("not a RateLimitRequest: {error}")))?;
    let answer = super::answer(service, &question).await?;
    let is_over = answer.overall_code == Code::OverLimit as i32;
    let status = if is_over { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    let length = answer.encoded_len();
    let mut message = BytesMut::with_capacity(PREFIX + length);
    message.put_u8(0);
    // No answer is that long.
    message.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    answer.encode_raw(&mut message);
    let mut trailers = HeaderMap::with_capacity(1);
    trailers.insert(GRPC_STATUS, HeaderValue::from_static("0"));
    let mut response =
        Response::new(Answer::Whole { message: Some(message.freeze()), trailers: Some(trailers) });
    response.headers_mut().insert(CONTENT_TYPE, GRPC);
    Ok((status, response))
}

/// Reads the one message that there is.
async fn receive(body: Incoming) -> Result<Bytes, Wrong> {
    let too_long = || {
        let detail = format!("a message has at most {} KiB", BODY_MAX / 1024);
        Wrong(StatusCode::PAYLOAD_TOO_LARGE, Box::new(Status::resource_exhausted(detail)))
    };
    let mut reading = pin!(read(body));
    // Mostly it is there already, and no timer is needed.
    let read = match poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await {
        Poll::Ready(read) => read,
        Poll::Pending => Box::pin(timeout(PATIENCE, reading)).await.map_err(|_| {
            let told = Box::new(Status::deadline_exceeded("the message did not come in time"));
            Wrong(StatusCode::REQUEST_TIMEOUT, told)
        })?,
    };
    let mut message = read.map_err(|_| Wrong::invalid("the message ended early"))?;
    if message.len() > PREFIX + BODY_MAX {
        return Err(too_long());
    }
    if message.len() < PREFIX {
        return Err(Wrong::invalid("there is no message"));
    }
    let is_compressed = message.get_u8() != 0;
    let length = message.get_u32();
    if is_compressed {
        let told = Box::new(Status::unimplemented("send the message uncompressed"));
        return Err(Wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, told));
    }
    match usize::try_from(length) {
        Ok(length) if length == message.len() => Ok(message),
        Ok(length) if length > BODY_MAX => Err(too_long()),
        Ok(length) if length > message.len() => Err(Wrong::invalid("the message ended early")),
        _ => Err(Wrong::invalid("there is more than one message")),
    }
}

/// Reads all there is, or enough to see that it is too much.
async fn read(mut body: Incoming) -> Result<Bytes, hyper::Error> {
    let mut received = Received::Nothing;
    while let Some(frame) = body.frame().await {
        // Trailers say nothing here.
        if let Ok(data) = frame?.into_data() {
            received = received.with(data);
            if received.len() > PREFIX + BODY_MAX {
                break;
            }
        }
    }
    Ok(received.whole())
}

/// What never fails.
pub(crate) type Called = Result<Response<tonic::body::Body>, Infallible>;
