//! What servers tell, as it is written in the wild.

mod differential;
mod malformed;
mod properties;
mod vectors;

use std::fmt::Write;

use dashpot::Timestamp;
use dashpot_client::{Allowance, Refill, Told, Unit};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Tue, 14 Nov 2023 22:13:20 GMT.
const NOW: u64 = 1_700_000_000;

/// Headers, one in each line.
fn headers(lines: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(':').expect("a name and a value");
        let name: HeaderName = name.parse().unwrap();
        headers.append(name, HeaderValue::from_str(value.trim()).unwrap());
    }
    headers
}

/// What is read of them, in a line for each thing that is told.
fn read(lines: &str) -> Vec<String> {
    words(&Told::read(&headers(lines), Timestamp::from_secs(NOW)))
}

fn words(told: &Told) -> Vec<String> {
    let mut lines: Vec<_> = told.allowances.iter().map(line).collect();
    lines.extend(told.retry_after.map(|wait| format!("retry after {wait:?}")));
    lines.extend(told.should_retry.map(|said| format!("should retry: {said}")));
    lines
}

/// `burst: 50/100 requests, all in 30s`.
fn line(allowance: &Allowance) -> String {
    let Allowance { name, unit, limit, remaining, reset_after, refill, .. } = allowance;
    let number = |number: &Option<u64>| number.map_or("?".to_owned(), |number| number.to_string());
    let unit = match unit {
        Unit::Requests => "requests",
        Unit::Tokens => "tokens",
        _ => "units",
    };
    let how = match refill {
        Refill::AtOnce => "all",
        _ => "bit by bit",
    };
    let mut line = format!("{name}: {}/{} {unit}, {how}", number(remaining), number(limit));
    if let Some(wait) = reset_after {
        write!(line, " in {wait:?}").unwrap();
    }
    line
}
