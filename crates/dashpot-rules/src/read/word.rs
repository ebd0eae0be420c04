//! One of a few words.

use crate::nearest::did_you_mean;
use crate::source::Span;

use super::Reader;

/// What others call it.
const OTHER_WORDS: [(&str, &str); 14] = [
    ("open", "allow"),
    ("fail-open", "allow"),
    ("pass", "allow"),
    ("closed", "deny"),
    ("fail-closed", "deny"),
    ("block", "deny"),
    ("reject", "deny"),
    ("refuse", "deny"),
    ("memory", "local"),
    ("ignore", "skip"),
    ("same", "share"),
    ("off", "none"),
    ("gcra", "token-bucket"),
    ("concurrent", "concurrency"),
];

/// What can be said in one of a few words.
pub(crate) trait Word: Sized + Copy + 'static {
    /// The words, and what they mean.
    fn all() -> Vec<(&'static str, Self)>;

    /// The words in a row.
    fn row() -> String {
        Self::all().into_iter().map(|(word, _)| word).collect::<Vec<_>>().join(", ")
    }

    fn find(text: &str, what: &str, span: &Span, reader: &mut Reader<'_>) -> Option<Self> {
        let all = Self::all();
        let known = all.iter().find(|(word, _)| *word == text);
        if known.is_none() {
            let words: Vec<_> = all.iter().map(|(word, _)| *word).collect();
            let message = format!("`{text}` is not {what}; use {}", Self::row());
            let found = reader.problems.error(span, message);
            let meant = OTHER_WORDS
                .iter()
                .find(|(other, word)| other.eq_ignore_ascii_case(text) && words.contains(word));
            let likely = match meant {
                Some((_, word)) => Some(format!("did you mean `{word}`?")),
                None => did_you_mean(text, words),
            };
            if let Some(likely) = likely {
                found.hint(likely);
            }
        }
        known.map(|(_, meaning)| *meaning)
    }
}

/// Reads a [`Word`].
macro_rules! words {
    ($($kind:ty, $what:literal, $all:expr;)+) => {$(
        impl $crate::read::Word for $kind {
            fn all() -> Vec<(&'static str, Self)> {
                $all
            }
        }

        impl $crate::read::Read for $kind {
            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                let one = format!("one of {}", <Self as $crate::read::Word>::row());
                let (text, span) = reader.text(value, &one)?;
                <Self as $crate::read::Word>::find(text, $what, &span, reader)
            }

            fn schema() -> serde_json::Value {
                let words = <Self as $crate::read::Word>::all();
                let words: Vec<_> = words.into_iter().map(|(word, _)| word).collect();
                serde_json::json!({ "enum": words })
            }
        }
    )+};
}
pub(crate) use words;
