//! From TOML to what is written there, without stopping at the first mistake.
//!
//! Everything a rule file may say is a [`section`] with its keys, their types and what they mean,
//! once: it is read by that, its JSON Schema says that, and a key that is not there is an error.

mod list;
mod word;

use std::ops::Range;
use std::time::Duration;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use list::{List, Map, Tables};
pub(crate) use word::{Word, words};

use crate::problem::{Problems, did_you_mean};
use crate::source::{Source, Span, Written};

/// What can be written as a value.
pub(crate) trait Read: Sized {
    /// What it says, or nothing after telling what is wrong with it.
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self>;

    /// What it may say.
    fn schema() -> Value;
}

/// Reads one source, and notes what is wrong.
pub(crate) struct Reader<'p> {
    pub(crate) source: usize,
    pub(crate) problems: &'p mut Problems,
    /// Whether nothing of the source may be told.
    is_secret: bool,
}

impl Reader<'_> {
    pub(crate) fn span(&self, bytes: Range<usize>) -> Span {
        Span { source: self.source, bytes }
    }

    /// Notes that something else was expected here.
    pub(crate) fn expected<T>(&mut self, value: &Spanned<DeValue<'_>>, what: &str) -> Option<T> {
        let span = self.span(value.span());
        let found = match value.get_ref() {
            DeValue::Array(_) => "a list",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Float(_) => "a fraction",
            DeValue::Integer(_) => "a number",
            DeValue::String(_) => "a text",
            DeValue::Table(_) => "a table",
        };
        self.problems.error(&span, format!("expected {what}, found {found}"));
        None
    }

    /// A text, and where it is without its quotes.
    pub(crate) fn text<'v>(
        &mut self,
        value: &'v Spanned<DeValue<'_>>,
        what: &str,
    ) -> Option<(&'v str, Span)> {
        let Some(text) = value.get_ref().as_str() else {
            return self.expected(value, what);
        };
        let mut span = self.span(value.span());
        // Without escapes and in plain quotes, each character is where it seems to be.
        if span.bytes.len() == text.len() + 2 {
            span = span.part(1..text.len() + 1);
        }
        Some((text, span))
    }

    /// Notes a key that nobody knows.
    pub(crate) fn unknown(&mut self, key: &str, span: Range<usize>, known: &[&str]) {
        let span = self.span(span);
        let message =
            if self.is_secret { "unknown key".to_owned() } else { format!("unknown key `{key}`") };
        let found = self.problems.error(&span, message);
        let likely = did_you_mean(key, known.iter().copied());
        found.hint(likely.unwrap_or_else(|| format!("known here: {}", known.join(", "))));
    }
}

/// Reads a whole file. What can be understood is, whatever else is wrong.
pub(crate) fn read_file<T: Read>(
    sources: &[Source],
    source: usize,
    problems: &mut Problems,
) -> Option<T> {
    let text = sources.get(source).map(Source::text).unwrap_or_default();
    let is_secret = sources.get(source).is_some_and(Source::is_secret);
    let mut reader = Reader { source, problems, is_secret };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or_default();
        let span = reader.span(at);
        reader.problems.error(&span, error.message());
    }
    let span = table.span();
    T::read(&Spanned::new(span, DeValue::Table(table.into_inner())), &mut reader)
}

impl<T: Read> Read for Written<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let span = reader.span(value.span());
        Some(Self { value: T::read(value, reader)?, span })
    }

    fn schema() -> Value {
        T::schema()
    }
}

impl Read for String {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        reader.text(value, "a text").map(|(text, _)| text.to_owned())
    }

    fn schema() -> Value {
        json!({ "type": "string" })
    }
}

impl Read for bool {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        value.get_ref().as_bool().or_else(|| reader.expected(value, "true or false"))
    }

    fn schema() -> Value {
        json!({ "type": "boolean" })
    }
}

impl Read for u64 {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(number) = value.get_ref().as_integer() else {
            return reader.expected(value, "a whole number");
        };
        let digits = number.as_str().trim_start_matches('+');
        Self::from_str_radix(digits, number.radix())
            .ok()
            .or_else(|| reader.expected(value, "a whole number that is not negative"))
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
    }
}

impl Read for Duration {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let (text, span) = reader.text(value, "a time, as in \"20ms\"")?;
        match text.parse::<dashpot::Window>() {
            Ok(window) => Some(window.length()),
            Err(error) => {
                reader.problems.error(&span.part(error.span()), error.message());
                None
            }
        }
    }

    fn schema() -> Value {
        json!({ "type": "string", "examples": ["20ms", "5s", "1min"] })
    }
}

/// Anything that is written as a text and parsed by its own rules.
macro_rules! texts {
    ($($kind:ty, $what:literal, $($example:literal),+;)+) => {$(
        impl $crate::read::Read for $kind {
            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                let (text, span) = reader.text(value, $what)?;
                match text.parse::<$kind>() {
                    Ok(parsed) => Some(parsed),
                    Err(error) => {
                        $crate::read::Mistake::tell(&error, text, &span, reader);
                        None
                    }
                }
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "type": "string", "examples": [$($example),+] })
            }
        }
    )+};
}
pub(crate) use texts;

/// What is wrong with a text.
pub(crate) trait Mistake {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>);
}

impl Mistake for dashpot::ParseQuotaError {
    fn tell(&self, _: &str, span: &Span, reader: &mut Reader<'_>) {
        reader.problems.error(&span.part(self.span()), self.message());
    }
}

impl Mistake for crate::ParseFactError {
    fn tell(&self, text: &str, span: &Span, reader: &mut Reader<'_>) {
        let found = reader.problems.error(span, self.to_string());
        let beginning = text.split(':').next().unwrap_or_default();
        if let Self::Unknown(_) = self
            && let Some(likely) = did_you_mean(beginning, crate::Fact::beginnings())
        {
            found.hint(likely);
        }
    }
}

/// A table with known keys: a struct, how to read it, and its schema.
macro_rules! section {
    ($(
        $(#[doc = $about:literal])+
        $name:ident requires [$($required:literal),*] {$(
            $(#[doc = $doc:literal])+
            $key:ident: $kind:ty,
        )+}
    )+) => {$(
        $(#[doc = $about])+
        #[derive(Clone, Debug, Default)]
        pub(crate) struct $name {
            $(
                $(#[doc = $doc])+
                pub(crate) $key: Option<$crate::source::Written<$kind>>,
            )+
            /// What is written, but not so that it could be read.
            #[allow(dead_code, reason = "few sections ask")]
            pub(crate) misread: Vec<&'static str>,
        }

        impl $crate::read::Read for $name {
            fn read(
                value: &toml::Spanned<toml::de::DeValue<'_>>,
                reader: &mut $crate::read::Reader<'_>,
            ) -> Option<Self> {
                const KEYS: &[&str] = &[$($crate::read::plain(stringify!($key))),+];
                const REQUIRED: &[&str] = &[$($required),*];
                let Some(table) = value.get_ref().as_table() else {
                    return reader.expected(value, "a table");
                };
                let mut section = Self::default();
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        $(
                            known if known == $crate::read::plain(stringify!($key)) => {
                                // Where the syntax is wrong, there may be a value of no length that
                                // nobody wrote.
                                if !value.span().is_empty() {
                                    section.$key = $crate::read::Read::read(value, reader);
                                }
                                if section.$key.is_none() {
                                    section.misread.push($crate::read::plain(stringify!($key)));
                                }
                            }
                        )+
                        unknown => reader.unknown(unknown, key.span(), KEYS),
                    }
                }
                for required in REQUIRED {
                    if !table.contains_key(*required) {
                        let span = reader.span(value.span());
                        reader.problems.error(&span, format!("`{required}` is missing here"));
                    }
                }
                Some(section)
            }

            fn schema() -> serde_json::Value {
                let mut properties = serde_json::Map::new();
                $(
                    let mut property = <$kind as $crate::read::Read>::schema();
                    if let Some(property) = property.as_object_mut() {
                        let text = $crate::read::paragraph(&[$($doc),+]);
                        property.insert("description".to_owned(), text.into());
                    }
                    properties.insert($crate::read::plain(stringify!($key)).to_owned(), property);
                )+
                let required: &[&str] = &[$($required),*];
                serde_json::json!({
                    "type": "object",
                    "description": $crate::read::paragraph(&[$($about),+]),
                    "additionalProperties": false,
                    "required": required,
                    "properties": properties,
                })
            }
        }
    )+};
}
pub(crate) use section;

/// A key as it is written, without what Rust needs to tell it from a word of its own.
pub(crate) const fn plain(key: &'static str) -> &'static str {
    match key.as_bytes() {
        [b'r', b'#', ..] => key.split_at(2).1,
        _ => key,
    }
}

/// The lines of a comment as one paragraph.
pub(crate) fn paragraph(lines: &[&str]) -> String {
    lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ")
}
