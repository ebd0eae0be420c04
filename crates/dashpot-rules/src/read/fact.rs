//! Facts nobody knows.

use crate::nearest::nearest;
use crate::source::Span;
use crate::{Fact, ParseFactError};

use super::{Mistake, Reader};
use crate::problem::Problems;

impl Mistake for ParseFactError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        tell(self, text, span, reader.problems);
    }
}

/// Says why a text is no fact, and which one was probably meant.
pub(crate) fn tell(error: &ParseFactError, text: &str, span: &Span, problems: &mut Problems) {
    match error {
        ParseFactError::Unknown(_) if text.is_empty() => {
            problems.error(span, "a fact is missing here");
        }
        ParseFactError::Unknown(_) => {
            let found = problems.error(span, format!("`{text}` is not a fact"));
            found.hint(likely(text).unwrap_or_else(|| format!("use {}", ParseFactError::KNOWN)));
        }
        ParseFactError::Name { .. } => {
            problems.error(span, error.to_string());
        }
    }
}

fn likely(text: &str) -> Option<String> {
    let (beginning, name) = match text.split_once(':') {
        Some((beginning, name)) => (beginning, Some(name)),
        None => (text, None),
    };
    let near =
        nearest(beginning, Fact::beginnings()).map(|near| match (Fact::needs_name(near), name) {
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
