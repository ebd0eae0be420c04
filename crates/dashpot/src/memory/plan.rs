//! What a call's checks come to: who is asked about, and for how much in all.

use smallvec::{SmallVec, smallvec};

use super::shard::Place;
use crate::Policy;

/// All checks of one call on one place.
pub(super) struct Group<'a> {
    pub(super) place: Place<'a>,
    pub(super) cost: u64,
}

impl Group<'_> {
    /// Whether there is anything to remember: peeks take nothing, and without a limit nothing is
    /// counted.
    pub(super) fn takes_something(&self) -> bool {
        self.cost > 0 && !self.place.policy.quota().is_unlimited()
    }
}

pub(super) struct Plan<'a> {
    /// In the order of their shards, so that all calls lock in one order.
    pub(super) groups: SmallVec<[Group<'a>; 4]>,
    /// The group of each check.
    pub(super) members: SmallVec<[usize; 4]>,
}

impl<'a> Plan<'a> {
    pub(super) fn new(checks: impl ExactSizeIterator<Item = Group<'a>>) -> Self {
        let mut plan = Self { groups: SmallVec::new(), members: smallvec![0; checks.len()] };
        let mut asked: SmallVec<[(usize, Group<'a>); 4]> = checks.enumerate().collect();
        asked.sort_unstable_by_key(|(_, check)| (check.place.shard(), check.place.hash));
        for (index, check) in asked {
            let group = plan.join(check);
            if let Some(member) = plan.members.get_mut(index) {
                *member = group;
            }
        }
        plan
    }

    /// Adds a check to its group, or makes it one. Checks come sorted, so only the groups at the
    /// end can be of the same hash.
    fn join(&mut self, check: Group<'a>) -> usize {
        let count = self.groups.len();
        let alike = self.groups.iter_mut().enumerate().rev();
        for (index, group) in alike.take_while(|(_, group)| group.place.hash == check.place.hash) {
            if group.place.is(check.place.policy, check.place.key) {
                group.cost = group.cost.saturating_add(check.cost);
                group.place.policy = stricter(group.place.policy, check.place.policy);
                return index;
            }
        }
        self.groups.push(check);
        count
    }
}

/// Of two limits on the same counters in one call, the one that grants less.
fn stricter<'a>(one: &'a Policy, other: &'a Policy) -> &'a Policy {
    let grants = |policy: &Policy| (policy.limit(), policy.quota().count());
    if grants(other) < grants(one) { other } else { one }
}
