//! A policy and a store in memory, for direct use.

use std::sync::Arc;
use std::time::Duration;

use crate::{
    Check, Cost, Decision, Key, KeyOperation, MemoryStore, Policy, Quota, Reservation, Timestamp,
};

/// A policy and a store in memory, for direct use. Clones share the store.
///
/// Under [concurrency](crate::Algorithm::Concurrency), [`acquire`](Self::acquire) permits: what
/// `check` takes there, nobody gives back.
///
/// ```
/// use dashpot::{Limiter, Quota};
///
/// let limiter = Limiter::new(Quota::per_second(10).burst(20));
/// if limiter.check("alice").is_allowed() {
///     // …
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Limiter {
    policy: Policy,
    store: Arc<MemoryStore>,
}

impl Limiter {
    /// A limiter of its own, in memory: a token bucket, or permits if the quota is
    /// [concurrent](Quota::concurrent).
    #[must_use]
    pub fn new(quota: Quota) -> Self {
        Self::on(Policy::unnamed(quota), MemoryStore::new())
    }

    /// A limiter on a store that may serve others too.
    #[must_use]
    pub fn on(policy: Policy, store: impl Into<Arc<MemoryStore>>) -> Self {
        Self { policy, store: store.into() }
    }

    /// The policy.
    #[must_use]
    pub const fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The store.
    #[must_use]
    pub const fn store(&self) -> &Arc<MemoryStore> {
        &self.store
    }

    /// Takes one unit, if there is one.
    #[inline]
    pub fn check<'k>(&self, key: impl Into<Key<'k>>) -> Decision<'_> {
        self.check_n(key, Cost::ONE)
    }

    /// Takes so many units, or none of them.
    #[inline]
    pub fn check_n<'k>(&self, key: impl Into<Key<'k>>, cost: impl Into<Cost>) -> Decision<'_> {
        let check = Check::new(&self.policy, key).cost(cost);
        self.store.decide_now(&[check])
    }

    /// Takes nothing, and tells how the key stands.
    pub fn peek<'k>(&self, key: impl Into<Key<'k>>) -> Decision<'_> {
        self.check_n(key, Cost::PEEK)
    }

    /// Takes units whose number is a guess, to be [settled](Self::settle) when it is known.
    ///
    /// # Errors
    /// The denial, if they cannot be taken.
    #[expect(
        clippy::result_large_err,
        reason = "a decision is not an error, and never on the heap"
    )]
    pub fn reserve<'k>(
        &self,
        key: impl Into<Key<'k>>,
        cost: impl Into<Cost>,
    ) -> Result<Reservation, Decision<'_>> {
        let check = Check::new(&self.policy, key).cost(cost);
        let decision = self.store.decide_now(&[check]);
        check.reservation(&decision).ok_or(decision)
    }

    /// Charges what was really used: less gives the rest back, more is charged as debt.
    #[expect(clippy::needless_pass_by_value, reason = "a reservation is settled once")]
    pub fn settle(&self, reservation: Reservation, used: impl Into<Cost>) {
        self.store.settle_now(&reservation, used.into());
    }

    /// Gives everything back.
    pub fn refund(&self, reservation: Reservation) {
        self.settle(reservation, 0);
    }

    /// Takes one permit, given back when it is dropped: for
    /// [concurrency](crate::Algorithm::Concurrency). Under any other algorithm it is a check like
    /// another: what a rate has let pass stays charged.
    ///
    /// ```
    /// use dashpot::{Limiter, Quota};
    ///
    /// let uploads = Limiter::new(Quota::concurrent(1));
    /// let permit = uploads.acquire("alice").expect("nothing else is in flight");
    /// assert!(uploads.acquire("alice").is_err());
    /// drop(permit);
    /// assert!(uploads.acquire("alice").is_ok());
    /// ```
    ///
    /// # Errors
    /// The denial, if there is none.
    #[expect(
        clippy::result_large_err,
        reason = "a decision is not an error, and never on the heap"
    )]
    pub fn acquire<'k>(&self, key: impl Into<Key<'k>>) -> Result<Permit, Decision<'_>> {
        let reservation = self.reserve(key, Cost::ONE)?;
        Ok(Permit::new(reservation, self.store.clone()))
    }

    /// Forgets what was counted for the key; a block stays.
    pub fn reset<'k>(&self, key: impl Into<Key<'k>>) {
        self.manage(key, KeyOperation::Reset);
    }

    /// Denies the key everything for so long.
    pub fn block<'k>(&self, key: impl Into<Key<'k>>, time: Duration) {
        let until = self.store.now().after(time);
        self.manage(key, KeyOperation::Block(until));
    }

    /// Ends a block.
    pub fn unblock<'k>(&self, key: impl Into<Key<'k>>) {
        self.manage(key, KeyOperation::Unblock);
    }

    fn manage<'k>(&self, key: impl Into<Key<'k>>, operation: KeyOperation) {
        // How the key stands now is one `peek` away for those who want it.
        let _ = self.store.manage_now(&self.policy, key.into(), operation);
    }
}

/// A place in flight, given back when this is dropped.
#[derive(Debug)]
#[must_use = "a permit that is dropped at once protects nothing"]
pub struct Permit {
    reservation: Reservation,
    store: Arc<MemoryStore>,
}

impl Permit {
    pub(crate) const fn new(reservation: Reservation, store: Arc<MemoryStore>) -> Self {
        Self { reservation, store }
    }

    /// When it was taken.
    #[must_use]
    pub fn taken_at(&self) -> Timestamp {
        self.reservation.charged_at()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.store.settle_now(&self.reservation, self.reservation.cost());
    }
}
