//! `Retry-After`: written in seconds, read in all its forms.

use std::str;
use std::time::{Duration, SystemTime};

use http::HeaderValue;

use crate::wait::whole_seconds;

/// The `Retry-After` field: how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RetryAfter(Duration);

impl RetryAfter {
    /// The longest wait that is believed: a quota of a year can mean it, and who says more means
    /// "never" or nothing. Also, so much can be added to any clock.
    pub const MAX: Self = Self(Duration::from_secs(366 * 86_400));

    /// To come back after this wait.
    #[must_use]
    pub const fn new(wait: Duration) -> Self {
        Self(wait)
    }

    /// How long to wait.
    #[must_use]
    pub const fn wait(self) -> Duration {
        self.0
    }

    /// The field's value: whole seconds, rounded up, at least 1.
    #[must_use]
    pub fn to_value(self) -> HeaderValue {
        HeaderValue::from(self.seconds())
    }

    fn seconds(self) -> u64 {
        whole_seconds(self.0).max(1)
    }

    /// Reads seconds or a date. A date in the past is no wait; a wait beyond [`MAX`](Self::MAX) is
    /// taken for that. `None` if it is neither.
    #[must_use]
    pub fn parse(value: &[u8], now: SystemTime) -> Option<Self> {
        let text = str::from_utf8(value.trim_ascii()).ok()?;
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let wait = if is_number {
            // Too many digits for a number are too long a wait.
            Duration::from_secs(text.parse().unwrap_or(u64::MAX))
        } else {
            let date = httpdate::parse_http_date(text).ok()?;
            date.duration_since(now).unwrap_or(Duration::ZERO)
        };
        Some(Self(wait).min(Self::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_written_in_seconds_rounded_up() {
        let written = |nanos| RetryAfter::new(Duration::from_nanos(nanos)).to_value();
        for (nanos, text) in [
            (0, "1"),
            (1, "1"),
            (1_000_000_000, "1"),
            (1_000_000_001, "2"),
            (u64::MAX, "18446744074"),
        ] {
            assert_eq!(written(nanos), text);
        }
        assert_eq!(RetryAfter::new(Duration::MAX).to_value(), u64::MAX.to_string());
    }

    #[test]
    fn seconds_and_dates_are_read() {
        // Sun, 06 Nov 1994 08:49:37 GMT.
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777);
        let read = |text: &str| RetryAfter::parse(text.as_bytes(), now).map(RetryAfter::wait);
        let secs = Duration::from_secs;
        for (text, wait) in [
            ("0", secs(0)),
            (" 120\t", secs(120)),
            ("00001", secs(1)),
            ("Sun, 06 Nov 1994 08:49:47 GMT", secs(10)),
            ("Sunday, 06-Nov-94 08:49:47 GMT", secs(10)),
            ("Sun Nov  6 08:49:47 1994", secs(10)),
            ("Sun, 06 Nov 1994 08:49:27 GMT", secs(0)),
            ("Fri, 31 Dec 9999 23:59:59 GMT", RetryAfter::MAX.wait()),
            ("31622401", RetryAfter::MAX.wait()),
            ("99999999999999999999999999999999", RetryAfter::MAX.wait()),
        ] {
            assert_eq!(read(text), Some(wait), "{text}");
        }
    }

    #[test]
    fn what_is_neither_is_ignored() {
        let now = SystemTime::UNIX_EPOCH;
        let texts = ["", " ", "-1", "+1", "1.5", "1s", "soon", "Sun, 06 Nov", "1 2", "0x10", "١"];
        for text in texts {
            assert_eq!(RetryAfter::parse(text.as_bytes(), now), None, "{text}");
        }
        assert_eq!(RetryAfter::parse(b"1\xff", now), None);
    }
}
