//! Where a policy finds its table.

use std::sync::Arc;

use super::group::Shape;
use super::table::Table;
use crate::Policy;
use crate::algorithm::Short;

/// Where a store keeps the keys of a policy, kept in the policy so that a check finds it at once.
#[derive(Debug)]
pub(crate) struct Home {
    /// The store's number.
    store: u64,
    pub(super) table: Arc<Table>,
    /// The bits of the policy's definition there; 0, which is in no mark, if it has none.
    pub(super) bits: u64,
    /// The policy's algorithm, if it is a short one and its states are one word here: the slots may
    /// be those of an earlier definition.
    pub(super) short: Option<Short>,
}

impl Home {
    pub(super) fn new(store: u64, table: Arc<Table>, policy: &Policy) -> Self {
        let bits = table.definition_bits(policy.definition()).unwrap_or(0);
        let short = policy.definition().engine.short().filter(|_| table.shape() == Shape::ONE);
        Self { store, table, bits, short }
    }

    /// The home of a policy, if it is in this store.
    #[inline]
    pub(super) fn of(policy: &Policy, store: u64) -> Option<&Self> {
        policy.home().get().filter(|home| home.store == store)
    }
}
