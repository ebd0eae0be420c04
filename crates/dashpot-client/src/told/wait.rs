//! When there is more: as seconds, moments and durations are written in the wild.

use std::time::{Duration, SystemTime};

use dashpot::Timestamp;

use super::LONGEST;

/// Above this many seconds, a number is a moment.
const MOMENT: u128 = 1_000_000_000;
/// Above this, it is one in milliseconds.
const MOMENT_IN_MILLIS: u128 = 1_000_000_000_000;

/// How long until then: seconds, a moment in seconds or milliseconds since the epoch, an RFC 3339 time, a duration as Go
/// writes it, or an HTTP date.
pub(super) fn parse(text: &str, now: Timestamp) -> Option<Duration> {
    let wait = if let Some(nanos) = decimal(text, 9) {
        let seconds = nanos / 1_000_000_000;
        if seconds > MOMENT_IN_MILLIS {
            since_epoch(nanos / 1000).since(now)
        } else if seconds > MOMENT {
            since_epoch(nanos).since(now)
        } else {
            Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
        }
    } else if let Ok(moment) = text.parse::<jiff::Timestamp>() {
        since_epoch(u128::try_from(moment.as_nanosecond()).unwrap_or(0)).since(now)
    } else if let Ok(duration) = text.parse::<jiff::SignedDuration>() {
        duration.try_into().unwrap_or(Duration::ZERO)
    } else {
        moment(text)?.since(now)
    };
    Some(wait.min(LONGEST))
}

/// An HTTP date.
pub(super) fn moment(text: &str) -> Option<Timestamp> {
    let date = httpdate::parse_http_date(text).ok()?;
    Some(since_epoch(date.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()))
}

fn since_epoch(nanos: u128) -> Timestamp {
    Timestamp::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A number without sign, with or without a fraction, in units of 10⁻ⁿ: rounded up, as waits are.
pub(super) fn decimal(text: &str, places: usize) -> Option<u128> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let is_there = !whole.is_empty() && (text.len() == whole.len() || !fraction.is_empty());
    if !is_there || !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let kept = fraction.get(..places).unwrap_or(fraction);
    let is_more = fraction.bytes().skip(places).any(|digit| digit != b'0');
    // More digits than a number has are more than anybody waits.
    let digits = format!("{whole}{kept:0<places$}");
    let number = if digits.len() > 30 { u128::MAX } else { digits.parse().ok()? };
    Some(number.saturating_add(u128::from(is_more)))
}
