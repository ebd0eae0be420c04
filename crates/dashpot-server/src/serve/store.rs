//! Where the service counts.

use std::num::NonZeroU64;
use std::sync::Arc;

use dashpot::{
    Check, Cost, Decision, Key, KeyOperation, MemoryStore, Policy, Reservation, Store, StoreError,
    Timestamp,
};
use dashpot_redis::RedisStore;

/// In memory or on Redis, as the rule file says.
#[derive(Clone)]
pub(crate) enum AnyStore {
    Memory(Arc<MemoryStore>),
    Redis(RedisStore),
}

impl AnyStore {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Memory(_) => "memory",
            Self::Redis(_) => "redis",
        }
    }
}

impl Store for AnyStore {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.decide_now(checks)),
            Self::Redis(store) => store.decide(checks).await,
        }
    }

    fn decide_at_once<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> Option<Result<Decision<'p>, StoreError>> {
        match self {
            Self::Memory(store) => Some(Ok(store.decide_now(checks))),
            Self::Redis(store) => store.decide_at_once(checks),
        }
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.settle_now(reservation, used)),
            Self::Redis(store) => store.settle(reservation, used).await,
        }
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.undo_now(reservation)),
            Self::Redis(store) => store.undo(reservation).await,
        }
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        match self {
            Self::Memory(store) => Ok(store.manage_now(policy, key, operation)),
            Self::Redis(store) => store.manage(policy, key, operation).await,
        }
    }

    fn instances(&self) -> NonZeroU64 {
        match self {
            Self::Memory(_) => NonZeroU64::MIN,
            Self::Redis(store) => store.instances(),
        }
    }
}
