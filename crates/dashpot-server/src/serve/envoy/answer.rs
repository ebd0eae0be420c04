//! How a call is answered.

use std::time::Duration;

use dashpot::{Decision, Percent, Policy, PolicyStatus, Timestamp};
use dashpot_http::{Wait, headers};
use dashpot_rules::Headers;
use http::header::{HeaderValue as Value, RETRY_AFTER};
use smallvec::SmallVec;

use super::decide::{Decided, Outcomes};
use super::message::{
    self, Code, DescriptorStatus, HeaderValue, RateLimit, RateLimitResponse, Unit,
};
use super::question::{Held, Part, Written};

/// The answer.
pub(super) fn tell(
    parts: &[Part<'_>],
    decided: &Decided<'_>,
    config: &Headers,
) -> RateLimitResponse {
    let both = parts.iter().zip(&decided.outcomes);
    let statuses = both.map(|(part, outcomes)| status(part, outcomes, decided.at)).collect();
    RateLimitResponse {
        overall_code: code(decided.is_over()),
        statuses,
        response_headers_to_add: describe(decided, config),
    }
}

const fn code(is_over: bool) -> i32 {
    if is_over { Code::OverLimit as i32 } else { Code::Ok as i32 }
}

/// How one descriptor stands.
fn status(part: &Part<'_>, outcomes: &Outcomes<'_>, at: Timestamp) -> DescriptorStatus {
    let code = code(outcomes.is_over);
    let nothing = DescriptorStatus {
        code,
        current_limit: None,
        limit_remaining: 0,
        duration_until_reset: None,
    };
    if let Held::Unlimited = part.held {
        return DescriptorStatus { limit_remaining: u32::MAX, ..nothing };
    }
    // Of several, the one that matters.
    let statuses = &outcomes.statuses;
    let status = headers::governing(statuses).or(statuses.first());
    let Some(status) = status else { return nothing };
    let policy = status.policy();
    if policy.quota().is_unlimited() {
        return DescriptorStatus { limit_remaining: u32::MAX, ..nothing };
    }
    let clamp = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let Written { count, unit, name } = match part.held {
        Held::Limit { written, .. } => written,
        _ => Written {
            count: clamp(told(policy)),
            unit: policy.quota().window().map_or(Unit::Unknown, Unit::of),
            name: policy.name(),
        },
    };
    DescriptorStatus {
        current_limit: Some(RateLimit {
            requests_per_unit: count,
            unit: unit.into(),
            name: name.to_owned(),
        }),
        limit_remaining: clamp(status.remaining()),
        duration_until_reset: Some(until_reset(status, at)),
        ..nothing
    }
}

/// How much a policy grants in a window: as much less as there is less of it, and at least one.
fn told(policy: &Policy) -> u64 {
    let count = policy.quota().count().unwrap_or_default();
    Percent::new(policy.percent()).part_of(count).max(count.min(1))
}

/// Whole seconds, rounded up: Envoy tells callers no other, and who comes too early is denied again.
fn until_reset(status: &PolicyStatus<'_>, at: Timestamp) -> message::Duration {
    let wait = status.retry_after();
    let time = match status.policy().window_at(at) {
        Some(window) => {
            let end = Duration::from_nanos(window.end.saturating_sub(at.as_nanos()));
            // Who is blocked may have to wait for longer.
            end.max(wait.unwrap_or_default())
        }
        None => wait.unwrap_or_else(|| status.reset_after()),
    };
    let part = i64::from(time.subsec_nanos() > 0);
    let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
    message::Duration { seconds: seconds.saturating_add(part) }
}

/// Of several that share a name, the one that says most: nobody could tell them apart.
fn one_of_each<'p>(statuses: &[PolicyStatus<'p>]) -> SmallVec<[PolicyStatus<'p>; 4]> {
    let mut told: SmallVec<[PolicyStatus<'p>; 4]> = SmallVec::new();
    for status in statuses {
        let name = status.policy().name();
        match told.iter_mut().find(|known| known.policy().name() == name) {
            Some(known) => *known = *headers::governing(&[*known, *status]).unwrap_or(status),
            None => told.push(*status),
        }
    }
    told
}

/// What Envoy is to tell the caller.
fn describe(decided: &Decided<'_>, config: &Headers) -> Vec<HeaderValue> {
    if decided.enforced.is_empty() {
        return Vec::new();
    }
    let decision = Decision::new(decided.at, one_of_each(&decided.enforced));
    let jitter = if decided.is_over() { config.jitter } else { Duration::ZERO };
    let wait = Wait::of(&decision, jitter);
    let mut told = headers::list(&decision, &wait, config);
    if let Some(seconds) = wait.seconds() {
        told.push((RETRY_AFTER, Value::from(seconds)));
    }
    let each = told.iter().filter_map(|(name, value)| {
        let value = value.to_str().ok()?.to_owned();
        Some(HeaderValue { key: name.as_str().to_owned(), value })
    });
    each.collect()
}
