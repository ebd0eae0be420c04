//! `/v1/forward-auth`: a gateway asks about a request.

mod original;

use bytes::Bytes;
use dashpot::Cost;
use dashpot_http::{HttpDescriptor, Peer, Wait, denial, headers};
use dashpot_rules::{Pending, Trust};
use http::header::{CONTENT_TYPE, HOST};
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use serde_json::{Value, json as value};

use super::check::has_rules;
use super::{Answered, Call};
use crate::serve::service::Shared;
use crate::serve::wrong::Wrong;
use original::{deny_status, original};

pub(crate) use original::PATH;

pub(crate) async fn answer(service: &Shared, call: &Call) -> Answered {
    let deny = deny_status(&call.head.uri)?;
    let rules = service.rules.current();
    has_rules(&rules).map_err(|detail| Wrong::new(StatusCode::BAD_REQUEST, detail))?;
    let identity = rules.identity();
    let trust = if identity.trust == Trust::Nobody { &service.loopback } else { &identity.trust };
    let mut request = Request::new(());
    request.extensions_mut().insert(Peer(call.peer));
    if !HttpDescriptor::new(&rules, &request, None).trusting(trust).is_trusted() {
        return Err(untrusted(call));
    }
    let original = original(&call.head.method, &call.head.uri, &call.head.headers)?;
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

fn untrusted(call: &Call) -> Wrong {
    let peer = call.peer.ip().to_canonical();
    let bits = if peer.is_ipv4() { 32 } else { 128 };
    let detail = format!(
        "{peer} is not a trusted proxy; if it is your gateway, add to the rule file: [identity] trusted_proxies = \
         [\"{peer}/{bits}\"]"
    );
    Wrong::new(StatusCode::BAD_REQUEST, detail)
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
