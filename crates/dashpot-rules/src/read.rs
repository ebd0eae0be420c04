//! From TOML to what is written there, without stopping at the first mistake.
//!
//! Everything a rule file may say is a [`section`] with its keys, their types and what they mean,
//! once: it is read by that, its JSON Schema says that, and a key that is not there is an error.

mod fact;
mod list;
mod table;
mod time;
mod twice;
mod word;

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(crate) use fact::{PARTS, tell as tell_fact};
pub(crate) use list::{List, Map, Tables};
pub(crate) use word::{Word, words};

use crate::nearest::did_you_mean;
use crate::problem::{Found, Problems};
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
    /// The key whose value is read.
    pub(crate) key: &'static str,
    /// Whether nothing of the source may be told.
    is_secret: bool,
}

impl Reader<'_> {
    pub(crate) fn span(&self, bytes: Range<usize>) -> Span {
        Span { source: self.source, bytes }
    }

    /// Where a text is, without its quotes.
    fn inside(&self, bytes: Range<usize>, text: &str) -> Span {
        let span = self.span(bytes);
        // Without escapes and in plain quotes, each character is where it seems to be.
        let is_plain = span.bytes.len() == text.len() + 2;
        if is_plain { span.part(1..text.len() + 1) } else { span }
    }

    /// Where a value is; a text without its quotes.
    pub(crate) fn place(&self, value: &Spanned<DeValue<'_>>) -> Span {
        match value.get_ref() {
            DeValue::String(text) => self.inside(value.span(), text),
            _ => self.span(value.span()),
        }
    }

    /// Where a key is, without its quotes.
    pub(crate) fn place_of_key(&self, key: &Spanned<Cow<'_, str>>) -> Span {
        self.inside(key.span(), key.get_ref())
    }

    /// Notes that a table was expected here, and how to write it.
    pub(crate) fn expected_table<T>(&mut self, value: &Spanned<DeValue<'_>>) -> Option<T> {
        let hint = table::as_table(self.key, value.get_ref());
        let found = self.unexpected(value, "a table");
        if let Some(hint) = hint {
            found.hint(hint);
        }
        None
    }

    /// Notes that something else was expected here.
    pub(crate) fn expected<T>(&mut self, value: &Spanned<DeValue<'_>>, what: &str) -> Option<T> {
        self.unexpected(value, what);
        None
    }

    fn unexpected(&mut self, value: &Spanned<DeValue<'_>>, what: &str) -> &mut Found {
        let span = self.place(value);
        let found = match value.get_ref() {
            DeValue::Array(_) => "a list",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Float(_) => "a fraction",
            DeValue::Integer(_) => "a number",
            DeValue::String(_) => "a text",
            DeValue::Table(_) => "a table",
        };
        self.problems.error(&span, format!("expected {what}, found {found}"))
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
        Some((text, self.place(value)))
    }

    /// Notes a key that nobody knows.
    pub(crate) fn unknown(&mut self, key: &Spanned<Cow<'_, str>>, known: &[&str]) {
        let span = self.place_of_key(key);
        let key = key.get_ref();
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
    let mut reader = Reader { source, problems, key: "", is_secret };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or_default();
        let message =
            if error.message() == "duplicate key" && !is_secret && !reader.problems.are_many() {
                duplicate(text, table.get_ref(), at.clone())
            } else {
                error.message().to_owned()
            };
        let span = reader.span(at);
        reader.problems.error(&span, message);
    }
    let span = table.span();
    T::read(&Spanned::new(span, DeValue::Table(table.into_inner())), &mut reader)
}

/// Says which key is there twice, and where it was first.
fn duplicate(text: &str, table: &DeTable<'_>, at: Range<usize>) -> String {
    let key = text.get(at.clone()).unwrap_or_default().trim_matches(['"', '\'']);
    match twice::first(text, table, key, at.start) {
        Some(first) => {
            let line = text.get(..first).unwrap_or_default().matches('\n').count() + 1;
            format!("`{key}` is here already (line {line})")
        }
        None => format!("`{key}` is here already"),
    }
}

impl<T: Read> Read for Written<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let span = reader.place(value);
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
        let parsed = Self::from_str_radix(digits, number.radix()).ok();
        if parsed.is_none() {
            let number = if number.radix() == 10 { digits } else { "this number" };
            let wrong = if digits.starts_with('-') { "negative" } else { "too large" };
            let span = reader.place(value);
            reader.problems.error(&span, format!("{number} is {wrong}"));
        }
        parsed
    }

    fn schema() -> Value {
        json!({ "type": "integer", "minimum": 0 })
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
                    return reader.expected_table(value);
                };
                let mut section = Self::default();
                for (key, value) in table {
                    match key.get_ref().as_ref() {
                        $(
                            known if known == $crate::read::plain(stringify!($key)) => {
                                // Where the syntax is wrong, there may be a value of no length that
                                // nobody wrote.
                                if !value.span().is_empty() {
                                    reader.key = $crate::read::plain(stringify!($key));
                                    section.$key = $crate::read::Read::read(value, reader);
                                }
                                if section.$key.is_none() {
                                    section.misread.push($crate::read::plain(stringify!($key)));
                                }
                            }
                        )+
                        _ => reader.unknown(key, KEYS),
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
