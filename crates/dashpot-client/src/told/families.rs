//! Three headers each: a limit, what remains of it, and when there is more.

use dashpot::Timestamp;
use http::HeaderMap;

use super::{Allowance, Refill, Unit, text, wait};

/// Three headers that belong together.
struct Family {
    name: &'static str,
    unit: Unit,
    refill: Refill,
    limit: &'static str,
    remaining: &'static str,
    reset: &'static str,
}

/// Vendors that tell of several quotas. All of them fill up bit by bit, and tell when they will be full.
const VENDORS: &[Family] = &[
    Family {
        name: "requests",
        unit: Unit::Requests,
        refill: Refill::Steadily,
        limit: "x-ratelimit-limit-requests",
        remaining: "x-ratelimit-remaining-requests",
        reset: "x-ratelimit-reset-requests",
    },
    Family {
        name: "tokens",
        unit: Unit::Tokens,
        refill: Refill::Steadily,
        limit: "x-ratelimit-limit-tokens",
        remaining: "x-ratelimit-remaining-tokens",
        reset: "x-ratelimit-reset-tokens",
    },
    Family {
        name: "anthropic-requests",
        unit: Unit::Requests,
        refill: Refill::Steadily,
        limit: "anthropic-ratelimit-requests-limit",
        remaining: "anthropic-ratelimit-requests-remaining",
        reset: "anthropic-ratelimit-requests-reset",
    },
    Family {
        name: "anthropic-tokens",
        unit: Unit::Tokens,
        refill: Refill::Steadily,
        limit: "anthropic-ratelimit-tokens-limit",
        remaining: "anthropic-ratelimit-tokens-remaining",
        reset: "anthropic-ratelimit-tokens-reset",
    },
    Family {
        name: "anthropic-input-tokens",
        unit: Unit::Tokens,
        refill: Refill::Steadily,
        limit: "anthropic-ratelimit-input-tokens-limit",
        remaining: "anthropic-ratelimit-input-tokens-remaining",
        reset: "anthropic-ratelimit-input-tokens-reset",
    },
    Family {
        name: "anthropic-output-tokens",
        unit: Unit::Other,
        refill: Refill::Steadily,
        limit: "anthropic-ratelimit-output-tokens-limit",
        remaining: "anthropic-ratelimit-output-tokens-remaining",
        reset: "anthropic-ratelimit-output-tokens-reset",
    },
];

/// Ways to tell of one and the same quota: the first that is there is enough.
const ALIKE: &[Family] = &[
    Family {
        name: "ratelimit",
        unit: Unit::Requests,
        refill: Refill::AtOnce,
        limit: "ratelimit-limit",
        remaining: "ratelimit-remaining",
        reset: "ratelimit-reset",
    },
    Family {
        name: "x-ratelimit",
        unit: Unit::Requests,
        refill: Refill::AtOnce,
        limit: "x-ratelimit-limit",
        remaining: "x-ratelimit-remaining",
        reset: "x-ratelimit-reset",
    },
    Family {
        name: "x-rate-limit",
        unit: Unit::Requests,
        refill: Refill::AtOnce,
        limit: "x-rate-limit-limit",
        remaining: "x-rate-limit-remaining",
        reset: "x-rate-limit-reset",
    },
];

/// Reads all that is there. Older ways to say it only if nothing newer was found.
pub(super) fn read(headers: &HeaderMap, now: Timestamp, out: &mut Vec<Allowance>) {
    if out.is_empty() {
        out.extend(ALIKE.iter().find_map(|family| family.read(headers, now)));
    }
    out.extend(VENDORS.iter().filter_map(|family| family.read(headers, now)));
}

impl Family {
    fn read(&self, headers: &HeaderMap, now: Timestamp) -> Option<Allowance> {
        let remaining = text(headers, self.remaining).and_then(count);
        let reset = text(headers, self.reset);
        let reset_after = reset.and_then(|reset| wait::parse(first(reset), now));
        if remaining.is_none() && reset_after.is_none() {
            return None;
        }
        Some(Allowance {
            name: self.name.into(),
            unit: self.unit,
            limit: text(headers, self.limit).and_then(count),
            remaining,
            reset_after,
            refill: self.refill,
        })
    }
}

/// The first of a list, without parameters: `10, 10;w=1` is 10.
fn first(text: &str) -> &str {
    // A date has a comma of its own.
    let is_listed = text.starts_with(|first: char| first.is_ascii_digit());
    let end = text.find([',', ';']).filter(|_| is_listed).unwrap_or(text.len());
    text.get(..end).unwrap_or(text).trim()
}

/// A number of units. Some servers count in fractions: what is not whole is not there.
fn count(text: &str) -> Option<u64> {
    let text = first(text);
    let whole = text.split_once('.').map_or(text, |(whole, _)| whole);
    wait::decimal(text, 0)?;
    Some(whole.parse().unwrap_or(u64::MAX))
}
