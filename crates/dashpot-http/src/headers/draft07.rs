//! Draft 07 of the IETF: `RateLimit: limit=100, remaining=75, reset=30`.

use dashpot::{Decision, PolicyStatus};

use super::told::until_reset;
use super::{RATELIMIT, Sink, Value, push_integer, remaining, set, set_policies_by_number};
use crate::Wait;

pub(super) fn describe(
    decision: &Decision<'_>,
    status: &PolicyStatus<'_>,
    wait: &Wait,
    out: &mut impl Sink,
) {
    set_policies_by_number(decision, out);
    let mut value = Value::new();
    value.push(b"limit=");
    push_integer(&mut value, status.limit());
    value.push(b", remaining=");
    push_integer(&mut value, remaining(decision, status));
    value.push(b", reset=");
    push_integer(&mut value, until_reset(status, wait));
    set(RATELIMIT, &value, out);
}
