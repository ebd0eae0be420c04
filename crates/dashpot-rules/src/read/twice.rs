//! Keys that are written twice.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a key that is there already was written first, if that can be told. `at` is where it is
/// written again.
pub(super) fn first(text: &str, table: &DeTable<'_>, key: &str, at: usize) -> Option<usize> {
    let line_start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
    let line = text.get(line_start..)?.lines().next()?;
    if let Some(path) = section(line) {
        let above = || by_path(table, path).filter(|start| *start < line_start);
        return by_brackets(text.get(..line_start)?, path).or_else(above);
    }
    let mut nearest = None;
    before(text, table, key, at, &mut nearest);
    nearest
}

/// What the brackets of a line say, if it begins a section.
fn section(line: &str) -> Option<&str> {
    let line = line.trim_start();
    line.starts_with('[').then(|| line.trim_start_matches('[').split(']').next())?
}

/// Where the last section of this name begins. The table has forgotten it for the second.
fn by_brackets(text: &str, path: &str) -> Option<usize> {
    let mut at = text.len();
    for line in text.split_inclusive('\n').rev() {
        at -= line.len();
        if section(line) == Some(path) {
            return Some(at);
        }
    }
    None
}

/// Where something is, by the names that lead to it.
fn by_path(table: &DeTable<'_>, path: &str) -> Option<usize> {
    let mut table = table;
    let mut parts = path.split('.').map(str::trim).peekable();
    while let Some(part) = parts.next() {
        let (key, value) = table.get_key_value(part)?;
        if parts.peek().is_none() {
            return Some(key.span().start);
        }
        let last = |list: &'_ toml::de::DeArray<'_>| list.len().checked_sub(1);
        table = match value.get_ref() {
            DeValue::Table(table) => table,
            // `[rule.match]` is about the rule above.
            DeValue::Array(list) => list.get(last(list)?)?.get_ref().as_table()?,
            _ => return None,
        };
    }
    None
}

/// The last place before `at` where a table has the key: that of the table which is being written.
fn before(text: &str, table: &DeTable<'_>, key: &str, at: usize, nearest: &mut Option<usize>) {
    for (name, value) in table {
        let start = name.span().start;
        if name.get_ref() == key && start < at && nearest.is_none_or(|known| known < start) {
            *nearest = Some(start);
        }
        within(text, value, key, at, nearest);
    }
}

fn within(
    text: &str,
    value: &Spanned<DeValue<'_>>,
    key: &str,
    at: usize,
    nearest: &mut Option<usize>,
) {
    match value.get_ref() {
        DeValue::Table(table) => {
            // What is in braces is written to its end, and says nothing about what comes after.
            let is_closed = text.get(value.span()).is_some_and(|text| text.starts_with('{'));
            if !is_closed || value.span().contains(&at) {
                before(text, table, key, at, nearest);
            }
        }
        DeValue::Array(list) => {
            for item in list.iter() {
                within(text, item, key, at, nearest);
            }
        }
        _ => {}
    }
}
