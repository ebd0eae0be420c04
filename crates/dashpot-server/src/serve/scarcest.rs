//! Of several statuses, the one to tell of.

use std::cmp::Reverse;

use dashpot::{Outcome, PolicyStatus};

/// The status that says most: of who denied, the one with the longest wait; else of whom the smallest part remains.
pub(crate) fn scarcest<'a, 'p>(statuses: &'a [PolicyStatus<'p>]) -> Option<&'a PolicyStatus<'p>> {
    let denied = statuses.iter().filter(|status| status.outcome() == Outcome::Deny);
    let denier = denied.min_by_key(|status| Reverse((status.is_never(), status.retry_after())));
    denier.or_else(|| statuses.iter().min_by_key(|status| part(status)))
}

/// The part that remains, of a million: exact enough to choose by.
fn part(status: &PolicyStatus<'_>) -> u128 {
    u128::from(status.remaining()) * 1_000_000 / u128::from(status.limit().max(1))
}
