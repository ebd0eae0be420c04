#![no_main]

//! `Retry-After`, as servers write it and as we do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dashpot_http::RetryAfter;
use httpdate::{fmt_http_date, parse_http_date};
use libfuzzer_sys::fuzz_target;

/// Fri, 15 Jan 2027 08:00:00 GMT.
const NOW: Duration = Duration::from_secs(1_800_000_000);
/// The last second that dates can tell, and how long waits are at most.
const LAST: u64 = 253_402_300_799;
const YEAR: Duration = Duration::from_secs(366 * 86_400);

fuzz_target!(|data: &[u8]| {
    let now = UNIX_EPOCH + NOW;
    let read = |value: &[u8]| RetryAfter::parse(value, now).map(RetryAfter::wait);
    let wait = read(data);
    assert!(wait.is_none_or(|wait| wait <= YEAR), "{wait:?}");
    assert_eq!(read(&[b" \t", data, b" "].concat()), wait);
    assert_eq!(wait, meant(data, now), "{:?}", data.escape_ascii().to_string());
    let Some(wait) = wait else { return };

    // As we write it it is no shorter, and longer by less than a second; but no wait is a second.
    let written = RetryAfter::new(wait).to_value();
    let again = read(written.as_bytes()).expect("what we wrote is read");
    assert!(again >= wait && again < wait.max(Duration::from_nanos(1)) + Duration::from_secs(1));
    // And as a date it is the same.
    let date = fmt_http_date(now + wait);
    assert_eq!(read(date.as_bytes()), Some(wait), "{date}");
    // Any moment there is, as a date.
    let seconds = str::from_utf8(data.trim_ascii()).ok().and_then(|text| text.parse::<u64>().ok());
    if let Some(seconds) = seconds.filter(|seconds| *seconds <= LAST) {
        let moment = Duration::from_secs(seconds);
        let date = fmt_http_date(UNIX_EPOCH + moment);
        let wait = moment.saturating_sub(NOW).min(YEAR);
        assert_eq!(read(date.as_bytes()), Some(wait), "{date}");
    }
});

/// Digit by digit, or by the library of dates.
fn meant(value: &[u8], now: SystemTime) -> Option<Duration> {
    let text = str::from_utf8(value.trim_ascii()).ok()?;
    if let Ok(date) = parse_http_date(text) {
        return Some(date.duration_since(now).unwrap_or_default().min(YEAR));
    }
    let digit = |seconds: u64, byte: u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(seconds.saturating_mul(10).saturating_add(digit))
    };
    let seconds = text.bytes().try_fold(0, digit).filter(|_| !text.is_empty())?;
    Some(Duration::from_secs(seconds).min(YEAR))
}
