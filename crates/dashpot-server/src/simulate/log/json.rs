//! A JSON object a line, by the names that nginx, Caddy, Traefik, Envoy and the gateway itself use.

use std::net::IpAddr;

use serde_json::{Map, Value};

use super::{Entry, address, clf_time, nanos, owned, path_of, request, request_line, took};
use crate::serve::text::Lines;

/// What things are called, the surest names first.
const TIME: &[&str] = &[
    "time",
    "timestamp",
    "@timestamp",
    "ts",
    "time_iso8601",
    "msec",
    "time_local",
    "StartUTC",
    "start_time",
    "date",
];
const IP: &[&str] = &[
    "ip",
    "client_ip",
    "remote_ip",
    "remote_addr",
    "ClientHost",
    "downstream_remote_address",
    "remote_host",
    "clientip",
    "client",
];
const METHOD: &[&str] = &["method", "request_method", "RequestMethod", "verb"];
const PATH: &[&str] = &["path", "uri", "request_uri", "RequestPath", "url", "request_path"];
const HOST: &[&str] = &["host", "http_host", "RequestHost", "authority", "server_name"];
const USER: &[&str] = &["user", "user_id", "remote_user", "ClientUsername"];
const STATUS: &[&str] = &["status", "status_code", "DownstreamStatus", "response_code", "response"];
const BYTES: &[&str] = &["bytes", "body_bytes_sent", "bytes_sent", "size", "DownstreamContentSize"];
const SECONDS: &[&str] = &["seconds", "duration", "request_time", "elapsed"];
const AGENT: &[&str] = &["user_agent", "http_user_agent", "agent"];

pub(super) fn read(line: &str) -> Result<Entry, String> {
    let whole: Map<String, Value> =
        serde_json::from_str(line).map_err(|error| format!("no JSON: {error}"))?;
    // Caddy has what was asked in an object of its own; others have the request's line in its place.
    let inner = whole.get("request").and_then(Value::as_object);
    let find = |names: &[&str]| {
        let sources = [inner, Some(&whole)];
        sources.into_iter().flatten().find_map(|from| names.iter().find_map(|name| from.get(*name)))
    };
    let text = |names: &[&str]| {
        find(names).and_then(Value::as_str).filter(|text| !matches!(*text, "" | "-"))
    };
    let at = TIME
        .iter()
        .filter_map(|name| whole.get(*name))
        .find_map(time)
        .ok_or("no time that can be read")?;
    let ip: Option<IpAddr> = text(IP).and_then(address);
    let line = whole.get("request").and_then(Value::as_str).and_then(request_line);
    let (method, path) = match (text(METHOD), text(PATH), line) {
        (method, Some(path), line) => {
            (method.or(line.map(|(method, _)| method)).unwrap_or("GET"), path)
        }
        (method, None, Some((first, path))) => (method.unwrap_or(first), path),
        (_, None, None) => return Err("neither `path`, nor `uri`, nor `request`".to_owned()),
    };
    let mut request = request(method, path_of(path), ip);
    request.host = text(HOST).map(owned);
    request.user = text(USER).map(owned);
    request.api_key = text(&["api_key"]).map(owned);
    request.tier = text(&["tier", "plan"]).map(owned);
    if let Some(agent) = text(AGENT) {
        request.headers.insert(owned("user-agent"), Lines(vec![owned(agent)]));
    }
    for (name, value) in find(&["headers"]).and_then(Value::as_object).into_iter().flatten() {
        let lines = match value {
            Value::String(line) => vec![owned(line)],
            Value::Array(lines) => lines.iter().filter_map(Value::as_str).map(owned).collect(),
            _ => continue,
        };
        request.headers.insert(owned(&name.to_ascii_lowercase()), Lines(lines));
    }
    let number = |names: &[&str]| find(names).and_then(number);
    Ok(Entry {
        at,
        request,
        status: number(STATUS).and_then(whole_number).and_then(|status| u16::try_from(status).ok()),
        bytes: number(BYTES).and_then(whole_number),
        took: number(SECONDS).and_then(took),
    })
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "it is seen before that it fits"
)]
fn whole_number(number: f64) -> Option<u64> {
    (0.0..9e15).contains(&number).then_some(number as u64)
}

/// A time as text, or as a number: of seconds, milliseconds, microseconds or nanoseconds, since nobody means another century.
fn time(value: &Value) -> Option<u64> {
    if let Some(text) = value.as_str() {
        let at = text.parse::<jiff::Timestamp>().ok().and_then(nanos);
        return at.or_else(|| clf_time(text)).or_else(|| text.parse().ok().and_then(since_1970));
    }
    since_1970(value.as_f64()?)
}

fn since_1970(number: f64) -> Option<u64> {
    let seconds =
        [1.0, 1e3, 1e6, 1e9].into_iter().map(|per| number / per).find(|seconds| *seconds < 1e10)?;
    let whole = whole_number(seconds)?;
    // To the microsecond: a number of that size has no more in it.
    let micros = whole_number((seconds - whole as f64) * 1e6)?;
    whole.checked_mul(1_000_000_000)?.checked_add(micros * 1000)
}
