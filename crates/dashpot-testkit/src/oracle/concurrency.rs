//! Concurrency: what is in flight.

use dashpot::Policy;

use super::meter::{Meter, Time};

#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(u128);

impl Meter for InFlight {
    fn passes(&self, policy: &Policy, _at: Time, cost: u64) -> bool {
        self.0 + u128::from(cost) <= u128::from(policy.limit())
    }

    fn is_fresh(&self, _at: Time) -> bool {
        self.0 == 0
    }

    fn charge(&mut self, _at: Time, units: u64) {
        self.0 += u128::from(units);
    }

    fn give_back(&mut self, _at: Time, _charged_at: Time, units: u64) {
        self.0 = self.0.saturating_sub(units.into());
    }

    fn runs_by_clock(&self) -> bool {
        false
    }
}
