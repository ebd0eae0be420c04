//! What those hear who are not served.

mod grpc;
mod problem;

use std::time::Duration;

use bytes::Bytes;
use dashpot::{Decision, PolicyStatus};
use dashpot_rules::{Headers, OnDeny, Refusal, Rule, RuleSet, Ruling};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Response, StatusCode};

use crate::{RetryAfter, Wait, headers};
use grpc::GrpcStatus;
use problem::Problem;

/// The answer to a request that is not served. `request` are its headers.
#[must_use]
pub fn refuse(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    request: &HeaderMap,
) -> Response<Bytes> {
    refusing(refusal, ruling, rules, request, is_for_now)
}

/// The same for a gateway that asks about a request, and takes a 5xx for a failure: who is denied for now hears what everybody does.
#[must_use]
pub fn refuse_elsewhere(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    request: &HeaderMap,
) -> Response<Bytes> {
    refusing(refusal, ruling, rules, request, |_, _| false)
}

fn refusing(
    refusal: Refusal<'_>,
    ruling: &Ruling<'_>,
    rules: &RuleSet,
    request: &HeaderMap,
    is_for_now: impl FnOnce(&Rule, &Decision<'_>) -> bool,
) -> Response<Bytes> {
    let is_grpc = is_grpc(request);
    let mut response = match (refusal, ruling.decision()) {
        (Refusal::Limited(rule), Some(decision)) => {
            let wait = Wait::of(decision, rules.headers().jitter);
            if is_for_now(rule, decision) {
                reduced(decision, &wait, rules.headers(), rule, is_grpc)
            } else {
                denied(decision, &wait, rules.headers(), rule.on_deny(), is_grpc)
            }
        }
        (Refusal::Blocked(_), _) => blocked(is_grpc),
        (Refusal::Absent(rule), _) => absent(rule.on_deny(), is_grpc),
        // Nothing is limited without a decision.
        (Refusal::Unavailable(_) | Refusal::Limited(_), _) => unavailable(is_grpc),
    };
    headers::expose_if_asked(rules, request, response.headers_mut());
    response
}

/// Whether who asks speaks gRPC.
fn is_grpc(request: &HeaderMap) -> bool {
    let kind = request.get(CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// The answer to a request that was denied: 429, or what the rule says instead.
///
/// Those who speak gRPC get `RESOURCE_EXHAUSTED` in the form that they understand, whatever the rule
/// says: they read neither bodies nor redirects.
#[must_use]
pub fn denied(
    decision: &Decision<'_>,
    wait: &Wait,
    config: &Headers,
    on_deny: Option<&OnDeny>,
    grpc: bool,
) -> Response<Bytes> {
    let message = message(wait);
    let mut response = match on_deny {
        _ if grpc => grpc::response(GrpcStatus::ResourceExhausted, &message, Pushback::of(wait)),
        Some(on_deny) => on_deny_response(on_deny, StatusCode::TOO_MANY_REQUESTS, |status| {
            quota_exceeded(status, decision, wait, &message)
        }),
        None => quota_exceeded(StatusCode::TOO_MANY_REQUESTS, decision, wait, &message),
    };
    set_retry_after(response.headers_mut(), wait.seconds());
    headers::describe(decision, wait, config, response.headers_mut());
    response
}

/// Whether it is not the caller that has had too much, but the service that cannot give more for now: it is what it can take that is
/// used up, or all limits that were reached are lower than they usually are.
fn is_for_now(rule: &Rule, decision: &Decision<'_>) -> bool {
    let is_reduced = |status: &PolicyStatus<'_>| status.policy().percent() < 100;
    !decision.is_never() && (rule.is_about_the_service() || decision.denied().all(is_reduced))
}

/// The answer to a request that was denied by a limit that is lower for now: 503, or what the rule says instead.
fn reduced(
    decision: &Decision<'_>,
    wait: &Wait,
    config: &Headers,
    rule: &Rule,
    grpc: bool,
) -> Response<Bytes> {
    // A permit may be free any moment; what only the whole limit lets pass has no wait that is known to help.
    let is_permit = |status: &PolicyStatus<'_>| {
        status.policy().quota().is_concurrent() && rule.cost().units() <= status.limit()
    };
    let seconds = match decision.denied().any(is_permit) {
        true => Some(wait.seconds_or_soon()),
        false => wait.seconds(),
    };
    let mut response = overloaded(seconds, rule.on_deny(), Some(decision), grpc);
    headers::describe(decision, wait, config, response.headers_mut());
    response
}

/// The answer to a request for which there is no room, by a rule with `capacity`: 503, or what the rule says instead. `request` are its
/// headers.
#[must_use]
pub fn shed(rule: Option<&Rule>, rules: &RuleSet, request: &HeaderMap) -> Response<Bytes> {
    let seconds = Some(Wait::soon(rules.headers().jitter).seconds_or_soon());
    let on_deny = rule.and_then(Rule::on_deny);
    let mut response = overloaded(seconds, on_deny, None, is_grpc(request));
    headers::expose_if_asked(rules, request, response.headers_mut());
    response
}

/// To be tried again in so many seconds, if that is known.
fn overloaded(
    seconds: Option<u64>,
    on_deny: Option<&OnDeny>,
    violated: Option<&Decision<'_>>,
    grpc: bool,
) -> Response<Bytes> {
    let when = match seconds {
        Some(seconds) => format!("Retry after {}.", plural(seconds)),
        None => "Try again later.".to_owned(),
    };
    let message = format!("There is no capacity for this request now. {when}");
    let usual = |status| reduced_capacity(status, &message, "overloaded", violated, seconds);
    let mut response = match on_deny {
        _ if grpc => {
            let pushback = seconds.map(Pushback::Seconds);
            grpc::response(GrpcStatus::Unavailable, &message, pushback)
        }
        Some(on_deny) => on_deny_response(on_deny, StatusCode::SERVICE_UNAVAILABLE, usual),
        None => usual(StatusCode::SERVICE_UNAVAILABLE),
    };
    set_retry_after(response.headers_mut(), seconds);
    response
}

fn reduced_capacity(
    status: StatusCode,
    message: &str,
    error: &'static str,
    violated: Option<&Decision<'_>>,
    seconds: Option<u64>,
) -> Response<Bytes> {
    let problem = Problem {
        kind: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity",
        title: "Request cannot be satisfied due to temporary server capacity constraints",
        status,
        message,
        violated,
        error,
        retry_after: seconds,
    };
    problem.response()
}

/// The answer to somebody who is blocked: 403.
#[must_use]
pub fn blocked(grpc: bool) -> Response<Bytes> {
    let message = "This caller is blocked.";
    if grpc {
        return grpc::response(GrpcStatus::PermissionDenied, message, Some(Pushback::Never));
    }
    forbidden(StatusCode::FORBIDDEN, message)
}

/// The answer to a request that does not say what a rule insists on: 403, or what the rule says
/// instead.
#[must_use]
pub fn absent(on_deny: Option<&OnDeny>, grpc: bool) -> Response<Bytes> {
    let message = "This request does not say who it is from.";
    match on_deny {
        _ if grpc => grpc::response(GrpcStatus::PermissionDenied, message, Some(Pushback::Never)),
        Some(on_deny) => {
            on_deny_response(on_deny, StatusCode::FORBIDDEN, |status| forbidden(status, message))
        }
        None => forbidden(StatusCode::FORBIDDEN, message),
    }
}

fn forbidden(status: StatusCode, message: &str) -> Response<Bytes> {
    let problem = Problem {
        kind: "about:blank",
        title: "Forbidden",
        status,
        message,
        violated: None,
        error: "forbidden",
        retry_after: None,
    };
    problem.response()
}

/// The answer if nobody can tell whether to serve: 503, to be tried again in a second.
#[must_use]
pub fn unavailable(grpc: bool) -> Response<Bytes> {
    let message = "The rate limiter is unavailable. Retry after 1 second.";
    let mut response = if grpc {
        grpc::response(GrpcStatus::Unavailable, message, Some(Pushback::Seconds(1)))
    } else {
        reduced_capacity(StatusCode::SERVICE_UNAVAILABLE, message, "unavailable", None, Some(1))
    };
    set_retry_after(response.headers_mut(), Some(1));
    response
}

/// When a gRPC client may try again.
#[derive(Clone, Copy)]
enum Pushback {
    Seconds(u64),
    Never,
}

impl Pushback {
    fn of(wait: &Wait) -> Option<Self> {
        match wait.seconds() {
            Some(seconds) => Some(Self::Seconds(seconds)),
            None if wait.is_never() => Some(Self::Never),
            None => None,
        }
    }
}

/// In plain ASCII, because it also goes into headers.
fn message(wait: &Wait) -> String {
    match wait.seconds() {
        Some(seconds) => format!("Too many requests. Retry after {}.", plural(seconds)),
        None if wait.is_never() => "This request can never be granted.".to_owned(),
        None => "Too many requests. Try again later.".to_owned(),
    }
}

fn plural(seconds: u64) -> String {
    if seconds == 1 { "1 second".to_owned() } else { format!("{seconds} seconds") }
}

fn quota_exceeded(
    status: StatusCode,
    decision: &Decision<'_>,
    wait: &Wait,
    message: &str,
) -> Response<Bytes> {
    let problem = Problem {
        kind: "https://iana.org/assignments/http-problem-types#quota-exceeded",
        title: "Request cannot be satisfied as assigned quota has been exceeded",
        status,
        message,
        violated: Some(decision),
        error: "rate_limited",
        retry_after: wait.seconds(),
    };
    problem.response()
}

/// What the rule says. What it says wrongly is as if it had not said it; rules are checked when
/// they are loaded.
fn on_deny_response(
    on_deny: &OnDeny,
    usual: StatusCode,
    usual_response: impl FnOnce(StatusCode) -> Response<Bytes>,
) -> Response<Bytes> {
    let location = on_deny.redirect.as_ref().and_then(|to| HeaderValue::from_str(to).ok());
    let usual = if location.is_some() { StatusCode::SEE_OTHER } else { usual };
    let status = on_deny.status.and_then(|code| StatusCode::from_u16(code).ok()).unwrap_or(usual);
    let mut response = match &on_deny.body {
        Some(body) => {
            let written = on_deny.content_type.as_ref();
            let content_type = written.and_then(|written| HeaderValue::from_str(written).ok());
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            respond(status, Some(content_type.unwrap_or(plain)), body.clone().into())
        }
        None if location.is_some() => respond(status, None, Bytes::new()),
        None => usual_response(status),
    };
    if let Some(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// An answer that no cache keeps: it is about one caller at one moment.
fn respond(status: StatusCode, content_type: Option<HeaderValue>, body: Bytes) -> Response<Bytes> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(content_type) = content_type {
        response.headers_mut().insert(CONTENT_TYPE, content_type);
    }
    response
}

fn set_retry_after(headers: &mut HeaderMap, seconds: Option<u64>) {
    if let Some(seconds) = seconds {
        let wait = Duration::from_secs(seconds);
        headers.insert(RETRY_AFTER, RetryAfter::new(wait).to_value());
    }
}

#[cfg(test)]
mod tests;
