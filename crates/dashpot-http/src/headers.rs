//! What the headers say: how the caller stands, in the styles that clients read.

mod draft06;
mod draft07;
mod ietf;
mod lines;
mod memo;
mod told;
mod x_ratelimit;

use dashpot::{Decision, PolicyStatus};
use dashpot_rules::{HeaderStyle, Headers, RuleSet};
use http::header::{ACCESS_CONTROL_EXPOSE_HEADERS, HeaderMap, HeaderName, HeaderValue, ORIGIN};

use crate::Wait;
use crate::text::Text;
pub(crate) use lines::{HeaderLines, Sink};
pub use told::governing;
use told::{applied, is_limited};

/// `RateLimit-Policy`, which all drafts share.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
/// `RateLimit`.
const RATELIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// The most a whole number can be in a structured field: fifteen digits. Elsewhere more would be
/// allowed, but not every client has numbers for it.
const INTEGER_MAX: u64 = 999_999_999_999_999;

/// Most values fit without the heap.
type Value = Text<128>;

/// Tells the caller how it stands, in each style. `wait` is that of the same decision.
///
/// All policies that applied are listed, but those without a limit. The state is that of one: on a
/// denial the denier with the longest wait, else the policy of which the smallest part remains.
pub fn describe(decision: &Decision<'_>, wait: &Wait, config: &Headers, out: &mut HeaderMap) {
    write_state(decision, wait, config, out);
}

/// What [`describe`] writes, as a list: for those who tell it by other means than a response.
#[must_use]
pub fn list(
    decision: &Decision<'_>,
    wait: &Wait,
    config: &Headers,
) -> Vec<(HeaderName, HeaderValue)> {
    let mut lines = HeaderLines::default();
    write_state(decision, wait, config, &mut lines);
    lines.into_inner()
}

/// Lets scripts of other origins read what [`describe`] writes, and `Retry-After`. For answers to
/// requests with an `Origin`. What the application exposes stays exposed.
pub fn expose(config: &Headers, out: &mut HeaderMap) {
    write_exposed(config, out);
}

pub(crate) fn write_state(
    decision: &Decision<'_>,
    wait: &Wait,
    config: &Headers,
    out: &mut impl Sink,
) {
    let Some(status) = governing(decision.statuses()).filter(|status| is_limited(status)) else {
        return;
    };
    for style in &config.styles {
        match style {
            HeaderStyle::Ietf => ietf::describe(decision, status, wait, out),
            HeaderStyle::Draft07 => draft07::describe(decision, status, wait, out),
            HeaderStyle::Draft06 => draft06::describe(decision, status, wait, out),
            HeaderStyle::XRateLimit => x_ratelimit::describe(decision, status, wait, out),
            // A style that rules know and we do not yet.
            _ => {}
        }
    }
}

pub(crate) fn write_exposed(config: &Headers, out: &mut impl Sink) {
    if !config.expose {
        return;
    }
    out.append(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Retry-After"));
    for style in &config.styles {
        let names = match style {
            HeaderStyle::Ietf | HeaderStyle::Draft07 => "RateLimit, RateLimit-Policy",
            HeaderStyle::Draft06 => {
                "RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, RateLimit-Policy"
            }
            HeaderStyle::XRateLimit => {
                "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"
            }
            _ => continue,
        };
        out.append(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(names));
    }
}

/// Lets a script of another origin read what is told, if one asks.
pub(crate) fn expose_if_asked(rules: &RuleSet, request: &HeaderMap, out: &mut impl Sink) {
    if rules.headers().expose && request.contains_key(ORIGIN) {
        write_exposed(rules.headers(), out);
    }
}

/// Sets a field, in the place of what others said.
fn set(name: HeaderName, value: &Value, out: &mut impl Sink) {
    // What cannot be a value is left out; nothing that we write is such.
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes()) {
        out.set(name, value);
    }
}

/// Sets a field to a number.
fn set_number(name: HeaderName, number: u64, out: &mut impl Sink) {
    let mut value = Value::new();
    push_integer(&mut value, number);
    set(name, &value, out);
}

/// Sets `RateLimit-Policy` as in drafts 06 and 07: `100;w=60, 1000;w=86400`. They have no way to
/// say what runs by no clock.
fn set_policies_by_number(decision: &Decision<'_>, out: &mut impl Sink) {
    let mut value = Value::new();
    for status in applied(decision.statuses()) {
        if let Some(window) = told::window(status) {
            if !value.is_empty() {
                value.push(b", ");
            }
            push_integer(&mut value, status.limit());
            value.push(b";w=");
            push_integer(&mut value, window);
        }
    }
    if !value.is_empty() {
        set(POLICY, &value, out);
    }
}

/// Writes a number as all clients can read it.
fn push_integer(value: &mut Value, number: u64) {
    value.push_number(number.min(INTEGER_MAX));
}

/// What the state of a policy is told as: on a denial nothing remains, for this caller at least.
fn remaining(decision: &Decision<'_>, status: &PolicyStatus<'_>) -> u64 {
    if decision.is_allowed() { status.remaining() } else { 0 }
}

#[cfg(test)]
mod tests;
