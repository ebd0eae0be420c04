//! Facts nobody knows.

use super::{Mistake, Reader};
use crate::nearest::nearest;
use crate::problem::Problems;
use crate::source::Span;
use crate::{Fact, ParseFactError};

impl Mistake for ParseFactError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        match reader.key {
            // These are told in a part of the request, and no other fact will do.
            "user" | "api_key" | "tier" | "token" => {
                tell_of(self, text, span, reader.problems, Fact::needs_name, PARTS);
            }
            _ => tell(self, text, span, reader.problems),
        }
    }
}

/// Where a user, a key or a tier may be told.
pub(crate) const PARTS: &str = "header:…, cookie:…, query:…, jwt:…, json:… or form:…";

/// Says why a text is no fact, and which one was probably meant.
pub(crate) fn tell(error: &ParseFactError, text: &str, span: &Span, problems: &mut Problems) {
    tell_of(error, text, span, problems, |_| true, ParseFactError::KNOWN);
}

fn tell_of(
    error: &ParseFactError,
    text: &str,
    span: &Span,
    problems: &mut Problems,
    fits: fn(&str) -> bool,
    known: &str,
) {
    match error {
        ParseFactError::Unknown(_) if text.is_empty() => {
            problems.error(span, "a fact is missing here");
        }
        ParseFactError::Unknown(_) => {
            let found = problems.error(span, format!("`{text}` is not a fact"));
            found.hint(likely(text, fits).unwrap_or_else(|| format!("use {known}")));
        }
        ParseFactError::Name { .. } => {
            problems.error(span, error.to_string());
        }
    }
}

fn likely(text: &str, fits: fn(&str) -> bool) -> Option<String> {
    let (beginning, name) = match text.split_once(':') {
        Some((beginning, name)) => (beginning, Some(name)),
        None => (text, None),
    };
    let near = nearest(beginning, Fact::beginnings().filter(|beginning| fits(beginning)));
    let near = near.map(|near| match (Fact::needs_name(near), name) {
        (true, Some(name)) if !name.is_empty() => format!("{near}:{name}"),
        (true, _) => format!("{near}:…"),
        (false, _) => near.to_owned(),
    });
    // Few names but those of headers have a dash.
    let is_header = name.is_none() && text.contains('-') && crate::config::is_token(text);
    let header = is_header.then(|| format!("header:{}", text.to_ascii_lowercase()));
    match (near, header) {
        (Some(near), Some(header)) => Some(format!("did you mean `{near}` or `{header}`?")),
        (Some(one), None) | (None, Some(one)) => Some(format!("did you mean `{one}`?")),
        (None, None) => None,
    }
}
