//! What is wrong with a rule file, where, and what to write instead.

use std::collections::HashSet;
use std::error::Error;
use std::fmt;

use crate::live::Seen;
use crate::source::{Place, Source, Span, without_passwords};

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, and will probably not do what was meant.
    Advice,
}

/// One thing that is wrong, or better done otherwise.
///
/// ```text
/// dashpot.toml:3:11: error: `fortnight` is not a unit of time; use s, min, h, day, week, month or year
///   |
/// 3 | limits = ["10/fortnight"]
///   |               ^^^^^^^^^
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    severity: Severity,
    place: Place,
    message: String,
    hint: Option<String>,
}

impl Problem {
    /// How bad it is.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        self.severity
    }

    /// Where it is.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// What it is.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// What to do about it, if the message does not say so.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Place { line, column, excerpt, width, .. } = &self.place;
        let level = match self.severity {
            Severity::Error => "error",
            Severity::Advice => "advice",
        };
        let number = line.to_string();
        let margin = " ".repeat(number.len());
        let indent = " ".repeat(column.saturating_sub(1));
        let carets = "^".repeat(*width);
        write!(f, "{}: {level}: {}", self.place, self.message)?;
        if !excerpt.is_empty() {
            writeln!(f, "\n{margin} |")?;
            writeln!(f, "{number} | {excerpt}")?;
            write!(f, "{margin} | {indent}{carets}")?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\n{margin} = {hint}"),
            None => Ok(()),
        }
    }
}

/// Everything that is wrong with a rule file, in the order of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleErrors {
    problems: Vec<Problem>,
    /// The files that were named, in which the mistake may be.
    pub(crate) named: Vec<Seen>,
}

impl RuleErrors {
    /// All of them; there is at least one.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }
}

impl fmt::Display for RuleErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl Error for RuleErrors {}

/// The most that is told at once.
const TOLD_MAX: usize = 100;

/// Hints longer than this, in bytes, are not repeated.
const LONG_HINT: usize = 80;

/// What was found so far.
#[derive(Debug, Default)]
pub(crate) struct Problems(Vec<Found>);

#[derive(Debug)]
pub(crate) struct Found {
    severity: Severity,
    span: Span,
    message: String,
    hint: Option<String>,
    is_hidden: bool,
}

impl Found {
    /// Shows nothing of the line.
    pub(crate) fn hide(&mut self) {
        self.is_hidden = true;
    }

    pub(crate) fn hint(&mut self, hint: impl Into<String>) {
        self.hint = Some(hint.into());
    }
}

impl Problems {
    pub(crate) fn error(&mut self, span: &Span, message: impl Into<String>) -> &mut Found {
        self.add(Severity::Error, span, message.into())
    }

    pub(crate) fn advise(&mut self, span: &Span, message: impl Into<String>) -> &mut Found {
        self.add(Severity::Advice, span, message.into())
    }

    fn add(&mut self, severity: Severity, span: &Span, message: String) -> &mut Found {
        // What is wrong with each limit of a rule is said once, if it is the rule's fault.
        let is_new =
            self.0.last().is_none_or(|last| (&last.span, &last.message) != (span, &message));
        if is_new {
            let span = span.clone();
            self.0.push(Found { severity, span, message, hint: None, is_hidden: false });
        }
        let last = self.0.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "there is one")]
        &mut self.0[last]
    }

    pub(crate) fn has_errors(&self) -> bool {
        self.0.iter().any(|found| found.severity == Severity::Error)
    }

    /// Whether there are so many that nobody will read what comes now.
    pub(crate) fn are_many(&self) -> bool {
        self.0.len() >= TOLD_MAX
    }

    /// A list of all there is helps once.
    fn say_long_hints_once(&mut self) {
        let mut said = HashSet::new();
        for found in &mut self.0 {
            found.hint = found
                .hint
                .take()
                .filter(|hint| hint.len() <= LONG_HINT || said.insert(hint.clone()));
        }
    }

    /// The advice, if nothing is wrong; else what is.
    pub(crate) fn conclude(mut self, sources: &[Source]) -> Result<Vec<Problem>, RuleErrors> {
        let failed = self.has_errors();
        if failed {
            self.0.retain(|found| found.severity == Severity::Error);
        }
        self.0.sort_by_key(|found| (found.span.source, found.span.bytes.start));
        self.say_long_hints_once();
        // Nobody reads more, and a file may be nothing but mistakes.
        let left_out = self.0.len().saturating_sub(TOLD_MAX);
        self.0.truncate(TOLD_MAX);
        if left_out > 0
            && let Some(last) = self.0.last_mut()
        {
            last.hint = Some(format!("and {left_out} more like these"));
        }
        let place = |found: Found| {
            let mut place = Place::of(&found.span, sources);
            if found.is_hidden {
                place.excerpt.clear();
            }
            let (message, hint) = (fit_to_print(found.message), found.hint.map(fit_to_print));
            Problem { severity: found.severity, place, message, hint }
        };
        let problems = self.0.into_iter().map(place).collect();
        if failed { Err(RuleErrors { problems, named: Vec::new() }) } else { Ok(problems) }
    }
}

/// What is quoted of a file may be anything: a terminal or a log is not to act on it, nor to know a password. Where a
/// quote is missing, a URL may be where a key is expected.
fn fit_to_print(text: String) -> String {
    let text = if text.contains("://") { without_passwords(&text) } else { text };
    if !text.contains(char::is_control) {
        return text;
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            shown.extend(letter.escape_default());
        } else {
            shown.push(letter);
        }
    }
    shown
}
