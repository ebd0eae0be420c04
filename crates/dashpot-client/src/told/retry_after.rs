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
    // Some say it in fractions. More digits than a number has are too long a wait.
    match wait::decimal(text, 9) {
        Some(nanos) => Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))),
        None => Some(wait::moment(text)?.since(now)),
    }
}
