//! Problem details as in RFC 9457, with a few fields for clients that expect plain JSON.

use bytes::Bytes;
use dashpot::Decision;
use http::{HeaderValue, Response, StatusCode};

use super::respond;

pub(super) struct Problem<'a, 'p> {
    pub(super) kind: &'static str,
    pub(super) title: &'static str,
    pub(super) status: StatusCode,
    pub(super) message: &'a str,
    /// The decision whose deniers are named.
    pub(super) violated: Option<&'a Decision<'p>>,
    pub(super) error: &'static str,
    pub(super) retry_after: Option<u64>,
}

impl Problem<'_, '_> {
    pub(super) fn response(&self) -> Response<Bytes> {
        let content_type = HeaderValue::from_static("application/problem+json");
        respond(self.status, Some(content_type), self.body().into())
    }

    fn body(&self) -> String {
        let mut body = String::with_capacity(512);
        body.push('{');
        push_field(&mut body, "type", self.kind);
        push_field(&mut body, "title", self.title);
        push_name(&mut body, "status");
        body.push_str(self.status.as_str());
        push_field(&mut body, "detail", self.message);
        if let Some(decision) = self.violated {
            push_name(&mut body, "violated-policies");
            body.push('[');
            let mut named: Vec<&str> = Vec::new();
            for status in decision.denied() {
                let name = status.policy().name();
                if !named.contains(&name) {
                    if !named.is_empty() {
                        body.push(',');
                    }
                    push_string(&mut body, name);
                    named.push(name);
                }
            }
            body.push(']');
        }
        push_field(&mut body, "error", self.error);
        push_field(&mut body, "message", self.message);
        if let Some(seconds) = self.retry_after {
            push_name(&mut body, "retry_after");
            body.push_str(&seconds.to_string());
        }
        body.push('}');
        body
    }
}

fn push_field(body: &mut String, name: &str, value: &str) {
    push_name(body, name);
    push_string(body, value);
}

/// Names are ours and need no escaping.
fn push_name(body: &mut String, name: &str) {
    body.push_str(if body.ends_with('{') { "\"" } else { ",\"" });
    body.push_str(name);
    body.push_str("\":");
}

fn push_string(body: &mut String, text: &str) {
    // Nearly all texts are. To escape them was an eighth of a gateway's instructions where two of three requests were denied.
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    if text.bytes().all(is_plain) {
        body.push('"');
        body.push_str(text);
        body.push('"');
    } else {
        body.push_str(&serde_json::Value::from(text).to_string());
    }
}
