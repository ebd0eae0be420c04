//! `Retry-After`, and what vendors send beside it.

use std::time::Duration;

use dashpot::Timestamp;
use http::HeaderMap;
use http::header::RETRY_AFTER;

use super::{LONGEST, text, wait};

/// How long to wait, if it is told. Who tells it twice means the longer one: that is never too early.
pub(super) fn read(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let lines = headers.get_all(RETRY_AFTER).iter();
    let told = lines.filter_map(|line| parse(line.to_str().ok()?.trim(), now));
    let finer = ["retry-after-ms", "x-ms-retry-after-ms"];
    let finer = finer.iter().filter_map(|name| {
        let nanos = wait::decimal(text(headers, name)?, 6)?;
        Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)))
    });
    told.chain(finer).max().map(|wait| wait.min(LONGEST))
}

/// Seconds or a date. A date in the past is no wait.
fn parse(text: &str, now: Timestamp) -> Option<Duration> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number {
        // Too many digits for a number are too long a wait.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    Some(wait::moment(text)?.since(now))
}
