//! Which policy is told of, and the times that are told of it.

use std::cmp::Reverse;
use std::time::Duration;

use dashpot::{Algorithm, Policy, PolicyStatus};

use crate::Wait;
use crate::wait::whole_seconds;

const NANOS_PER_SEC: u64 = 1_000_000_000;

/// The status of each policy that limits something, once, in order.
pub(super) fn applied<'d, 'p>(
    statuses: &'d [PolicyStatus<'p>],
) -> impl Iterator<Item = &'d PolicyStatus<'p>> {
    let is_first = move |index: usize, status: &PolicyStatus<'_>| {
        let mut before = statuses.iter().take(index).filter(|other| is_limited(other));
        !before.any(|other| other.policy().name() == status.policy().name())
    };
    let told =
        move |(index, status)| (is_limited(status) && is_first(index, status)).then_some(status);
    statuses.iter().enumerate().filter_map(told)
}

pub(super) fn is_limited(status: &PolicyStatus<'_>) -> bool {
    !status.policy().quota().is_unlimited()
}

/// The status that matters most to the caller: of those who denied, the one with the longest wait; else of the
/// policies with a limit, the one of which the smallest part remains. The first of equals.
#[must_use]
pub fn governing<'s, 'p>(statuses: &'s [PolicyStatus<'p>]) -> Option<&'s PolicyStatus<'p>> {
    let denied = statuses.iter().filter(|status| status.is_denied());
    let denier = denied.min_by_key(|status| Reverse((status.is_never(), status.retry_after())));
    denier.or_else(|| {
        let limited = statuses.iter().filter(|status| is_limited(status));
        limited.reduce(|one, other| if has_less_left(other, one) { other } else { one })
    })
}

fn has_less_left(one: &PolicyStatus<'_>, other: &PolicyStatus<'_>) -> bool {
    // Of what grants nothing, nothing remains.
    let part = |status: &PolicyStatus<'_>| {
        (u128::from(status.remaining()), u128::from(status.limit().max(1)))
    };
    let ((left, whole), (other_left, other_whole)) = (part(one), part(other));
    left * other_whole < other_left * whole
}

/// The seconds in which a policy grants its limit, `w`: a window's length, and for a bucket the
/// time in which it fills. `None` for what runs by no clock.
pub(super) fn window(status: &PolicyStatus<'_>) -> Option<u64> {
    let nanos = match fill_time(status) {
        Some(fill) => fill,
        None => nanos(status.policy().quota().window()?.length()),
    };
    Some(nanos.div_ceil(NANOS_PER_SEC).max(1))
}

/// The nanoseconds in which an empty bucket fills: B·T, rounded up.
fn fill_time(status: &PolicyStatus<'_>) -> Option<u64> {
    let policy = status.policy();
    if !is_bucket(policy) {
        return None;
    }
    let window = nanos(policy.quota().window()?.length());
    let count = policy.quota().count().filter(|count| *count > 0)?;
    if policy.percent() < 100 && policy.limit() <= 1 {
        // The last unit may take longer than all of them did.
        let fill = policy.depth().div_ceil(policy.rate()?.units.max(1).into());
        return Some(u64::try_from(fill).unwrap_or(u64::MAX));
    }
    // If there are fewer for now, they take as long.
    let limit = if policy.percent() < 100 { policy.whole_limit() } else { status.limit() };
    if limit == count {
        return Some(window);
    }
    // Long division is slow, and seldom needed.
    Some(match limit.checked_mul(window) {
        Some(product) => product.div_ceil(count),
        None => {
            let product = u128::from(limit) * u128::from(window);
            u64::try_from(product.div_ceil(count.into())).unwrap_or(u64::MAX)
        }
    })
}

/// The seconds in which what remains may be used, `t`; on a denial, those to wait. `None` if no
/// clock decides.
pub(super) fn until_more(status: &PolicyStatus<'_>, wait: &Wait, is_allowed: bool) -> Option<u64> {
    if !is_allowed {
        return wait.seconds();
    }
    let window = window(status)?;
    if status.remaining() == 0 {
        return status.available_after().map(|wait| whole_seconds(wait).max(1));
    }
    let told = match status.policy().algorithm() {
        // So that what remains in this time is the policy's rate: an idle bucket must not say that
        // all of it can be used within no time.
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let left = fill_time(status)?.saturating_sub(nanos(status.reset_after()));
            left.div_ceil(NANOS_PER_SEC).max(1)
        }
        // A window that nobody used yet has no end to speak of.
        Algorithm::FixedWindow if status.reset_after().is_zero() => window,
        Algorithm::FixedWindow => whole_seconds(status.reset_after()),
        Algorithm::SlidingLog | Algorithm::SlidingWindow | Algorithm::Concurrency => window,
    };
    Some(told)
}

/// The seconds until the limit is whole again, `reset` in drafts 06 and 07; on a denial, those to
/// wait, if they are known.
pub(super) fn until_reset(status: &PolicyStatus<'_>, wait: &Wait) -> u64 {
    let reset = || whole_seconds(status.reset_after()).saturating_add(wait.extra());
    wait.seconds().unwrap_or_else(reset)
}

fn is_bucket(policy: &Policy) -> bool {
    matches!(policy.algorithm(), Algorithm::TokenBucket | Algorithm::LeakyBucket)
}

/// At most 584 years, which is longer than any window.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
