//! Times, as in `20ms`.

use std::time::Duration;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{Read, Reader};

/// Who waits longer does not wait for an answer.
const MAX: Duration = Duration::from_secs(3600);

impl Read for Duration {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let (text, span) = reader.text(value, "a time, as in \"20ms\"")?;
        let (number, unit) = parts(text);
        let (span, message) = match text.parse::<dashpot::Window>() {
            _ if number.is_empty() => {
                (span, "a number is missing here; write one and a unit, as in \"20ms\"".to_owned())
            }
            Ok(window) if window.length() <= MAX => return Some(window.length()),
            Ok(_) => (span, format!("`{text}` is more than an hour")),
            Err(_) if number.bytes().all(|byte| matches!(byte, b'0' | b'_')) => {
                (span, "a time is longer than nothing".to_owned())
            }
            Err(error) => {
                let wrong = match unit {
                    "" => "a unit of time is missing here".to_owned(),
                    // A dot, which it can tell better, or a number no one can count to.
                    _ if !unit.starts_with(char::is_alphabetic) => error.message().to_owned(),
                    _ if error.span().start < number.len() => error.message().to_owned(),
                    _ => format!("`{unit}` is not a unit of time"),
                };
                let units = if wrong == error.message() { "" } else { "; use ms, s, min or h" };
                (span.part(error.span()), format!("{wrong}{units}"))
            }
        };
        reader.problems.error(&span, message);
        None
    }

    fn schema() -> Value {
        json!({ "type": "string", "examples": ["20ms", "5s", "1min"] })
    }
}

/// The number, and what comes after it.
fn parts(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '_').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}
