//! Several values.

use serde_json::{Value, json};
use toml::Spanned;
use toml::de::DeValue;

use super::{Read, Reader};
use crate::source::Written;

/// A list of values; one alone may go without the brackets.
#[derive(Clone, Debug)]
pub(crate) struct List<T>(pub(crate) Vec<Written<T>>);

impl<T: Read> Read for List<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(items) = value.get_ref().as_array() else {
            return Some(Self(vec![Written::read(value, reader)?]));
        };
        let items: Vec<_> = items.iter().map(|item| Written::read(item, reader)).collect();
        items.into_iter().collect::<Option<_>>().map(Self)
    }

    fn schema() -> Value {
        let item = T::schema();
        json!({ "anyOf": [{ "type": "array", "items": item }, item] })
    }
}

/// A list of tables: `[[rule]]`.
#[derive(Clone, Debug)]
pub(crate) struct Tables<T>(pub(crate) Vec<Written<T>>);

impl<T: Read> Read for Tables<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(items) = value.get_ref().as_array() else {
            let span = reader.span(value.span());
            let found = reader.problems.error(&span, "expected a list of tables");
            found.hint("write double brackets, as in [[rule]]: there may be several");
            return None;
        };
        // What is wrong with one of them says nothing about the others.
        Some(Self(items.iter().filter_map(|item| Written::read(item, reader)).collect()))
    }

    fn schema() -> Value {
        json!({ "type": "array", "items": T::schema() })
    }
}

/// Values by names that are free to choose.
#[derive(Clone, Debug)]
pub(crate) struct Map<T>(pub(crate) Vec<(Written<String>, Written<T>)>);

impl<T: Read> Read for Map<T> {
    fn read(value: &Spanned<DeValue<'_>>, reader: &mut Reader<'_>) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            return reader.expected_table(value);
        };
        let mut entries = Vec::new();
        for (key, value) in table {
            let span = reader.place_of_key(key);
            let key = Written { value: key.get_ref().to_string(), span };
            entries.extend(Written::read(value, reader).map(|value| (key, value)));
        }
        // As they are written, not by their names.
        entries.sort_by_key(|(key, _)| key.span.bytes.start);
        Some(Self(entries))
    }

    fn schema() -> Value {
        json!({ "type": "object", "additionalProperties": T::schema() })
    }
}
