//! All tables of a store, and which one is a policy's.

use std::sync::Arc;

use hashbrown::HashTable;

use super::MemoryStore;
use super::home::Home;
use super::place::{Place, TableRef};
use super::pool::Pool;
use super::table::Table;
use crate::policy::Definition;
use crate::{Check, Key, Policy};

/// Tables by number, and by what they count.
#[derive(Debug, Default)]
pub(super) struct Tables {
    list: Vec<Arc<Table>>,
    by_identity: HashTable<Arc<Table>>,
}

impl Tables {
    pub(super) fn get(&self, number: u32) -> Option<&Arc<Table>> {
        self.list.get(usize::try_from(number).ok()?)
    }

    pub(super) fn all(&self) -> &[Arc<Table>] {
        &self.list
    }

    fn find(&self, wanted: &Definition) -> Option<&Arc<Table>> {
        let is_it = |table: &Arc<Table>| {
            table.first_definition().is_some_and(|known| known.same_counters(wanted))
        };
        self.by_identity.find(wanted.identity_hash, is_it)
    }

    fn find_or_make(&mut self, wanted: &Arc<Definition>, pool: &Arc<Pool>) -> Option<Arc<Table>> {
        if let Some(known) = self.find(wanted) {
            return Some(known.clone());
        }
        let number = u32::try_from(self.list.len()).ok()?;
        let table = Arc::new(Table::new(number, wanted, pool.clone())?);
        let hash = |table: &Arc<Table>| table.first_definition().map_or(0, |one| one.identity_hash);
        self.by_identity.insert_unique(wanted.identity_hash, table.clone(), hash);
        self.list.push(table.clone());
        Some(table)
    }
}

impl MemoryStore {
    /// Where those who wait for this check's key stand in line.
    pub(crate) fn line(&self, check: Check<'_, '_>) -> u64 {
        self.place(check.policy, check.key).line()
    }

    pub(super) fn place<'p>(&self, policy: &'p Policy, key: Key<'_>) -> Place<'p> {
        let table = match Home::of(policy, self.number) {
            Some(home) => Some(TableRef::Home(&home.table)),
            None => self.known_table(policy),
        };
        Place { policy, table, mark: self.mark(key) }
    }

    /// The table of a policy that has its home elsewhere, or none yet.
    pub(super) fn known_table<'p>(&self, policy: &'p Policy) -> Option<TableRef<'p>> {
        let found = self.tables.read().find(policy.definition())?.clone();
        let _ = policy.home().set(Home::new(self.number, found.clone(), policy));
        Some(TableRef::Shared(found))
    }

    /// Whether a policy may have a table by now. Whoever asks holds keys and does not wait: somebody
    /// who makes a table may be waiting for a sweep, and that for those keys.
    pub(super) fn may_have_table(&self, policy: &Policy) -> bool {
        !policy.quota().is_unlimited()
            && match self.tables.try_read() {
                Some(tables) => tables.find(policy.definition()).is_some(),
                None => true,
            }
    }

    /// The table of a place, made if there is none.
    pub(super) fn table_for<'a>(&self, place: &'a mut Place<'_>) -> Option<&'a Table> {
        if place.table.is_none() {
            let wanted = place.policy.definition();
            let table = self.tables.write().find_or_make(wanted, &self.pool)?;
            place.table = Some(TableRef::Shared(table));
        }
        place.table.as_deref()
    }
}
