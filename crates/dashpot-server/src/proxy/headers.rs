//! What headers become on their way.

use std::fmt::Write;
use std::net::{IpAddr, SocketAddr};

use dashpot_http::{client_address, is_trusted};
use dashpot_rules::RuleSet;
use http::header::{
    CONNECTION, CONTENT_LENGTH, COOKIE, EXPECT, FORWARDED, HOST, HeaderMap, HeaderName,
    HeaderValue, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{Uri, Version, request};
use smallvec::SmallVec;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// Who connected, as backends are told.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) peer: SocketAddr,
    address: HeaderValue,
    scheme: &'static str,
}

impl Origin {
    pub(crate) fn new(peer: SocketAddr, is_secure: bool) -> Self {
        let address = address(peer.ip());
        Self { peer, address, scheme: if is_secure { "https" } else { "http" } }
    }
}

/// An address as a header says it.
fn address(address: IpAddr) -> HeaderValue {
    let text = address.to_canonical().to_string();
    // Digits, dots and colons.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("unknown"))
}

/// Whether a request asks for another protocol that may be passed on. HTTP/2 inside of a tunnel would go around every limit.
pub(crate) fn is_upgrade(head: &request::Parts, has_body: bool) -> bool {
    let Some(protocol) = head.headers.get(UPGRADE) else { return false };
    let protocol = protocol.as_bytes().to_ascii_lowercase();
    let is_http = protocol.windows(2).any(|pair| pair == b"h2")
        || protocol.starts_with(b"http")
        || protocol.starts_with(b"tls");
    head.version == Version::HTTP_11
        && !has_body
        && !is_http
        && has_token(&head.headers, &CONNECTION, "upgrade")
}

/// Whether one of a header's elements is this.
fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    tokens(headers, name).any(|known| known.eq_ignore_ascii_case(token.as_bytes()))
}

fn tokens<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h [u8]> {
    let lines = headers.get_all(name).into_iter().map(HeaderValue::as_bytes);
    lines.flat_map(|line| line.split(|byte| *byte == b',')).map(<[u8]>::trim_ascii)
}

/// Names to be removed. Mostly few.
type Names = SmallVec<[HeaderName; 8]>;

/// Removes what is between two neighbours only.
fn remove_hops(headers: &mut HeaderMap, mut others: impl FnMut(&HeaderName) -> bool) {
    let mut names = Names::new();
    for name in headers.keys() {
        let is_hop = match *name {
            CONNECTION | TE | TRANSFER_ENCODING | UPGRADE | PROXY_AUTHENTICATE
            | PROXY_AUTHORIZATION => true,
            _ => matches!(name.as_str(), "keep-alive" | "proxy-connection"),
        };
        if is_hop || others(name) {
            names.push(name.clone());
        }
    }
    if headers.contains_key(CONNECTION) {
        let named = tokens(headers, &CONNECTION);
        let named = named.filter_map(|token| HeaderName::from_bytes(token).ok());
        // Whom it is for is not theirs to remove.
        names.extend(named.filter(|name| *name != HOST));
    }
    for name in names {
        headers.remove(name);
    }
}

/// Whether a name is this one, or some backends would take it for it.
fn is_like(name: &str, known: &str) -> bool {
    let same = |(one, other): (u8, u8)| one == other || (one == b'_' && other == b'-');
    name.len() == known.len() && name.bytes().zip(known.bytes()).all(same)
}

/// Whether it is a header that is written here, or some backends would take it for one.
fn is_ours(name: &str) -> bool {
    let ours = ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip"];
    ours.iter().any(|known| is_like(name, known))
}

/// Removes from what is said after a body what is not the caller's to say.
pub(crate) fn clean(trailers: &mut HeaderMap) {
    let is_theirs = |name: &&HeaderName| !is_ours(name.as_str()) && **name != FORWARDED;
    let names: Names = trailers.keys().filter(|name| !is_theirs(name)).cloned().collect();
    for name in names {
        trailers.remove(name);
    }
}

/// Makes of a caller's request the one the backend gets. The target keeps its path; a host it names becomes the header.
pub(crate) fn to_backend(
    head: &mut request::Parts,
    origin: &Origin,
    rules: &RuleSet,
    backend: &HeaderValue,
    (has_body, is_upgrade): (bool, bool),
) {
    let identity = rules.identity();
    let peer = Some(origin.peer.ip());
    let is_believed = is_trusted(&identity.trust, peer);
    let real = match is_believed {
        // What others say of it is read before it is changed.
        true => client_address(identity, peer, &head.headers).map(|found| address(found.address)),
        false => None,
    };
    let protocol = if is_upgrade { head.headers.remove(UPGRADE) } else { None };
    let wants_trailers = has_token(&head.headers, &TE, "trailers");
    let (before, hosts, schemes, forwarded) = match is_believed {
        true => (
            joined(&head.headers, &FORWARDED_FOR),
            head.headers.get(FORWARDED_HOST).cloned(),
            head.headers.get(FORWARDED_PROTO).cloned(),
            joined(&head.headers, &FORWARDED),
        ),
        false => (None, None, None, None),
    };
    let headers = &mut head.headers;
    remove_hops(headers, |name| match *name {
        EXPECT | FORWARDED => true,
        _ => {
            let name = name.as_str();
            let is_theirs = is_like(name, &identity.client_ip_header);
            (name.contains('_') && is_ours(name))
                || (is_theirs && (!is_believed || name != identity.client_ip_header))
        }
    });
    if head.version == Version::HTTP_2
        && let Some(crumbs) = joined_by(headers, &COOKIE, "; ")
    {
        headers.insert(COOKIE, crumbs);
    }
    if head.uri.authority().is_some() {
        let authority = head.uri.authority().map(|authority| authority.as_str());
        if let Some(host) = authority.and_then(|host| HeaderValue::from_str(host).ok()) {
            headers.insert(HOST, host);
        }
        head.uri = target(&head.uri);
    }
    head.version = Version::HTTP_11;
    // Who speaks HTTP/1.0 need not name one; the backend is spoken to by HTTP/1.1.
    let host = headers.entry(HOST).or_insert_with(|| backend.clone()).clone();
    let host = hosts.unwrap_or(host);
    let scheme = schemes.unwrap_or(HeaderValue::from_static(origin.scheme));
    let chain = match before {
        Some(before) => with_one_more(&before, origin),
        None => origin.address.clone(),
    };
    headers.reserve(4);
    headers.insert(FORWARDED_FOR, chain);
    headers.insert(FORWARDED_PROTO, scheme);
    headers.insert(REAL_IP, real.unwrap_or_else(|| origin.address.clone()));
    headers.insert(FORWARDED_HOST, host);
    if let Some(forwarded) = forwarded.and_then(|known| with_one_element_more(&known, origin)) {
        headers.insert(FORWARDED, forwarded);
    }
    // hyper would leave out the body of a GET otherwise.
    if has_body && !headers.contains_key(CONTENT_LENGTH) {
        headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
    }
    if let Some(protocol) = protocol {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, protocol);
    } else if wants_trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
}

/// Makes of the backend's answer the one the caller gets.
pub(crate) fn to_caller(headers: &mut HeaderMap, is_upgrade: bool) {
    let protocol = if is_upgrade { headers.remove(UPGRADE) } else { None };
    if headers.contains_key(TRANSFER_ENCODING) {
        // What is said twice is as long as its chunks.
        headers.remove(CONTENT_LENGTH);
    }
    remove_hops(headers, |_| false);
    if is_upgrade {
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    if let Some(protocol) = protocol {
        headers.insert(UPGRADE, protocol);
    }
}

/// The target without the host.
fn target(uri: &Uri) -> Uri {
    match uri.path_and_query() {
        Some(path) if !path.as_str().is_empty() => path.clone().into(),
        _ => Uri::from_static("/"),
    }
}

/// All lines of a header as one.
fn joined(headers: &HeaderMap, name: &HeaderName) -> Option<HeaderValue> {
    joined_by(headers, name, ", ")
}

fn joined_by(headers: &HeaderMap, name: &HeaderName, between: &str) -> Option<HeaderValue> {
    let mut lines = headers.get_all(name).into_iter();
    let first = lines.next()?;
    let mut whole: Option<Vec<u8>> = None;
    for line in lines {
        let whole = whole.get_or_insert_with(|| first.as_bytes().to_vec());
        whole.extend_from_slice(between.as_bytes());
        whole.extend_from_slice(line.as_bytes());
    }
    match whole {
        None => Some(first.clone()),
        Some(whole) => HeaderValue::from_bytes(&whole).ok(),
    }
}

fn with_one_more(before: &HeaderValue, origin: &Origin) -> HeaderValue {
    let mut chain = before.as_bytes().to_vec();
    if !chain.is_empty() {
        chain.extend_from_slice(b", ");
    }
    chain.extend_from_slice(origin.address.as_bytes());
    HeaderValue::from_bytes(&chain).unwrap_or_else(|_| origin.address.clone())
}

fn with_one_element_more(before: &HeaderValue, origin: &Origin) -> Option<HeaderValue> {
    let mut text = before.to_str().ok()?.to_owned();
    let _ = match origin.peer.ip().to_canonical() {
        IpAddr::V4(address) => write!(text, ", for={address};proto={}", origin.scheme),
        IpAddr::V6(address) => write!(text, ", for=\"[{address}]\";proto={}", origin.scheme),
    };
    HeaderValue::from_str(&text).ok()
}
