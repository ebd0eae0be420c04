//! `/v1/forward-auth`: a gateway asks about a request.

use std::borrow::Cow;

use bytes::Bytes;
use dashpot::Cost;
use dashpot_http::{HttpDescriptor, Peer, Wait, denial, headers};
use dashpot_rules::{Pending, Trust};
use http::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{Either, Full};
use serde_json::{Value, json as value};

use super::check::has_rules;
use super::{Answered, Call};
use crate::serve::service::Shared;
use crate::serve::wrong::Wrong;

pub(crate) const PATH: &str = "/v1/forward-auth";

pub(crate) async fn answer(service: &Shared, call: &Call) -> Answered {
    // After the path it is the query of the request that is asked about.
    let is_ours = call.head.uri.path() == PATH;
    let deny = deny_status(call.head.uri.query().filter(|_| is_ours))?;
    let rules = service.rules.current();
    has_rules(&rules).map_err(|detail| Wrong::new(StatusCode::BAD_REQUEST, detail))?;
    let identity = rules.identity();
    let trust = if identity.trust == Trust::Nobody { &service.loopback } else { &identity.trust };
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer(call.peer));
    if !HttpDescriptor::new(&rules, &request, None).trusting(trust).is_trusted() {
        return Err(untrusted(call));
    }
    let original = original(call)?;
    *request.method_mut() = original.method;
    *request.uri_mut() = original.uri;
    request.headers_mut().clone_from(&call.head.headers);
    if let Some(host) = original.host {
        request.headers_mut().insert(HOST, host);
    }
    let body = Some(&call.body).filter(|body| !body.is_empty());
    let descriptor = HttpDescriptor::new(&rules, &request, body).trusting(trust);
    let plan = rules.select(&descriptor).plan(&descriptor);
    let mut ruling = service.decide(&plan).await;
    // Nobody will say when the request is over.
    for Pending { reservation, local, .. } in ruling.take_pending() {
        if !reservation.is_permit() {
            continue;
        }
        // What fails now, the store tries again itself.
        let _ = service.settle(&reservation, local, Cost::PEEK).await;
    }
    let response = match ruling.refusal() {
        Some(refusal) => {
            service.note_denied(&plan, &ruling);
            // The gateway asks, and it does not speak gRPC, whose denials are a 200.
            request.headers_mut().remove(CONTENT_TYPE);
            let response = denial::refuse_elsewhere(refusal, &ruling, &rules, request.headers());
            denied_with(response, deny).map(Full::from)
        }
        None => {
            let mut response = Response::new(Full::from(Bytes::new()));
            if let Some(decision) = ruling.decision() {
                let wait = Wait::of(decision, std::time::Duration::ZERO);
                headers::describe(decision, &wait, rules.headers(), response.headers_mut());
                // A queue holds the request; and the gateway holds it while it waits for us.
                if !decision.delay().is_zero() {
                    tokio::time::sleep(decision.delay()).await;
                }
            }
            response
        }
    };
    Ok(response.map(Either::Left))
}

/// A denial as gateways take it for one: with the status that is wanted, if one is. A 2xx would let the request
/// pass, and so may a 5xx, which is taken for a failure of ours.
fn denied_with(mut response: Response<Bytes>, deny: Option<StatusCode>) -> Response<Bytes> {
    let told = response.status();
    let is_denial = told.is_redirection() || told.is_client_error();
    let usual = if is_denial { told } else { StatusCode::TOO_MANY_REQUESTS };
    let status = deny.unwrap_or(usual);
    if status != told {
        *response.status_mut() = status;
        // The body says it, too, if it is ours.
        if let Ok(Value::Object(mut problem)) = serde_json::from_slice(response.body())
            && problem.contains_key("violated-policies") | problem.contains_key("error")
        {
            problem.insert("status".to_owned(), status.as_u16().into());
            *response.body_mut() = Value::Object(problem).to_string().into();
        }
    }
    response
}

/// The status of denials, if another is asked for.
fn deny_status(query: Option<&str>) -> Result<Option<StatusCode>, Wrong> {
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, value)) = pairs.find(|(name, _)| name == "deny") else { return Ok(None) };
    let status = value.parse::<u16>().ok().filter(|code| (400..500).contains(code));
    let status = status.and_then(|code| StatusCode::from_u16(code).ok());
    status.map(Some).ok_or_else(|| Wrong::field("deny", "a status from 400 to 499"))
}

fn untrusted(call: &Call) -> Wrong {
    let peer = call.peer.ip().to_canonical();
    let bits = if peer.is_ipv4() { 32 } else { 128 };
    let detail = format!(
        "{peer} is not a trusted proxy; if it is your gateway, add to the rule file: [identity] trusted_proxies = \
         [\"{peer}/{bits}\"]"
    );
    Wrong::new(StatusCode::BAD_REQUEST, detail)
}

/// The request that is asked about.
struct Original {
    method: Method,
    uri: Uri,
    host: Option<HeaderValue>,
}

/// What one family of headers says of it.
#[derive(Default)]
struct Said<'h> {
    method: Option<&'h HeaderValue>,
    uri: Option<&'h HeaderValue>,
}

impl<'h> Said<'h> {
    fn by(headers: &'h HeaderMap, method: &str, uris: &[&str]) -> Result<Self, Wrong> {
        let mut uri = None;
        for name in uris {
            match (uri, once(headers, name)?) {
                (Some(known), Some(other)) if known != other => return Err(contradiction()),
                (_, Some(found)) => uri = Some(found),
                (_, None) => {}
            }
        }
        Ok(Self { method: once(headers, method)?, uri })
    }

    const fn is_whole(&self) -> bool {
        self.method.is_some() && self.uri.is_some()
    }

    const fn is_nothing(&self) -> bool {
        self.method.is_none() && self.uri.is_none()
    }

    /// Whether it says nothing that the other does not.
    fn agrees(&self, other: &Self) -> bool {
        let same =
            |one: Option<&HeaderValue>, two: Option<&HeaderValue>| one.is_none() || one == two;
        same(self.method, other.method) && same(self.uri, other.uri)
    }
}

/// A header that may be there once.
fn once<'h>(headers: &'h HeaderMap, name: &str) -> Result<Option<&'h HeaderValue>, Wrong> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => Err(Wrong::field(
            name,
            "there twice: have the gateway set it, in the place of what callers send",
        )),
        (first, _) => Ok(first),
    }
}

/// Which request it is about. A caller may have sent some of these headers: if they do not all say the same, the
/// gateway does not keep them from us, and there is no telling which are the gateway's.
fn original(call: &Call) -> Result<Original, Wrong> {
    let headers = &call.head.headers;
    let after = call.head.uri.path().strip_prefix(PATH).unwrap_or_default();
    let forwarded = Said::by(headers, "x-forwarded-method", &["x-forwarded-uri"])?;
    let noted = Said::by(headers, "x-original-method", &["x-original-uri", "x-original-url"])?;
    if !after.is_empty() {
        let query = call.head.uri.query().map(|query| format!("?{query}"));
        let uri = format!("{after}{}", query.unwrap_or_default());
        let method = HeaderValue::from_str(call.head.method.as_str()).ok();
        let as_asked = HeaderValue::from_str(&uri).ok();
        let asked = Said { method: method.as_ref(), uri: as_asked.as_ref() };
        if !forwarded.agrees(&asked) || !noted.agrees(&asked) {
            return Err(contradiction());
        }
        return Ok(Original {
            method: call.head.method.clone(),
            uri: uri.parse().map_err(|_| Wrong::new(StatusCode::BAD_REQUEST, "not a path"))?,
            host: None,
        });
    }
    let said = match (forwarded.is_nothing(), noted.is_nothing()) {
        (true, true) => {
            let detail = "which request is it about? Have the gateway send X-Forwarded-Method and X-Forwarded-Uri, or \
                          X-Original-Method and X-Original-URI";
            return Err(Wrong::new(StatusCode::BAD_REQUEST, detail));
        }
        (false, true) => &forwarded,
        (true, false) => &noted,
        (false, false) if forwarded.is_whole() && noted.agrees(&forwarded) => &forwarded,
        (false, false) if noted.is_whole() && forwarded.agrees(&noted) => &noted,
        (false, false) => return Err(contradiction()),
    };
    let is_forwarded = std::ptr::eq(said, &forwarded);
    let forwarded_host = once(headers, "x-forwarded-host")?;
    // Both are there: whose is the host?
    let both = !forwarded.is_nothing() && !noted.is_nothing();
    if both && forwarded_host.is_some_and(|host| Some(host) != headers.get(HOST)) {
        return Err(contradiction());
    }
    let names = if is_forwarded {
        ("x-forwarded-method", "x-forwarded-uri")
    } else {
        ("x-original-method", "x-original-uri")
    };
    let missing = |name: &str| Wrong::field(name, "missing; have the gateway send it");
    let method = said.method.ok_or_else(|| missing(names.0))?;
    let uri = said.uri.ok_or_else(|| missing(names.1))?;
    let method = Method::from_bytes(method.as_bytes());
    let method = method.map_err(|error| Wrong::field(names.0, error.to_string()))?;
    let uri = uri_of(uri).ok_or_else(|| Wrong::field(names.1, "not a path or a URL"))?;
    let host = forwarded_host.filter(|_| is_forwarded).cloned();
    Ok(Original { method, uri, host })
}

fn contradiction() -> Wrong {
    let detail = "what X-Forwarded-Method, -Uri and -Host, X-Original-Method, -URI and -URL say is not the same: a caller \
                  sent some of them; have the gateway remove those it does not set";
    Wrong::new(StatusCode::BAD_REQUEST, detail)
}

/// A path and query, or a URL; nginx passes paths on as they came.
fn uri_of(value: &HeaderValue) -> Option<Uri> {
    let bytes = value.as_bytes();
    if let Ok(uri) = Uri::try_from(bytes)
        && (bytes.starts_with(b"/") || uri.scheme().is_some())
    {
        return Some(uri);
    }
    // What no URI has in it stands for itself.
    let is_plain = |byte: &u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(byte);
    let escape = |byte: &u8| -> Cow<'static, str> {
        if is_plain(byte) {
            char::from(*byte).to_string().into()
        } else {
            format!("%{byte:02X}").into()
        }
    };
    if !bytes.starts_with(b"/") {
        return None;
    }
    bytes.iter().map(escape).collect::<String>().parse().ok()
}

/// As the OpenAPI document has it: GET stands for all methods.
pub(crate) fn document() -> Value {
    let header = |name: &str, about: &str| value!({ "name": name, "in": "header", "required": false, "description": about, "schema": { "type": "string" } });
    value!({ "get": {
        "summary": "A gateway asks about a request; any method",
        "parameters": [
            { "name": "deny", "in": "query", "required": false, "description": "The status of denials, instead of 429",
              "schema": { "type": "integer", "minimum": 400, "maximum": 499 } },
            header("X-Forwarded-Method", "The request's method"),
            header("X-Forwarded-Uri", "The request's path and query"),
            header("X-Forwarded-Host", "The request's host"),
            header("X-Forwarded-For", "For whom the gateway asks"),
            header("X-Original-Method", "The request's method, as nginx says it"),
            header("X-Original-URI", "The request's path and query, as nginx says it"),
        ],
        "responses": {
            "200": { "description": "Allowed" },
            "4XX": { "description": "Denied: 429, or as asked for. 400: the question is wrong",
                     "content": { "application/problem+json": { "schema": { "type": "object" } } } },
        },
    } })
}
