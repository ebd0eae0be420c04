//! What those hear whose question is wrong.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use schemars::JsonSchema;
use serde::Serialize;

/// A question that cannot be answered as it was asked.
#[derive(Debug)]
pub(crate) struct Wrong(Box<Inner>);

#[derive(Debug)]
struct Inner {
    status: StatusCode,
    field: Option<String>,
    detail: String,
    header: Option<(HeaderName, HeaderValue)>,
}

/// Problem details as in RFC 9457.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Problem<'a> {
    r#type: &'static str,
    title: &'a str,
    status: u16,
    /// What is wrong, and what would be right.
    detail: &'a str,
    /// The field it is about, as in `checks[1].limit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
}

impl Wrong {
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self(Box::new(Inner { status, field: None, detail: detail.into(), header: None }))
    }

    /// 400, because of this field.
    pub(crate) fn field(field: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut wrong = Self::new(StatusCode::BAD_REQUEST, detail);
        wrong.0.field = Some(field.into());
        wrong
    }

    /// With one more header.
    pub(crate) fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.0.header = Some((name, value));
        self
    }

    pub(crate) fn respond(&self) -> Response<Full<Bytes>> {
        self.tell().map(Full::new)
    }

    /// The answer, with its body as it is.
    pub(crate) fn tell(&self) -> Response<Bytes> {
        let Inner { status, field, detail, header } = &*self.0;
        let problem = Problem {
            r#type: "about:blank",
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail,
            field: field.as_deref(),
        };
        // Texts and a number are always JSON.
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let mut response = Response::new(Bytes::from(body));
        *response.status_mut() = *status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some((name, value)) = header {
            headers.insert(name, value.clone());
        }
        response
    }
}
