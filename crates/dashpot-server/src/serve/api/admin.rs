//! Who may look at keys and rules, and change them.

use http::header::{AUTHORIZATION, FORWARDED, HOST, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode, Version};

use super::Call;
use crate::serve::secret::same;
use crate::serve::service::Service;
use crate::serve::wrong::Wrong;

/// Fails unless an administrator asks: somebody with the token; without one, somebody on this machine.
pub(crate) fn admit(service: &Service, call: &Call) -> Result<(), Wrong> {
    let headers = &call.head.headers;
    match &service.admin_token {
        Some(token) => {
            let shown = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
            let shown = shown.and_then(|value| {
                let (scheme, shown) = value.split_once(' ')?;
                scheme.eq_ignore_ascii_case("bearer").then(|| shown.trim())
            });
            if shown.is_some_and(|shown| same(shown, token)) {
                return Ok(());
            }
            let detail = "show the admin token: `Authorization: Bearer …`";
            let wrong = Wrong::new(StatusCode::UNAUTHORIZED, detail);
            Err(wrong.with(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")))
        }
        None => match stranger(call, headers) {
            None => Ok(()),
            Some(why) => {
                let detail = format!("{why}; start the service with --admin-token to allow this");
                Err(Wrong::new(StatusCode::FORBIDDEN, detail))
            }
        },
    }
}

/// Why somebody is not taken for an administrator without a token.
fn stranger(call: &Call, headers: &HeaderMap) -> Option<&'static str> {
    if !Service::is_here(call.peer.ip()) {
        return Some("without an admin token this is for the same machine only");
    }
    // A proxy on this machine speaks for others.
    let proxied = ["via", "x-real-ip", "true-client-ip", "cf-connecting-ip"];
    let begins = |name: &str| name.starts_with("x-forwarded-") || name.starts_with("x-envoy-");
    // Of those that say nothing, most speak an old version.
    if headers.contains_key(FORWARDED)
        || proxied.iter().any(|name| headers.contains_key(*name))
        || headers.keys().any(|name| begins(name.as_str()))
        || call.head.version < Version::HTTP_11
    {
        return Some("without an admin token this is not for forwarded requests");
    }
    // A page of somebody else's in a browser on this machine; another port is somebody else.
    let host = headers.get(HOST).map_or(&b""[..], HeaderValue::as_bytes);
    let is_our_page = |origin: &HeaderValue| {
        let origin = origin.as_bytes();
        let page =
            [&b"http://"[..], b"https://"].iter().find_map(|scheme| origin.strip_prefix(*scheme));
        page.is_some_and(|page| page.eq_ignore_ascii_case(host))
    };
    let same_site =
        headers.get("sec-fetch-site").is_none_or(|site| site == "same-origin" || site == "none");
    if !same_site || !headers.get_all(ORIGIN).iter().all(is_our_page) {
        return Some("without an admin token this is not for other web pages");
    }
    // A name of somebody else's that leads to this machine.
    let names_us = |host: &HeaderValue| host.to_str().is_ok_and(is_local_name);
    let addressed = call.head.uri.authority().is_none_or(|to| is_local_name(to.as_str()));
    if !addressed || !headers.get_all(HOST).iter().all(names_us) {
        return Some("without an admin token this is for `localhost` by that name, or its address");
    }
    None
}

/// Whether a host, with or without a port, is this machine for everybody.
fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost") || name.parse().is_ok_and(Service::is_here)
}
