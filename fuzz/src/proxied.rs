//! What the gateway makes of a request's headers.

use std::net::SocketAddr;
use std::sync::LazyLock;

use dashpot_rules::RuleSet;
use http::{HeaderMap, HeaderValue, Version};

use crate::parts;
use crate::proxy::headers::{Origin, clean, is_upgrade, to_backend, to_caller};

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    RuleSet::parse("[identity]\ntrusted_proxies = ['10.0.0.0/8']\n").expect("rules that are right")
});

const STRANGER: &str = "203.0.113.7";
const PROXY: &str = "10.0.0.1";

/// A caller's request, by a stranger and by a proxy that is trusted; and the same headers as an answer.
pub fn survives(data: &[u8]) {
    let Some((request, body)) = parts::request(data) else { return };
    // Those are turned away before.
    if request.headers().get_all("host").iter().count() > 1 || request.method() == "CONNECT" {
        return;
    }
    for (peer, is_known) in [(STRANGER, false), (PROXY, true)] {
        for version in [Version::HTTP_11, Version::HTTP_2] {
            let (mut head, ()) = request.clone().into_parts();
            head.version = version;
            let (has_body, upgrades) = (!body.is_empty(), is_upgrade(&head, !body.is_empty()));
            let peer_address = SocketAddr::new(peer.parse().expect("an address"), 80);
            let origin = Origin::new(peer_address, false);
            let backend = HeaderValue::from_static("backend");
            to_backend(&mut head, &origin, &RULES, &backend, (has_body, upgrades));
            assert!(head.uri.authority().is_none() && head.uri.scheme().is_none());
            assert_eq!(head.headers.get_all("host").iter().count(), 1);
            let length = head.headers.contains_key("content-length");
            assert!(!(length && head.headers.contains_key("transfer-encoding")), "both lengths");
            only_ours_between_neighbours(&head.headers, upgrades);
            tells_who_connected(&head.headers, peer, is_known);
        }
    }
    let mut answer = request.headers().clone();
    to_caller(&mut answer, false);
    only_ours_between_neighbours(&answer, false);
    let mut trailers = request.headers().clone();
    clean(&mut trailers);
    assert!(!trailers.keys().any(|name| is_about_callers(name.as_str())));
}

/// What a caller says to a neighbour does not reach the next one; what is there was written here.
fn only_ours_between_neighbours(headers: &HeaderMap, upgrades: bool) {
    for name in ["keep-alive", "proxy-connection", "proxy-authorization", "proxy-authenticate"] {
        assert!(!headers.contains_key(name), "{name}");
    }
    let connection: Vec<_> = headers.get_all("connection").iter().collect();
    let is_right = match &*connection {
        [] => !headers.contains_key("te") && !headers.contains_key("upgrade"),
        [one] if upgrades => *one == "upgrade",
        [one] => *one == "te" && headers["te"] == "trailers",
        _ => false,
    };
    assert!(is_right, "{connection:?}");
    let coding: Vec<_> = headers.get_all("transfer-encoding").iter().collect();
    assert!(matches!(&*coding, [] | [_]) && coding.iter().all(|coding| *coding == "chunked"));
}

/// Who connected is told at the end, and by a stranger nothing else is.
fn tells_who_connected(headers: &HeaderMap, peer: &str, is_known: bool) {
    let told = headers["x-forwarded-for"].as_bytes();
    assert!(told.ends_with(peer.as_bytes()));
    assert_eq!(headers.get_all("x-forwarded-for").iter().count(), 1);
    assert_eq!(headers.get_all("x-real-ip").iter().count(), 1);
    // No backend may take another spelling for ours.
    let spelled = |name: &str| name.contains('_') && is_about_callers(&name.replace('_', "-"));
    assert!(!headers.keys().any(|name| spelled(name.as_str())));
    if !is_known {
        assert_eq!(told, peer.as_bytes());
        assert_eq!(headers["x-real-ip"], peer);
        assert_eq!(headers["x-forwarded-proto"], "http");
        assert!(!headers.contains_key("forwarded"));
    }
}

fn is_about_callers(name: &str) -> bool {
    let ours =
        ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "forwarded"];
    ours.contains(&name)
}
