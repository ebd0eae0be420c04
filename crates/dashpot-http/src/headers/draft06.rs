//! Draft 06 of the IETF: `RateLimit-Limit: 100`, `RateLimit-Remaining: 50`, `RateLimit-Reset: 30`.

use dashpot::{Decision, PolicyStatus};
use http::HeaderName;

use super::told::until_reset;
use super::{Sink, remaining, set_number, set_policies_by_number};
use crate::Wait;

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");

pub(super) fn describe(
    decision: &Decision<'_>,
    status: &PolicyStatus<'_>,
    wait: &Wait,
    out: &mut impl Sink,
) {
    set_policies_by_number(decision, out);
    set_number(LIMIT, status.limit(), out);
    set_number(REMAINING, remaining(decision, status), out);
    set_number(RESET, until_reset(status, wait), out);
}
