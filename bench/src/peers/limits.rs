//! dashpot deciding `N` limits on one key at once.

use std::array;
use std::hint::black_box;

use dashpot::{Check, MemoryStore, Policy};

use super::dashpot::capped_store;
use super::policy;
use crate::peer::{Peer, Rate, Setup};

pub(crate) struct Limits<const N: usize> {
    store: MemoryStore,
    policies: [Policy; N],
}

impl<const N: usize> Peer for Limits<N> {
    /// The last limit is the one asked for; those before it never deny.
    fn new(setup: &Setup) -> Self {
        let rate = |i| if i + 1 == N { setup.rate } else { Rate::ample(setup.keys) };
        let policies = array::from_fn(|i| policy(&format!("limit {i}"), rate(i)));
        Self { store: capped_store(u64::MAX), policies }
    }

    fn check(&self, key: &String) -> bool {
        let checks = self.policies.each_ref().map(|policy| Check::new(policy, key));
        black_box(self.store.decide_now(&checks)).is_allowed()
    }
}
