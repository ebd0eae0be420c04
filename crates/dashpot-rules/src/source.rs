//! The texts rules are read from, and places in them.

use std::fmt;
use std::ops::Range;

/// A file's name and what it says.
#[derive(Clone, PartialEq, Eq)]
pub struct Source {
    name: String,
    text: String,
    is_secret: bool,
}

impl Source {
    /// A text, and the name by which errors call it.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into(), is_secret: false }
    }

    /// The same, of which errors show nothing but the place.
    pub(crate) fn secret(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { is_secret: true, ..Self::new(name, text) }
    }

    pub(crate) const fn is_secret(&self) -> bool {
        self.is_secret
    }

    /// The name by which errors call it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it says.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Debug for Source {
    /// Without what it says, which may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Which bytes of which source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) source: usize,
    pub(crate) bytes: Range<usize>,
}

impl Span {
    /// A part of it, counted from its start.
    pub(crate) fn part(&self, part: Range<usize>) -> Self {
        let start = self.bytes.start.saturating_add(part.start).min(self.bytes.end);
        let end = self.bytes.start.saturating_add(part.end).min(self.bytes.end);
        Self { source: self.source, bytes: start..end }
    }

    /// How to say where it is to somebody who is elsewhere: `line 3`, or `10-one.toml:3`.
    pub(crate) fn seen_from(&self, elsewhere: &Self, sources: &[Source]) -> String {
        let Place { file, line, .. } = Place::of(self, sources);
        if self.source == elsewhere.source {
            format!("line {line}")
        } else {
            format!("{file}:{line}")
        }
    }
}

/// A value, and where it is written.
#[derive(Clone, Debug)]
pub(crate) struct Written<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// A place people can go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
    /// The character of the line, counted from 1.
    pub column: usize,
    /// What the line says, fit to be printed. Empty if others should not read it, or it is too long.
    pub excerpt: String,
    /// How many of its characters are meant; at least 1.
    pub width: usize,
}

impl Place {
    pub(crate) fn of(span: &Span, sources: &[Source]) -> Self {
        let source = sources.get(span.source);
        let (file, text) = source.map_or(("", ""), |source| (source.name(), source.text()));
        let is_secret = source.is_some_and(|source| source.is_secret);
        let start = floor_boundary(text, span.bytes.start);
        let end = floor_boundary(text, span.bytes.end).max(start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(line_start..).unwrap_or_default();
        let line = rest.lines().next().unwrap_or_default();
        let meant = text.get(start..end.min(line_start + line.len()).max(start));
        Self {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before.get(line_start..).unwrap_or_default().chars().count() + 1,
            excerpt: if is_secret || line.len() > LINE_MAX {
                String::new()
            } else {
                printable(line)
            },
            width: meant.unwrap_or_default().chars().count().max(1),
        }
    }
}

/// Lines longer than this, in bytes, show no one where to look.
const LINE_MAX: usize = 1000;

/// What of a file's text may be sent to a terminal: no control characters, tabs as one space so that
/// what is below stays below; and no passwords, which may be in a URL.
pub(crate) fn printable(line: &str) -> String {
    without_passwords(line).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// Stars in the place of who a URL says to be.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("://") {
        let url = after.split(['"', '\'', ' ']).next().unwrap_or_default();
        let (user, _) = url.rsplit_once('@').unwrap_or_default();
        shown.extend([before, "://", &"*".repeat(user.chars().count())]);
        rest = after.get(user.len()..).unwrap_or_default();
    }
    shown.push_str(rest);
    shown
}

fn floor_boundary(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}
