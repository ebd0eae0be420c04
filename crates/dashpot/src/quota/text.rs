//! Quotas as text: `COUNT/WINDOW [burst N]`, `COUNT concurrent`, `unlimited`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::time::Duration;

use super::{NANOS_PER_DAY, NANOS_PER_SEC, Quota, Window, WindowError};

const UNITS: &str = "use s, min, h, day, week, month or year";

/// Exact units by all their names, the name we print first.
const SPANS: [(&[&str], u64); 8] = [
    (&["week", "weeks", "w"], 7 * NANOS_PER_DAY),
    (&["day", "days", "d"], NANOS_PER_DAY),
    (&["h", "hour", "hours"], 3600 * NANOS_PER_SEC),
    (&["min", "minute", "minutes", "m"], 60 * NANOS_PER_SEC),
    (&["s", "sec", "secs", "second", "seconds"], NANOS_PER_SEC),
    (&["ms"], 1_000_000),
    (&["us", "µs"], 1000),
    (&["ns"], 1),
];

/// Units counted in months, likewise.
const MONTHS: [(&[&str], u32); 2] = [(&["year", "years"], 12), (&["month", "months"], 1)];

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (multiple, unit) = match self.as_months() {
            Some(months) => largest(&MONTHS, months),
            None => largest(&SPANS, self.nanos()),
        };
        match multiple {
            1 => f.write_str(unit),
            _ if unit == "day" => write!(f, "{multiple}d"),
            _ => write!(f, "{multiple}{unit}"),
        }
    }
}

/// `amount` in the largest unit that measures it exactly; the last unit measures everything.
fn largest<N>(units: &[(&'static [&'static str], N)], amount: N) -> (u64, &'static str)
where
    N: Copy + Into<u64>,
{
    let amount = amount.into();
    units
        .iter()
        .map(|&(names, size)| (size.into(), names.first().copied().unwrap_or_default()))
        .find(|(size, _)| amount.is_multiple_of(*size))
        .map_or((amount, ""), |(size, name)| (amount / size, name))
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.count(), self.window()) {
            (None, _) => f.write_str("unlimited"),
            (Some(count), None) => write!(f, "{count} concurrent"),
            (Some(count), Some(window)) => {
                write!(f, "{count}/{window}")?;
                match self.explicit_burst() {
                    Some(burst) => write!(f, " burst {burst}"),
                    None => Ok(()),
                }
            }
        }
    }
}

impl FromStr for Window {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cursor = Cursor::new(text);
        let window = cursor.window()?;
        cursor.end()?;
        Ok(window)
    }
}

impl FromStr for Quota {
    type Err = ParseQuotaError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut cursor = Cursor::new(text);
        let word = cursor.peek_word();
        if word.text == "unlimited" {
            cursor.skip(word);
            cursor.end()?;
            return Ok(Self::UNLIMITED);
        }
        let count = cursor.count()?;
        if !cursor.eat('/') {
            let word = cursor.peek_word();
            if word.text != "concurrent" {
                return Err(cursor.error(word, "expected `/` and a window, as in 100/min"));
            }
            cursor.skip(word);
            cursor.end()?;
            return Ok(Self::concurrent(count));
        }
        let quota = Self::new(count, cursor.window()?);
        let word = cursor.peek_word();
        if word.text != "burst" {
            cursor.end()?;
            return Ok(quota);
        }
        if count == 0 {
            return Err(cursor.error(word, "a count of 0 never allows anything, burst or not"));
        }
        cursor.skip(word);
        let number = cursor.peek_word();
        let capacity = cursor.count()?;
        if capacity == 0 {
            let message = "a burst of 0 never allows anything; write a count of 0 instead";
            return Err(cursor.error(number, message));
        }
        cursor.end()?;
        Ok(quota.burst(capacity))
    }
}

/// Why a text is not a quota, and where.
///
/// ```
/// let error = "10/fortnight".parse::<dashpot::Quota>().unwrap_err();
/// assert_eq!(error.column(), 4);
/// assert_eq!(
///     error.to_string(),
///     "column 4: `fortnight` is not a unit of time; use s, min, h, day, week, month or year"
/// );
/// assert_eq!(error.excerpt(), "10/fortnight\n   ^^^^^^^^^");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseQuotaError {
    text: String,
    span: Range<usize>,
    message: String,
}

impl ParseQuotaError {
    /// The bytes of the text that are wrong; empty at the end if something is missing.
    #[must_use]
    pub fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The character at which the wrong part starts, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        self.width(0..self.span.start) + 1
    }

    /// What is wrong, and what to write instead.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The text, and below it carets under the wrong part.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let indent = " ".repeat(self.width(0..self.span.start));
        let carets = "^".repeat(self.width(self.span.clone()).max(1));
        format!("{}\n{indent}{carets}", self.text)
    }

    fn width(&self, span: Range<usize>) -> usize {
        self.text.get(span).map_or(0, |part| part.chars().count())
    }
}

impl fmt::Display for ParseQuotaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "column {}: {}", self.column(), self.message)
    }
}

impl std::error::Error for ParseQuotaError {}

/// A run of characters of the text, and where it starts.
#[derive(Clone, Copy)]
struct Word<'t> {
    text: &'t str,
    start: usize,
}

/// Reads a text from left to right.
struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn skip_spaces(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The longest run of matching characters from here, not yet consumed.
    fn peek_while(&mut self, matches: impl Fn(char) -> bool) -> Word<'t> {
        self.skip_spaces();
        let rest = self.rest();
        let end = rest.find(|c| !matches(c)).unwrap_or(rest.len());
        Word { text: rest.get(..end).unwrap_or_default(), start: self.at }
    }

    fn peek_word(&mut self) -> Word<'t> {
        self.peek_while(|c| !c.is_whitespace() && c != '/')
    }

    fn skip(&mut self, word: Word<'_>) {
        self.at = word.start + word.text.len();
    }

    fn eat(&mut self, wanted: char) -> bool {
        self.skip_spaces();
        let found = self.rest().starts_with(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn end(&mut self) -> Result<(), ParseQuotaError> {
        let rest = self.peek_while(|_| true);
        if rest.text.is_empty() {
            return Ok(());
        }
        Err(self.error(rest, "expected nothing more, or `burst N` after the window"))
    }

    fn error(&self, word: Word<'_>, message: impl Into<String>) -> ParseQuotaError {
        ParseQuotaError {
            text: self.text.to_owned(),
            span: word.start..word.start + word.text.trim_end().len(),
            message: message.into(),
        }
    }

    /// Digits, `_` between them as you like.
    fn digits(&mut self) -> Result<Option<u64>, ParseQuotaError> {
        let word = self.peek_while(|c| c.is_ascii_digit() || c == '_');
        let digits = word.text.replace('_', "");
        if digits.is_empty() {
            return Ok(None);
        }
        self.skip(word);
        match digits.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(self.error(word, format!("more than {}", u64::MAX))),
        }
    }

    /// Digits and a magnitude: `100`, `5k`, `1M`, `2G`.
    fn count(&mut self) -> Result<u64, ParseQuotaError> {
        let whole = self.peek_word();
        let Some(number) = self.digits()? else {
            return Err(self.error(whole, "expected a whole number, as in 100/min"));
        };
        if self.rest().starts_with(char::is_whitespace) {
            return Ok(number); // What comes next is a word of its own.
        }
        let suffix = self.peek_while(char::is_alphanumeric);
        let factor = match suffix.text {
            "" => 1,
            "k" | "K" => 1_000,
            "M" => 1_000_000,
            "G" => 1_000_000_000,
            "T" => 1_000_000_000_000,
            _ => return Err(self.error(suffix, "expected digits, or one of k, M, G, T")),
        };
        self.skip(suffix);
        number
            .checked_mul(factor)
            .ok_or_else(|| self.error(whole, format!("more than {}", u64::MAX)))
    }

    /// An optional multiple and a unit: `min`, `5min`, `30d`.
    fn window(&mut self) -> Result<Window, ParseQuotaError> {
        let whole = self.peek_word();
        let multiple = self.digits()?.unwrap_or(1);
        let unit = self.peek_word();
        if unit.text.is_empty() {
            return Err(self.error(unit, format!("expected a unit of time; {UNITS}")));
        }
        match measure(multiple, unit.text) {
            Some(Ok(window)) => {
                self.skip(unit);
                Ok(window)
            }
            Some(Err(wrong)) => Err(self.error(whole, wrong.to_string())),
            None if unit.text.starts_with('.') => {
                Err(self.error(unit, "write a smaller unit instead, as in 1500ms"))
            }
            None => {
                let message = format!("`{}` is not a unit of time; {UNITS}", unit.text);
                Err(self.error(unit, message))
            }
        }
    }
}

/// So many of the unit of this name, if there is one.
fn measure(multiple: u64, name: &str) -> Option<Result<Window, WindowError>> {
    if let Some((_, months)) = MONTHS.iter().find(|(names, _)| names.contains(&name)) {
        let months = multiple.saturating_mul((*months).into());
        return Some(Window::months(u32::try_from(months).unwrap_or(u32::MAX)));
    }
    let (_, nanos) = SPANS.iter().find(|(names, _)| names.contains(&name))?;
    Some(Window::new(Duration::from_nanos(multiple.saturating_mul(*nanos))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn reads(text: &str, quota: Quota, canonical: &str) {
        assert_eq!(text.parse(), Ok(quota));
        assert_eq!(quota.to_string(), canonical);
        assert_eq!(canonical.parse(), Ok(quota));
    }

    fn every(secs: u64) -> Window {
        Window::new(Duration::from_secs(secs)).unwrap()
    }

    #[test]
    fn the_forms_of_the_contract() {
        reads("100/min", Quota::per_minute(100), "100/min");
        reads("10/s burst 20", Quota::per_second(10).burst(20), "10/s burst 20");
        reads("5/5min", Quota::new(5, every(300)), "5/5min");
        reads("1000/day", Quota::per_day(1000), "1000/day");
        reads("3/h", Quota::per_hour(3), "3/h");
        reads("50000/30d", Quota::new(50_000, every(30 * 86_400)), "50000/30d");
        reads("1M/month", Quota::per_month(1_000_000), "1000000/month");
        reads("0/s", Quota::per_second(0), "0/s");
        reads("unlimited", Quota::UNLIMITED, "unlimited");
        reads("10 concurrent", Quota::concurrent(10), "10 concurrent");
    }

    #[test]
    fn every_name_of_every_unit() {
        for (names, nanos) in SPANS {
            for name in names {
                let window = Window::new(Duration::from_nanos(nanos)).unwrap();
                assert_eq!(format!("7/{name}").parse(), Ok(Quota::new(7, window)));
            }
        }
        for (names, months) in MONTHS {
            for name in names {
                let window = Window::months(months).unwrap();
                assert_eq!(format!("7/{name}").parse(), Ok(Quota::new(7, window)));
            }
        }
    }

    #[test]
    fn spaces_underscores_and_magnitudes() {
        reads(
            " 1_000 / min  burst  2k ",
            Quota::per_minute(1000).burst(2000),
            "1000/min burst 2000",
        );
        reads("2G/day", Quota::per_day(2_000_000_000), "2000000000/day");
        reads(
            "1/1500ms",
            Quota::new(1, Window::new(Duration::from_millis(1500)).unwrap()),
            "1/1500ms",
        );
        reads("9/3months", Quota::new(9, Window::months(3).unwrap()), "9/3month");
        reads("9/24month", Quota::new(9, Window::months(24).unwrap()), "9/2year");
    }

    #[track_caller]
    fn rejects(text: &str, column: usize, part: &str) {
        let error = text.parse::<Quota>().unwrap_err();
        assert_eq!(error.column(), column, "{text}: {error}");
        assert!(error.to_string().contains(part), "{text}: {error}");
    }

    #[test]
    fn errors_point_at_the_character() {
        rejects("", 1, "whole number");
        rejects("ten/s", 1, "whole number");
        rejects("-5/s", 1, "whole number");
        rejects("10", 3, "expected `/`");
        rejects("10 per second", 4, "expected `/`");
        rejects("10m/s", 3, "k, M, G, T");
        rejects("1.5/s", 2, "expected `/`");
        rejects("10/", 4, "unit of time");
        rejects("10/fortnight", 4, "`fortnight` is not a unit");
        rejects("10/5", 5, "unit of time");
        rejects("10/1.5s", 5, "1500ms");
        rejects("10/0s", 4, "longer than nothing");
        rejects("10/101year", 4, "100 years");
        rejects("10/99999999999year", 4, "100 years");
        rejects("10/s burst", 11, "whole number");
        rejects("10/s bust 20", 6, "burst N");
        rejects("10/s burst 20 more", 15, "nothing more");
        rejects("0/s burst 5", 5, "never allows");
        rejects("10/s burst 0", 12, "count of 0");
        rejects("10//s", 4, "expected a unit");
        rejects("99999999999999999999/s", 1, "more than");
        rejects("99999999999G/s", 1, "more than");
        rejects("5 concurrent burst 3", 14, "nothing more");
        rejects("10/µ", 4, "not a unit");
    }

    #[test]
    fn the_excerpt_underlines_the_wrong_part() {
        let error = "10/s bust 20".parse::<Quota>().unwrap_err();
        assert_eq!(error.excerpt(), "10/s bust 20\n     ^^^^^^^");
        let error = "10/µm".parse::<Quota>().unwrap_err();
        assert_eq!(error.excerpt(), "10/µm\n   ^^");
        assert_eq!(error.span(), 3..6);
    }
}
