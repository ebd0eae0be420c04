//! Drafts 08 to 11 of the IETF: `RateLimit-Policy: "burst";q=100;w=60` and
//! `RateLimit: "burst";r=50;t=30`.

use dashpot::{Decision, PolicyStatus};
use http::HeaderValue;

use super::memo::remembered;
use super::told::{applied, until_more, window};
use super::{POLICY, RATELIMIT, Sink, Value, push_integer, remaining, set};
use crate::Wait;

pub(super) fn describe(
    decision: &Decision<'_>,
    status: &PolicyStatus<'_>,
    wait: &Wait,
    out: &mut impl Sink,
) {
    if let Some(policies) = remembered(decision.statuses(), || policies(decision)) {
        out.set(POLICY, policies);
    }
    let mut value = Value::new();
    push_string(&mut value, status.policy().name());
    value.push(b";r=");
    push_integer(&mut value, remaining(decision, status));
    if let Some(seconds) = until_more(status, wait, decision.is_allowed()) {
        value.push(b";t=");
        push_integer(&mut value, seconds);
    }
    set(RATELIMIT, &value, out);
}

/// What `RateLimit-Policy` says: every policy that applied.
fn policies(decision: &Decision<'_>) -> Option<HeaderValue> {
    let mut value = Value::new();
    for status in applied(decision.statuses()) {
        if !value.is_empty() {
            value.push(b", ");
        }
        push_string(&mut value, status.policy().name());
        value.push(b";q=");
        push_integer(&mut value, status.limit());
        match window(status) {
            Some(window) => {
                value.push(b";w=");
                push_integer(&mut value, window);
            }
            None => value.push(b";qu=\"concurrent-requests\""),
        }
    }
    HeaderValue::from_bytes(value.as_bytes()).ok()
}

/// Writes a name in quotation marks. What such a string cannot hold becomes a question mark.
fn push_string(value: &mut Value, text: &str) {
    value.push(b"\"");
    if text.bytes().all(is_plain) {
        value.push(text.as_bytes());
    } else {
        for c in text.chars() {
            match u8::try_from(c) {
                Ok(byte) if is_plain(byte) => value.push(&[byte]),
                Ok(byte @ (b'"' | b'\\')) => value.push(&[b'\\', byte]),
                _ => value.push(b"?"),
            }
        }
    }
    value.push(b"\"");
}

const fn is_plain(byte: u8) -> bool {
    matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\')
}
