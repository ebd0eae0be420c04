//! Which request a gateway asks about at `/v1/forward-auth`. A caller may have sent any of these headers through it.

use http::{HeaderMap, Method, Request, StatusCode, Uri};

use crate::parts;
use crate::serve::api::forward_auth::original::{Original, PATH, deny_status, original};

/// The two ways to say it: the method, and the names of the URI.
const FORWARDED: (&str, &[&str]) = ("x-forwarded-method", &["x-forwarded-uri"]);
const NOTED: (&str, &[&str]) = ("x-original-method", &["x-original-uri", "x-original-url"]);
const HOST: &str = "x-forwarded-host";

/// A gateway's question: an answer is about what every header says, or there is none.
pub fn survives(data: &[u8]) {
    let Some((request, _)) = parts::request(data) else { return };
    // Nobody else is asked elsewhere.
    let is_here =
        |rest: Option<&str>| rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let target = match is_here(request.uri().path().strip_prefix(PATH)) {
        true => request.uri().clone(),
        false => Uri::from_static(PATH),
    };
    denies(&target);
    let answer = original(request.method(), &target, request.headers());
    let meant = meant(&request, &target);
    match (answer, meant) {
        (Ok(answer), Some(meant)) => is_about(&answer, &meant),
        (Ok(answer), None) => panic!("{answer:?}, though headers contradict each other"),
        (Err(wrong), Some(meant)) => {
            assert!(wrong.tell().status() == StatusCode::BAD_REQUEST);
            assert!(!is_simple(&meant), "{meant:?} is refused: {wrong:?}");
        }
        (Err(wrong), None) => assert!(wrong.tell().status() == StatusCode::BAD_REQUEST),
    }
}

/// What everybody says who says something, as it was written.
#[derive(Debug, PartialEq)]
struct Meant {
    method: Vec<u8>,
    uri: Vec<u8>,
    host: Option<Vec<u8>>,
}

/// Found by lists of all that is said, where the program compares family by family. `None` if there is no telling.
fn meant(request: &Request<()>, target: &Uri) -> Option<Meant> {
    let headers = request.headers();
    let (mut methods, mut uris) = (Vec::new(), Vec::new());
    let rest = &target.path()[PATH.len()..];
    if !rest.is_empty() {
        let query = target.query().map(|query| format!("?{query}")).unwrap_or_default();
        methods.push(request.method().as_str().as_bytes().to_vec());
        uris.push(format!("{rest}{query}").into_bytes());
    }
    for (method, names) in [FORWARDED, NOTED] {
        methods.extend(all(headers, method));
        names.iter().for_each(|name| uris.extend(all(headers, name)));
        let is_twice = |name: &&str| all(headers, name).count() > 1;
        if is_twice(&method) || names.iter().any(is_twice) {
            return None;
        }
    }
    let agree = |said: &[Vec<u8>]| said.windows(2).all(|two| two[0] == two[1]);
    if !agree(&methods) || !agree(&uris) {
        return None;
    }
    let mut host = None;
    if rest.is_empty() {
        let is_there = |name: &str| headers.contains_key(name);
        let is_whole = |(method, names): (&str, &[&str])| {
            is_there(method) && names.iter().any(|name| is_there(name))
        };
        let is_begun = |(method, names): (&str, &[&str])| {
            is_there(method) || names.iter().any(|name| is_there(name))
        };
        let hosts: Vec<_> = all(headers, HOST).collect();
        let both = is_begun(FORWARDED) && is_begun(NOTED);
        let own = all(headers, "host").next();
        if !(is_whole(FORWARDED) || is_whole(NOTED))
            || hosts.len() > 1
            || (both && !hosts.is_empty() && hosts.first() != own.as_ref())
        {
            return None;
        }
        host = hosts.into_iter().next().filter(|_| is_whole(FORWARDED));
    }
    Some(Meant { method: methods.pop()?, uri: uris.pop()?, host })
}

fn all(headers: &HeaderMap, name: &str) -> impl Iterator<Item = Vec<u8>> {
    headers.get_all(name).iter().map(|value| value.as_bytes().to_vec())
}

/// It is the request that was meant, with a path that rules can be about.
fn is_about(answer: &Original, meant: &Meant) {
    let Original { method, uri, host } = answer;
    assert!(uri.path().starts_with('/'), "{uri:?}");
    assert_eq!(method.as_str().as_bytes(), meant.method);
    assert_eq!(host.as_ref().map(|host| host.as_bytes()), meant.host.as_deref());
    // Up to a fragment, which is never sent on, and but for how its bytes are written.
    let end = meant.uri.iter().position(|byte| *byte == b'#').unwrap_or(meant.uri.len());
    let said = &meant.uri[..end];
    let target = uri.path_and_query().map_or("", |target| target.as_str());
    if said.starts_with(b"/") {
        assert!(uri.authority().is_none(), "{uri:?} of {meant:?}");
        assert_eq!(decoded(target.as_bytes()), decoded(said), "{uri:?} of {meant:?}");
    } else {
        let (scheme, host) = (uri.scheme_str().unwrap_or_default(), uri.authority());
        let begin = format!("{scheme}://{}", host.expect("a URL has a host"));
        assert!(said[..begin.len()].eq_ignore_ascii_case(begin.as_bytes()), "{uri:?} of {meant:?}");
        let said = &said[begin.len()..];
        // A path that is empty may be written.
        let target = target.strip_prefix('/').unwrap_or(target);
        let said = said.strip_prefix(b"/").unwrap_or(said);
        assert_eq!(decoded(target.as_bytes()), decoded(said), "{uri:?} of {meant:?}");
    }
}

/// Whether nothing about it can be wrong.
fn is_simple(meant: &Meant) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-~ \"\\".contains(byte);
    let is_method = Method::from_bytes(&meant.method).is_ok();
    is_method && meant.uri.starts_with(b"/") && meant.uri.iter().all(is_plain)
}

/// `deny` of the query is a status that gateways take for a denial, as the first of that name has it.
fn denies(target: &Uri) {
    let query = target.query().filter(|_| target.path() == PATH).unwrap_or_default();
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let first = pairs.find(|(name, _)| spaced(name) == b"deny");
    match (deny_status(target), first) {
        (Ok(None), None) => {}
        (Ok(Some(status)), Some((_, value))) => {
            assert!((400..500).contains(&status.as_u16()), "{status}");
            assert!(spaced(value).ends_with(status.as_str().as_bytes()), "{value:?}: {status}");
        }
        (Err(wrong), Some((_, value))) => {
            assert_eq!(wrong.tell().status(), StatusCode::BAD_REQUEST);
            let is_fine = value.len() == 3 && matches!(value.parse(), Ok(400..=499_u16));
            assert!(!is_fine, "{value:?} is refused");
        }
        (answer, first) => panic!("{first:?}: {answer:?}"),
    }
}

/// A part of a query.
fn spaced(text: &str) -> Vec<u8> {
    decoded(text.replace('+', " ").as_bytes())
}

/// `%41` is `A`.
fn decoded(bytes: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let [first, after @ ..] = rest {
        let digits = after.get(..2).filter(|two| two.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.filter(|_| *first == b'%').and_then(|two| str::from_utf8(two).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) => {
                decoded.push(byte);
                rest = &after[2..];
            }
            None => {
                decoded.push(*first);
                rest = after;
            }
        }
    }
    decoded
}
