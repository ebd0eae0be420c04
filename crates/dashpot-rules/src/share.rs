//! What each instance may grant on its own while the store cannot answer.

use std::collections::HashMap;
use std::num::NonZeroU64;

use arc_swap::ArcSwapOption;
use dashpot::Policy;

/// Parts of policies, made when they are first asked for. There are as many as there are policies: for
/// another number of instances they are made anew.
#[derive(Debug, Default)]
pub(crate) struct Shares(ArcSwapOption<Table>);

#[derive(Clone, Debug)]
struct Table {
    parts: NonZeroU64,
    policies: HashMap<Policy, Policy>,
}

impl Shares {
    /// One part of this policy in so many.
    pub(crate) fn part(&self, policy: &Policy, parts: NonZeroU64) -> Policy {
        let table = self.0.load();
        let known = table.as_deref().filter(|table| table.parts == parts);
        if let Some(share) = known.and_then(|table| table.policies.get(policy)) {
            return share.clone();
        }
        let share = policy.share(parts);
        let mut policies = known.map(|table| table.policies.clone()).unwrap_or_default();
        policies.insert(policy.clone(), share.clone());
        // If somebody else does the same, one of the two is made again.
        self.0.store(Some(Table { parts, policies }.into()));
        share
    }
}
