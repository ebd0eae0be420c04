//! One of a few words.

use crate::problem::did_you_mean;
use crate::source::Span;

use super::Reader;

/// What can be said in one of a few words.
pub(crate) trait Word: Sized + Copy + 'static {
    /// The words, and what they mean.
    fn all() -> Vec<(&'static str, Self)>;

    fn find(text: &str, what: &str, span: &Span, reader: &mut Reader<'_>) -> Option<Self> {
        let all = Self::all();
        let known = all.iter().find(|(word, _)| *word == text);
        if known.is_none() {
            let words: Vec<_> = all.iter().map(|(word, _)| *word).collect();
            let message = format!("`{text}` is not {what}; use {}", words.join(", "));
            let found = reader.problems.error(span, message);
            if let Some(likely) = did_you_mean(text, words) {
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
                let (text, span) = reader.text(value, $what)?;
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
