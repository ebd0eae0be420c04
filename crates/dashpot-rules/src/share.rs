//! What each instance may grant on its own while the store cannot answer.

use std::num::NonZeroU64;
use std::ops::Deref;
use std::sync::OnceLock;

use dashpot::{Check, Decision, MemoryStore, Policy};

/// The policies of a tier, and their shares for several instances, made when they are first asked for.
#[derive(Debug, Default)]
pub(crate) struct Policies {
    whole: Vec<Policy>,
    /// One set for every number of instances there ever were.
    shares: OnceLock<Box<Shares>>,
    /// One set for every percentage there ever was, made when the first is asked for.
    reduced: OnceLock<Box<[OnceLock<Box<Policies>>]>>,
}

#[derive(Debug)]
struct Shares {
    instances: NonZeroU64,
    policies: Vec<Policy>,
    next: OnceLock<Box<Shares>>,
}

/// Of more instances than this only powers of two are told apart, so that there are few sets.
const EACH: u64 = 32;

impl Policies {
    /// So many percent of each policy.
    pub(crate) fn reduced_to(&self, percent: u8) -> &Self {
        if percent >= 100 {
            return self;
        }
        let all = self.reduced.get_or_init(|| (0..100).map(|_| OnceLock::new()).collect());
        let Some(reduced) = all.get(usize::from(percent)) else { return self };
        reduced.get_or_init(|| {
            Box::new(self.whole.iter().map(|policy| policy.reduced_to(percent)).collect())
        })
    }

    /// Each policy's share for one of so many instances.
    pub(crate) fn share(&self, instances: NonZeroU64) -> &[Policy] {
        if instances == NonZeroU64::MIN {
            return &self.whole;
        }
        // More of them is less for each: never too much.
        let rounded = match instances.get() {
            few @ ..=EACH => few,
            many => many.checked_next_power_of_two().unwrap_or(many),
        };
        let instances = NonZeroU64::new(rounded).unwrap_or(instances);
        let mut next = &self.shares;
        loop {
            let shares = next.get_or_init(|| {
                let policies = self.whole.iter().map(|policy| policy.share(instances)).collect();
                Box::new(Shares { instances, policies, next: OnceLock::new() })
            });
            if shares.instances == instances {
                return &shares.policies;
            }
            next = &shares.next;
        }
    }
}

/// Decides by what this process counted itself, of which it may grant its share: of each policy of `wholes`, the one
/// that the check in its place asks.
pub fn decide_by_share<'p, 'w>(
    local: &MemoryStore,
    shares: &[Check<'p, '_>],
    wholes: impl IntoIterator<Item = &'w Policy>,
) -> Decision<'p> {
    let decided = local.decide_now(shares);
    let asked = shares.iter().zip(wholes).zip(decided.statuses());
    let statuses = asked.map(|((share, whole), status)| {
        // What the whole would grant one day is not denied for ever.
        if share.cost.units() <= whole.whole_limit() { status.for_now() } else { *status }
    });
    Decision::new(decided.at(), statuses).degraded()
}

impl FromIterator<Policy> for Policies {
    fn from_iter<I: IntoIterator<Item = Policy>>(policies: I) -> Self {
        Self { whole: policies.into_iter().collect(), ..Self::default() }
    }
}

impl Deref for Policies {
    type Target = [Policy];

    fn deref(&self) -> &[Policy] {
        &self.whole
    }
}
