//! As GitHub has it: `X-RateLimit-Limit: 100`, `X-RateLimit-Remaining: 87`, and
//! `X-RateLimit-Reset: 1668447600`, when the limit is whole again.

use dashpot::{Decision, PolicyStatus};
use http::HeaderName;

use super::{Sink, remaining, set_number};
use crate::Wait;
use crate::wait::whole_seconds;

const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

pub(super) fn describe(
    decision: &Decision<'_>,
    status: &PolicyStatus<'_>,
    wait: &Wait,
    out: &mut impl Sink,
) {
    set_number(LIMIT, status.limit(), out);
    set_number(REMAINING, remaining(decision, status), out);
    let now = decision.at().since(dashpot::Timestamp::EPOCH);
    let reset = whole_seconds(now.saturating_add(status.reset_after()));
    set_number(RESET, reset.saturating_add(wait.extra()), out);
}
