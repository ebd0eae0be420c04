//! Where state lives and whose time counts.

use std::error::Error;
use std::future::Future;

use crate::{Check, Cost, Decision, Key, Policy, Timestamp};

/// Where state lives and whose time counts.
///
/// An implementer owes its callers:
/// - **All or nothing.** Every check's cost is taken, or none is; a denied call changes nothing.
/// - **Linearizable.** Concurrent calls answer as if they had run one after another.
/// - **Merged.** Checks of one call on the same policy and key count as one with the summed cost;
///   each of them gets the status of the whole.
/// - **One clock.** `now` is the store's own, read once per call and told in [`Decision::at`].
/// - **Names are identity.** What was counted belongs to a policy's name, algorithm, window and
///   zone. If only its counts change, the units used are carried over when a key is next asked
///   about; if more changes, the key starts fresh.
///
/// `dashpot-testkit` has the suite that holds a store to this.
pub trait Store: Send + Sync {
    /// Takes every check's cost, or none of them.
    fn decide<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send;

    /// Charges what was really used: less gives the rest back, more is charged whether it fits or
    /// not, 0 gives everything back. Any amount releases a concurrency permit. Answers when.
    fn settle(
        &self,
        reservation: Reservation,
        used: Cost,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Carries out an operator's wish on one key, and answers how it stands afterwards, as a peek
    /// would.
    fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send;
}

/// What an operator may do to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Only look.
    Peek,
    /// Forget what was counted. A block stays.
    Reset,
    /// Deny everything until then; what was counted stays, and goes on draining.
    Block(Timestamp),
    /// End a block.
    Unblock,
}

/// The store could not answer. A denial is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// It could not be reached, or failed.
    #[error("the store is unavailable")]
    Unavailable(#[source] Box<dyn Error + Send + Sync>),
}

/// What one check took, to be settled when it is known what was really used.
///
/// A reservation that is never settled stays charged.
#[derive(Debug)]
#[must_use = "a reservation that is not settled stays charged"]
pub struct Reservation {
    policy: Policy,
    key: Box<[u8]>,
    cost: Cost,
    charged_at: Timestamp,
}

impl Reservation {
    /// What `check` took in `decision`; `None` if it was denied.
    pub fn new(check: &Check<'_, '_>, decision: &Decision<'_>) -> Option<Self> {
        decision.is_allowed().then(|| Self {
            policy: check.policy.clone(),
            key: check.key.as_bytes().into(),
            cost: check.cost,
            charged_at: decision.at(),
        })
    }

    /// The policy it was charged to.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The key it was charged to.
    #[must_use]
    pub fn key(&self) -> Key<'_> {
        Key::new(&self.key)
    }

    /// The units taken.
    #[must_use]
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    /// When.
    #[must_use]
    pub const fn charged_at(&self) -> Timestamp {
        self.charged_at
    }
}
