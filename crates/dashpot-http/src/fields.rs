//! Fields of a request: of its query, its cookies, its body.
//!
//! Whatever the bytes, these find a field or find none. An empty one is none: it tells nobody apart.

use std::borrow::Cow;

use http::header::{CONTENT_ENCODING, CONTENT_TYPE, COOKIE};
use http::{HeaderMap, HeaderValue};
use serde_json::{Number, Value};

/// What a body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContentKind {
    /// JSON, by any of its names.
    Json,
    /// A form as browsers send it, if there is no file in it.
    Form,
    /// Something in which no field is looked for.
    Other,
}

/// What the body of this request is made of, if its headers are right.
///
/// A compressed body is something else: it is not inflated here, as a few bytes of it can be a
/// gigabyte.
pub(crate) fn content_kind(headers: &HeaderMap) -> ContentKind {
    let is_plain = |value: &HeaderValue| {
        value.as_bytes().split(|byte| *byte == b',').all(|coding| {
            let coding = coding.trim_ascii();
            coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
        })
    };
    if !headers.get_all(CONTENT_ENCODING).iter().all(is_plain) {
        return ContentKind::Other;
    }
    let name = headers.get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let name = name.split(|byte| *byte == b';').next().unwrap_or_default();
    let name = name.trim_ascii().to_ascii_lowercase();
    match &*name {
        b"application/json" => ContentKind::Json,
        b"application/x-www-form-urlencoded" => ContentKind::Form,
        other if other.ends_with(b"+json") => ContentKind::Json,
        _ => ContentKind::Other,
    }
}

/// A parameter of a query, if it has one value.
pub(crate) fn query_field<'q>(query: &'q str, name: &str) -> Option<Cow<'q, str>> {
    let value = pair(query.as_bytes(), name)?;
    (!value.is_empty()).then_some(value)
}

/// A cookie; the first of that name, without the quotes it may be in.
pub(crate) fn cookie_field<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    // Each by itself, so that one cookie that is no text does not hide the others.
    let cookies = headers.get_all(COOKIE).iter();
    let mut cookies = cookies.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
    let value = cookies.find_map(|cookie| {
        let equals = cookie.iter().position(|byte| *byte == b'=')?;
        let (key, value) = cookie.split_at_checked(equals)?;
        (key.trim_ascii() == name.as_bytes()).then_some(value)
    })?;
    let value = value.strip_prefix(b"=")?.trim_ascii();
    let unquoted = value.strip_prefix(b"\"").and_then(|value| value.strip_suffix(b"\""));
    let value = str::from_utf8(unquoted.unwrap_or(value)).ok()?;
    (!value.is_empty()).then_some(value)
}

/// A field of a JSON body; `a.b` is the field `b` of `a`. The last of that name, as most
/// servers read it.
///
/// Texts, numbers and booleans are fields; `null`, lists and objects are not. A name with a dot in
/// it is out of reach: if `a.b` could be both, a caller would send both, one for the limit and the
/// other for the server.
pub(crate) fn json_field(document: &Value, path: &str) -> Option<String> {
    let field = path.split('.').try_fold(document, |value, name| value.as_object()?.get(name))?;
    match field {
        Value::String(text) => (!text.is_empty()).then(|| text.clone()),
        Value::Number(number) => Some(plain_number(number)),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A field of a form, if it has one value.
pub(crate) fn form_field(body: &[u8], name: &str) -> Option<String> {
    pair(body, name).map(Cow::into_owned).filter(|value| !value.is_empty())
}

/// Some servers read the first of several values, some the last: if either counted, a caller would
/// send one for the limit and the other for the server. So several are none.
fn pair<'b>(encoded: &'b [u8], name: &str) -> Option<Cow<'b, str>> {
    let pairs = form_urlencoded::parse(encoded);
    let mut values = pairs.filter_map(|(key, value)| (key == name).then_some(value));
    let first = values.next()?;
    values.all(|other| other == first).then_some(first)
}

/// One spelling for what most servers take as one: to a login, ` Alice@x.com` is `alice@x.com`.
/// Otherwise each spelling would have a limit of its own. For what is counted and listed by; what says
/// who somebody is, as keys do, is left as it is.
pub(crate) fn fold(text: &str) -> Option<String> {
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_lowercase())
}

/// One spelling for a number: `7`, `7.0` and `70e-1` are one to those who read it.
fn plain_number(number: &Number) -> String {
    /// Up to here every whole number is a float of its own.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match number.as_f64() {
        Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() <= EXACT => {
            // Adding zero makes a zero of minus zero.
            format!("{:.0}", float + 0.0)
        }
        _ => number.to_string(),
    }
}

#[cfg(test)]
mod tests;
