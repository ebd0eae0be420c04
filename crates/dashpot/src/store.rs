//! Where state lives and whose time counts.

use std::error::Error;
use std::future::Future;
use std::num::NonZeroU64;
use std::sync::Arc;

use crate::{Check, Cost, Decision, Key, Policy, Timestamp, Unfit};

/// Where state lives and whose time counts.
///
/// An implementer owes its callers:
/// - **All or nothing.** Every check's cost is taken, or none is; a denied call changes nothing.
/// - **Linearizable.** Concurrent calls answer as if they had run one after another.
/// - **Merged.** Checks of one call on the same policy and key count as one with the summed cost;
///   each of them, a peek too, gets the status of the whole. If they come with different definitions
///   of the policy, the one with the smallest limit counts, then the one with the smallest count.
/// - **One clock.** `now` is the store's own, read once per call and told in [`Decision::at`].
/// - **Names are identity.** What was counted belongs to a policy's name, algorithm, window and
///   zone (and to whether there is a limit at all). If only its counts change, the units used are
///   carried over when a key is next asked about; if more changes, the key starts fresh.
///
/// `dashpot-testkit` has the suite that holds a store to this.
pub trait Store: Send + Sync {
    /// Takes every check's cost, or none of them.
    fn decide<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send;

    /// [`decide`](Self::decide), if that takes no waiting: a request that is answered at once needs no
    /// future to wait in. `None` if it does, and then nothing was asked.
    fn decide_at_once<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> Option<Result<Decision<'p>, StoreError>> {
        let _ = checks;
        None
    }

    /// Charges what was really used: less gives the rest back, more is charged whether it fits or
    /// not, 0 gives everything back. Any amount releases a concurrency permit. Answers when.
    ///
    /// To be done once for each reservation. After an error it may have been done all the same: to try again
    /// could give back twice.
    fn settle(
        &self,
        reservation: &Reservation,
        used: Cost,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Gives back what a check took and nobody used, because it came to nothing elsewhere, so that no interval admits more
    /// than the policy says, as it may when units are [settled](Self::settle): permits and the units of a window come back
    /// whole; n units of a bucket that took T each, n − t/T after a time t, since what has come back by itself meanwhile may be
    /// in use. They stay charged if the rate is another by then.
    ///
    /// It cannot tell if meanwhile the key was reset, or the clock or the rate went there and back. Answers when it was done.
    ///
    /// To be done once for each reservation, and in the place of settling it. After an error it may have been done all the
    /// same.
    fn undo(
        &self,
        reservation: &Reservation,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send;

    /// Carries out an operator's wish on one key, and answers how it stands afterwards, as a peek
    /// would.
    fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send;

    /// How many instances share what it keeps, as far as it knows, this one included: what each may
    /// grant on its own while the store cannot answer is its part of the whole.
    fn instances(&self) -> NonZeroU64 {
        NonZeroU64::MIN
    }
}

impl<S: Store> Store for Arc<S> {
    fn decide<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        S::decide(self, checks)
    }

    fn decide_at_once<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> Option<Result<Decision<'p>, StoreError>> {
        S::decide_at_once(self, checks)
    }

    fn settle(
        &self,
        reservation: &Reservation,
        used: Cost,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        S::settle(self, reservation, used)
    }

    fn undo(
        &self,
        reservation: &Reservation,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        S::undo(self, reservation)
    }

    fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        S::manage(self, policy, key, operation)
    }

    fn instances(&self) -> NonZeroU64 {
        S::instances(self)
    }
}

/// What an operator may do to one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOperation {
    /// Only look.
    Peek,
    /// Forget what was counted. A block stays. Permits in flight are forgotten too, and one that is
    /// given back later does not stand for another that was taken since.
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
    /// It cannot keep this policy exactly.
    #[error("the store cannot keep this policy")]
    Unfit(#[from] Unfit),
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
    permit: u64,
}

impl Reservation {
    /// What was taken, by whom and when: for those who kept it elsewhere meanwhile. Others get it
    /// from [`Check::reservation`].
    pub fn new(policy: Policy, key: Key<'_>, cost: Cost, charged_at: Timestamp) -> Self {
        Self { policy, key: key.as_bytes().into(), cost, charged_at, permit: 0 }
    }

    /// The same for a permit that its store knows by this number.
    pub fn with_permit(mut self, permit: u64) -> Self {
        self.permit = permit;
        self
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

    /// Whether permits were taken, which are in use until they are given back.
    #[must_use]
    pub fn is_permit(&self) -> bool {
        self.policy.quota().is_concurrent()
    }

    /// The number of the permit, in stores that number them; else 0.
    #[must_use]
    pub const fn permit(&self) -> u64 {
        self.permit
    }
}
