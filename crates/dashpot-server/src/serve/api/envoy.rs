//! `POST /json` and `GET /healthcheck`: envoyproxy/ratelimit's ways in over HTTP.

use http::header::{CACHE_CONTROL, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Method, StatusCode};

use super::openapi::{self, Documented};
use super::{Answered, Call, Route, json, text};
use crate::serve::envoy::{self, Code, Fault, RateLimitRequest, json as mapping};
use crate::serve::metrics::Door;
use crate::serve::service::Shared;
use crate::serve::wrong::Wrong;

pub(crate) const JSON: Route = Route {
    method: Method::POST,
    path: "/json",
    door: Door::Envoy,
    handle: |service, call| Box::pin(answer(service, call)),
    documented: || {
        Documented::new("May it? As envoyproxy/ratelimit is asked")
            .takes::<mapping::Call>()
            .gives::<mapping::Told<'_>>(200, "Allowed")
            .gives::<mapping::Told<'_>>(429, "Denied")
            .wrong(503, "The store does not answer, and nothing is let pass without it")
            .with(openapi::limited())
    },
};

pub(crate) const HEALTHCHECK: Route = Route {
    method: Method::GET,
    path: "/healthcheck",
    door: Door::Other,
    handle: |service, _| Box::pin(async move { health(service) }),
    documented: || {
        Documented::new("Whether to send it requests, as envoyproxy/ratelimit tells it")
            .gives_text(200, "Do", PLAIN)
            .gives_text(500, "It is about to stop", PLAIN)
    },
};

const PLAIN: &str = "text/plain; charset=utf-8";

fn health(service: &Shared) -> Answered {
    if service.is_stopping() {
        return text(StatusCode::INTERNAL_SERVER_ERROR, PLAIN, "");
    }
    text(StatusCode::OK, PLAIN, "OK")
}

async fn answer(service: &Shared, call: &Call) -> Answered {
    let asked: mapping::Call = call.json()?;
    let request = RateLimitRequest::from(asked);
    let answer = envoy::answer(service, &request).await.map_err(wrong)?;
    let is_over = answer.overall_code == Code::OverLimit as i32;
    let status = if is_over { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::OK };
    let mut response = json(status, &mapping::Told::from(&answer))?;
    // What Envoy would tell its caller, this one can read at once.
    for header in &answer.response_headers_to_add {
        if let (Ok(name), Ok(value)) =
            (HeaderName::try_from(&header.key), HeaderValue::try_from(&header.value))
        {
            response.headers_mut().append(name, value);
        }
    }
    if is_over {
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

fn wrong(fault: Fault) -> Wrong {
    match fault {
        Fault::Invalid { field, detail } => Wrong::field(field, detail),
        Fault::Unavailable(detail) => Wrong::new(StatusCode::SERVICE_UNAVAILABLE, detail)
            .with(RETRY_AFTER, HeaderValue::from_static("1")),
    }
}
