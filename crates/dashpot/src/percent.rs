//! Parts of a whole.

use std::fmt;
use std::str::FromStr;

/// A part of a whole, to a hundredth of a percent: `80%`, `0.5%`, `110%`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u32);

impl Percent {
    /// All of it.
    pub const WHOLE: Self = Self(10_000);

    /// So many percent.
    #[must_use]
    pub const fn new(percent: u8) -> Self {
        Self(percent as u32 * 100)
    }

    /// So many of so many; nothing of nothing is nothing. More than four million percent are not told apart.
    #[must_use]
    pub fn of(part: u64, whole: u64) -> Self {
        let hundredths = u128::from(part) * 10_000 / u128::from(whole.max(1));
        Self(u32::try_from(hundredths).unwrap_or(u32::MAX))
    }

    /// A part as a fraction: 0.5 is half. What is no number is nothing.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "what is beyond is cut"
    )]
    pub fn from_fraction(fraction: f64) -> Self {
        Self((fraction * 10_000.0).round() as u32)
    }

    /// The same as a fraction.
    #[must_use]
    pub fn as_fraction(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }

    /// In hundredths of a percent.
    #[must_use]
    pub const fn hundredths(self) -> u32 {
        self.0
    }

    /// This part of a count, rounded down.
    #[must_use]
    pub fn part_of(self, count: u64) -> u64 {
        let part = u128::from(count) * u128::from(self.0) / 10_000;
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    /// In whole percents, rounded down; at most 255.
    #[must_use]
    pub fn whole_percents(self) -> u8 {
        u8::try_from(self.0 / 100).unwrap_or(u8::MAX)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:02}", self.0 / 100, self.0 % 100);
        write!(f, "{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A text is no part of a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a part is written in percent, as in \"80%\" or \"0.5%\"")]
pub struct ParsePercentError;

impl FromStr for Percent {
    type Err = ParsePercentError;

    fn from_str(text: &str) -> Result<Self, ParsePercentError> {
        let number = text.strip_suffix('%').ok_or(ParsePercentError)?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || whole.len() > 6 || decimals.len() > 2 {
            return Err(ParsePercentError);
        }
        format!("{whole}{decimals:0<2}").parse().map(Self).map_err(|_| ParsePercentError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_read() {
        for text in ["80%", "0.5%", "0.05%", "100%", "110%", "0%", "999999.99%"] {
            assert_eq!(text.parse::<Percent>().unwrap().to_string(), text);
        }
        assert_eq!("80 %".parse(), Ok(Percent::new(80)));
        assert_eq!("1.50%".parse::<Percent>().unwrap().to_string(), "1.5%");
        for text in ["", "%", "80", "0.8", "-1%", "1e2%", "0.005%", ".5%", "5.%", "1000000%", "٣%"]
        {
            assert_eq!(text.parse::<Percent>(), Err(ParsePercentError), "{text}");
        }
    }

    #[test]
    fn parts_are_rounded_down() {
        assert_eq!(Percent::of(1, 3).hundredths(), 3333);
        assert_eq!(Percent::of(5, 0), Percent::of(u64::MAX, 0).min(Percent::of(5, 1)));
        assert_eq!(Percent::new(80).part_of(9), 7);
        assert_eq!(Percent::WHOLE.part_of(u64::MAX), u64::MAX);
        assert_eq!(Percent::from_fraction(0.729).whole_percents(), 72);
        assert_eq!(Percent::from_fraction(f64::NAN), Percent::default());
        assert_eq!(Percent::from_fraction(-1.0), Percent::default());
    }
}
