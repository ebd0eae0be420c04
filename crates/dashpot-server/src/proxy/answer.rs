//! One request, from its head to the head of its answer.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use dashpot_http::InFlight;
use dashpot_rules::MaxBody;
use http::header::{ALLOW, CONNECTION, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version, request};
use hyper::body::{Body, Incoming};
use tokio::time::Instant;
use tower_layer::Layer;
use tower_service::Service;

use crate::proxy::connection::Caller;
use crate::proxy::download::{ResponseBody, Sent};
use crate::proxy::failure::{Failure, tell};
use crate::proxy::forward::Forward;
use crate::proxy::progress::Progress;
use crate::proxy::upload::{Coming, RequestBody, Upload, Uploading};
use crate::serve::metrics::Door;
use crate::serve::wrong::Wrong;

/// Answers a request: by the backend if the limits let it pass.
pub(crate) async fn answer(
    caller: Arc<Caller>,
    progress: Arc<Progress>,
    request: Request<Incoming>,
) -> Result<Response<Sent>, Infallible> {
    let began = Instant::now();
    progress.is_answering();
    let gateway = caller.gateway();
    let (head, incoming) = request.into_parts();
    let note = gateway.log.as_ref().map(|log| log.note(&head, &caller.origin, &gateway.rules));
    let is_head = head.method == Method::HEAD;
    let upload = (!incoming.is_end_stream()).then(Arc::<Upload>::default);
    let most = match gateway.settings.max_body {
        MaxBody::Bytes(most) => most,
        MaxBody::Unlimited => u64::MAX,
    };
    let mut response = match check(&head) {
        Err(wrong) => refuse(&wrong),
        Ok(()) if incoming.size_hint().lower() > most => Failure::TooLong.respond(),
        Ok(()) => {
            let body = match &upload {
                None => RequestBody::EMPTY,
                Some(upload) => {
                    let patience = gateway.settings.patience.client;
                    let coming = Coming::new(incoming, most, patience, upload.clone());
                    RequestBody::Coming(Box::new(coming))
                }
            };
            let forward = Forward {
                caller: caller.clone(),
                upload: upload.clone(),
                progress: progress.clone(),
            };
            let mut limited = gateway.layer.layer(forward).connected_by(caller.origin.peer.ip());
            let Ok(response) = limited.call(Request::from_parts(head, body)).await;
            response
        }
    };
    let is_unread = upload.is_some_and(|upload| upload.now() != Uploading::Ended);
    caller.left_unread.store(is_unread, Ordering::Relaxed);
    if let Some(held) = response.extensions_mut().remove::<InFlight>() {
        caller.hold(held);
    }
    let (status, now) = (response.status(), Instant::now());
    if let Some(answered) = caller.worker.service.answered.get(caller.worker.number) {
        answered.count(Door::Proxy, status, now.duration_since(began));
    }
    let ended = note.map(|note| {
        Box::new(move |bytes| note.write(status, bytes)) as Box<dyn FnOnce(u64) + Send>
    });
    // To HEAD, no body is sent, whatever it is.
    if is_head || response.body().is_end_stream() {
        progress.has_ended(now);
    } else {
        progress.is_sending(now);
    }
    Ok(response.map(|body| Sent::new(body, progress, !caller.is_multiplexed, ended)))
}

/// A request that can be read in two ways is not passed on, and nothing that comes after it by the same connection is.
fn refuse(wrong: &Wrong) -> Response<ResponseBody> {
    let mut response = tell(wrong);
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

/// Whether it says what it is about, once.
fn check(head: &request::Parts) -> Result<(), Wrong> {
    if head.method == Method::CONNECT {
        let wrong = Wrong::new(StatusCode::METHOD_NOT_ALLOWED, "this is no proxy for other hosts");
        return Err(wrong.with(
            ALLOW,
            HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"),
        ));
    }
    let wrong = |what: &str| Err(Wrong::new(StatusCode::BAD_REQUEST, what));
    let path = head.uri.path();
    let is_whole_server = path == "*" && head.method == Method::OPTIONS;
    // A word alone is read as a host, and has no path.
    let has_lost_its_path = head.uri.authority().is_some() && head.uri.scheme().is_none();
    if has_lost_its_path || !(path.starts_with('/') || is_whole_server) {
        return wrong("the target is neither a path nor a URL");
    }
    let mut hosts = head.headers.get_all(HOST).into_iter();
    let (host, another) = (hosts.next(), hosts.next());
    if another.is_some() {
        return wrong("there is more than one Host");
    }
    if let Some(authority) = head.uri.authority() {
        if authority.as_str().contains('@') || !is_host(authority.as_str().as_bytes()) {
            return wrong("what the request is addressed to is not a host");
        }
        // HTTP/1 says that the target counts, HTTP/2 that they have to agree.
        let agrees = |host: &HeaderValue| {
            host.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())
        };
        if head.version == Version::HTTP_2 && !host.is_none_or(agrees) {
            return wrong("Host is not what :authority says");
        }
        return if host.is_none_or(|host| is_host(host.as_bytes())) {
            Ok(())
        } else {
            wrong("Host is not a host")
        };
    }
    match host {
        Some(host) if is_host(host.as_bytes()) => Ok(()),
        Some(_) => wrong("Host is not a host"),
        None if head.version == Version::HTTP_10 => Ok(()),
        None => wrong("there is no Host"),
    }
}

/// Whether it is a host and perhaps a port.
fn is_host(host: &[u8]) -> bool {
    let (name, port) = match host.strip_prefix(b"[") {
        Some(rest) => match rest.iter().position(|byte| *byte == b']') {
            Some(end) => {
                let (address, after) = rest.split_at(end);
                let is_address = |byte: &u8| byte.is_ascii_hexdigit() || b":.".contains(byte);
                if address.is_empty() || !address.iter().all(is_address) {
                    return false;
                }
                (address, after.strip_prefix(b"]").unwrap_or_default())
            }
            None => return false,
        },
        None => {
            let end = host.iter().position(|byte| *byte == b':').unwrap_or(host.len());
            let (name, port) = host.split_at(end);
            let is_plain =
                |byte: &u8| byte.is_ascii_alphanumeric() || b".-_~%!$&'()*+;=".contains(byte);
            if !name.iter().all(is_plain) {
                return false;
            }
            (name, port)
        }
    };
    let is_port = match port.strip_prefix(b":") {
        Some(digits) => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        None => port.is_empty(),
    };
    !name.is_empty() && is_port
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_told_from_what_is_none() {
        for host in ["a", "a.example", "a:80", "a:", "127.0.0.1:8000", "[::1]", "[::1]:80", "a_b"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            ":",
            ":80",
            "a:b",
            "a:80:80",
            "a:123456",
            "[::1",
            "::1",
            "[]",
            "[x]",
            "[::1]80",
            "a b",
            "a/b",
            "u@a",
            "a\tb",
            "[::1]:80:80",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
