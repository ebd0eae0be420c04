//! How a store is doing.

use std::num::NonZeroU64;
use std::time::Duration;

use crate::link::Condition;
use crate::store::RedisStore;

/// How a store is doing. Counts are since it was started.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Health {
    /// Every server, or every node of the cluster that has slots.
    pub servers: Vec<ServerHealth>,
    /// How many instances share the store, this one included, as far as is known.
    pub instances: NonZeroU64,
    /// How many keys are decided without asking each time: leased, or counted here.
    pub leased_keys: usize,
    /// How many calls were made about those.
    pub lease_calls: u64,
}

/// How one server is doing, as seen from here.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerHealth {
    /// Host and port, or the name of a master that sentinels watch over.
    pub address: String,
    /// Whether it is asked. If not, callers do without it at once.
    pub is_up: bool,
    /// Why not, if it is not.
    pub reason: Option<String>,
    /// Calls that were not answered in time.
    pub late: u64,
    /// Calls that failed with the connection.
    pub failed: u64,
    /// Calls that were not even tried, because it was down.
    pub refused: u64,
    /// How often it was down.
    pub outages: u64,
    /// How long it was down in all, up to now.
    pub down_for: Duration,
}

impl Health {
    /// Whether all of them are asked.
    #[must_use]
    pub fn is_up(&self) -> bool {
        !self.servers.is_empty() && self.servers.iter().all(|server| server.is_up)
    }
}

impl RedisStore {
    /// How it is doing.
    #[must_use]
    pub fn health(&self) -> Health {
        let server = |link: &std::sync::Arc<crate::link::Link>| {
            let [late, failed, refused] = link.counters.calls();
            let (outages, down_for) = link.counters.outages();
            let reason = match &*link.condition().borrow() {
                Condition::Down(reason) => Some(reason.clone()),
                Condition::Up | Condition::Starting => None,
            };
            let (address, is_up) = (link.address(), link.is_up());
            ServerHealth { address, is_up, reason, late, failed, refused, outages, down_for }
        };
        Health {
            servers: self.inner.topology.links().iter().map(server).collect(),
            instances: self.inner.instances.count(),
            leased_keys: self.inner.leases.keys(),
            lease_calls: self.inner.leases.calls(),
        }
    }
}
