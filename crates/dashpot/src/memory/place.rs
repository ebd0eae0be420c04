//! Where a check's counters are.

use std::ops::Deref;
use std::sync::Arc;

use super::table::Table;
use crate::Policy;

/// Under this policy, this key.
#[derive(Clone)]
pub(super) struct Place<'p> {
    pub(super) policy: &'p Policy,
    /// If there is one yet.
    pub(super) table: Option<TableRef<'p>>,
    /// What the key is known by there.
    pub(super) mark: u64,
}

impl Place<'_> {
    /// Where those who wait for it stand in line.
    pub(super) fn line(&self) -> u64 {
        (self.mark ^ self.policy.definition().identity_hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// A table: as a rule the one the policy knows of.
#[derive(Clone)]
pub(super) enum TableRef<'p> {
    Home(&'p Table),
    Shared(Arc<Table>),
}

impl Deref for TableRef<'_> {
    type Target = Table;

    fn deref(&self) -> &Table {
        match self {
            Self::Home(table) => table,
            Self::Shared(table) => table,
        }
    }
}
