//! One question to a store.

use crate::{Decision, Key, Policy, Reservation};

/// How many units a check asks for. A cost of 0 is a peek: it takes nothing and always allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Takes nothing.
    pub const PEEK: Self = Self(0);
    /// Takes one unit.
    pub const ONE: Self = Self(1);

    /// Takes so many units.
    #[must_use]
    pub const fn new(units: u64) -> Self {
        Self(units)
    }

    /// The number of units.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }
}

impl From<u64> for Cost {
    fn from(units: u64) -> Self {
        Self(units)
    }
}

/// One question: may this key take this much under this policy?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Check<'p, 'k> {
    /// The limit that applies.
    pub policy: &'p Policy,
    /// Who asks.
    pub key: Key<'k>,
    /// How much.
    pub cost: Cost,
}

impl<'p, 'k> Check<'p, 'k> {
    /// Asks for one unit.
    #[must_use]
    #[inline]
    pub fn new(policy: &'p Policy, key: impl Into<Key<'k>>) -> Self {
        Self { policy, key: key.into(), cost: Cost::ONE }
    }

    /// The same question about another cost.
    #[must_use]
    #[inline]
    pub fn cost(mut self, cost: impl Into<Cost>) -> Self {
        self.cost = cost.into();
        self
    }

    /// What it took in this decision, to be settled later; `None` if it was denied.
    #[must_use]
    pub fn reservation(&self, decision: &Decision<'_>) -> Option<Reservation> {
        let taken = || {
            let (at, permit) = decision.charged(self);
            Reservation::new(self.policy.clone(), self.key, self.cost, at).with_permit(permit)
        };
        decision.is_allowed().then(taken)
    }
}
