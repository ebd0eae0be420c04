//! Answers for gRPC: a response of headers only, as its protocol says.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};

use super::{Pushback, respond};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const PUSHBACK: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

#[derive(Clone, Copy)]
pub(super) enum GrpcStatus {
    PermissionDenied,
    ResourceExhausted,
    Unavailable,
}

impl GrpcStatus {
    const fn code(self) -> &'static str {
        match self {
            Self::PermissionDenied => "7",
            Self::ResourceExhausted => "8",
            Self::Unavailable => "14",
        }
    }
}

/// HTTP says that all is well, gRPC says what is not.
pub(super) fn response(
    status: GrpcStatus,
    message: &str,
    pushback: Option<Pushback>,
) -> Response<Bytes> {
    let content_type = HeaderValue::from_static("application/grpc");
    let mut response = respond(StatusCode::OK, Some(content_type), Bytes::new());
    let headers = response.headers_mut();
    headers.insert(STATUS, HeaderValue::from_static(status.code()));
    if let Ok(message) = HeaderValue::from_str(&percent_encoded(message)) {
        headers.insert(MESSAGE, message);
    }
    match pushback {
        Some(Pushback::Seconds(seconds)) => {
            headers.insert(PUSHBACK, HeaderValue::from(seconds.saturating_mul(1000)));
        }
        Some(Pushback::Never) => {
            headers.insert(PUSHBACK, HeaderValue::from_static("-1"));
        }
        None => {}
    }
    response
}

/// As `grpc-message` wants it: what is not printable ASCII, and the percent sign, as `%XX`.
fn percent_encoded(message: &str) -> String {
    let mut encoded = String::with_capacity(message.len());
    for byte in message.bytes() {
        match byte {
            b'%' | ..b' ' | 0x7f.. => encoded.push_str(&format!("%{byte:02X}")),
            plain => encoded.push(char::from(plain)),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(percent_encoded("100 % é\n."), "100 %25 %C3%A9%0A.");
    }
}
