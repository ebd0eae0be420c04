//! Which request a gateway asks about, by what it sends, and what a caller may have sent through it.

use std::borrow::Cow;

use http::header::{HOST, HeaderMap, HeaderValue};
use http::{Method, StatusCode, Uri};

use crate::serve::wrong::Wrong;

/// Where it asks; the request's own path may follow.
pub(crate) const PATH: &str = "/v1/forward-auth";

/// The status of denials, if another is asked for.
pub(crate) fn deny_status(asked: &Uri) -> Result<Option<StatusCode>, Wrong> {
    // After the path it is the query of the request that is asked about.
    let query = asked.query().filter(|_| asked.path() == PATH);
    let mut pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let Some((_, value)) = pairs.find(|(name, _)| name == "deny") else { return Ok(None) };
    let status = value.parse::<u16>().ok().filter(|code| (400..500).contains(code));
    let status = status.and_then(|code| StatusCode::from_u16(code).ok());
    status.map(Some).ok_or_else(|| Wrong::field("deny", "a status from 400 to 499"))
}

/// The request that is asked about.
#[derive(Debug)]
pub(crate) struct Original {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) host: Option<HeaderValue>,
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
pub(crate) fn original(
    asked_by: &Method,
    asked: &Uri,
    headers: &HeaderMap,
) -> Result<Original, Wrong> {
    let after = asked.path().strip_prefix(PATH).unwrap_or_default();
    let forwarded = Said::by(headers, "x-forwarded-method", &["x-forwarded-uri"])?;
    let noted = Said::by(headers, "x-original-method", &["x-original-uri", "x-original-url"])?;
    if !after.is_empty() {
        let query = asked.query().map(|query| format!("?{query}"));
        let uri = format!("{after}{}", query.unwrap_or_default());
        let method = HeaderValue::from_str(asked_by.as_str()).ok();
        let as_asked = HeaderValue::from_str(&uri).ok();
        let said = Said { method: method.as_ref(), uri: as_asked.as_ref() };
        if !forwarded.agrees(&said) || !noted.agrees(&said) {
            return Err(contradiction());
        }
        return Ok(Original {
            method: asked_by.clone(),
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
