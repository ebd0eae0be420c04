//! What single values may say, and what is wrong with them.

use std::net::IpAddr;
use std::str::FromStr;

use ipnet::IpNet;
use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use crate::read::{Mistake, Read, Reader};
use crate::source::Span;
use crate::weight::Weight;
use crate::{Fact, MaxBody, ParseFactError, ParseProxyError};

/// By what a cost is settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SettleText {
    /// The bytes of the response's body.
    Bytes,
    /// A fact; only response headers will do.
    Fact(Fact),
}

/// The name of a rule or a priority: letters, digits, `.`, `_` and `-`. It becomes part of headers,
/// metrics and keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NameText(pub(crate) String);

/// The name of a header, in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HeaderText(pub(crate) String);

/// What else can be wrong with a text.
pub(crate) struct Wrong(pub(crate) String);

impl Mistake for Wrong {
    fn tell(&self, _: &str, span: &Span, reader: &mut Reader<'_>) {
        reader.problems.error(span, self.0.clone());
    }
}

impl FromStr for SettleText {
    type Err = ParseFactError;

    fn from_str(text: &str) -> Result<Self, ParseFactError> {
        if text == "bytes" { Ok(Self::Bytes) } else { text.parse().map(Self::Fact) }
    }
}

impl Mistake for ParseProxyError {
    fn tell(&self, _: &str, span: &Span, reader: &mut Reader<'_>) {
        reader.problems.error(span, self.message.clone()).hint(self.hint.clone());
    }
}

impl Read for MaxBody {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(text) = value.get_ref().as_str() else {
            return u64::read(value, reader).map(Self::Bytes);
        };
        let parsed = text.parse();
        let wrong = |error: ParseProxyError| error.tell(text, &reader.place(value), reader);
        parsed.map_err(wrong).ok()
    }

    fn schema() -> Value {
        json!({ "anyOf": [u64::schema(), { "const": "unlimited" }] })
    }
}

impl Mistake for std::net::AddrParseError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let found = reader.problems.error(span, format!("`{text}` is not an address and a port"));
        found.hint(
            "write it as in \"127.0.0.1:8080\" or \"[::1]:8080\"; \"0.0.0.0:8080\" is everybody",
        );
    }
}

impl Mistake for ipnet::AddrParseError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let found = reader.problems.error(span, format!("`{text}` is not a network"));
        match text.parse::<IpAddr>() {
            Ok(address) => found.hint(format!("write `{}`", IpNet::from(address))),
            Err(_) => found.hint("write an address and the bits that count, as in `10.0.0.0/8`"),
        }
    }
}

impl Mistake for dashpot::UnknownZone {
    fn tell(&self, _: &str, span: &Span, reader: &mut Reader<'_>) {
        reader.problems.error(span, self.to_string());
    }
}

const NAME_MAX: usize = 64;

impl FromStr for NameText {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
        if text.is_empty() || text.len() > NAME_MAX || !text.chars().all(is_plain) {
            let message = format!(
                "a name has 1 to {NAME_MAX} letters, digits, `.`, `_` or `-`: it is shown in \
                 headers and metrics"
            );
            return Err(Wrong(message));
        }
        Ok(Self(text.to_owned()))
    }
}

impl FromStr for HeaderText {
    type Err = Wrong;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if is_token(text) {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(Wrong(format!("`{text}` is not the name of a header")))
    }
}

/// Whether HTTP takes it for a name of a header or a method.
pub(crate) fn is_token(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

impl Read for Weight {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let text = match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => number.as_str(),
            DeValue::Float(number) => number.as_str(),
            DeValue::String(text) => text,
            _ => return reader.expected(value, "a number above 0, or \"unlimited\""),
        };
        let parsed = text.parse().ok();
        if parsed.is_none() {
            let span = reader.place(value);
            let message = format!("`{text}` is not a weight");
            reader
                .problems
                .error(&span, message)
                .hint("write a number above 0 with at most nine decimals, or \"unlimited\"");
        }
        parsed
    }

    fn schema() -> Value {
        json!({ "anyOf": [{ "type": "number", "exclusiveMinimum": 0 }, { "const": "unlimited" }] })
    }
}
