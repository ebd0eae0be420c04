//! Concurrency: what is in flight.

use dashpot::Policy;

use super::meter::{Meter, Time};

/// Every permit taken and not yet given back, by when it was taken.
#[derive(Clone, Debug, Default)]
pub(super) struct InFlight(Vec<(Time, u128)>);

impl InFlight {
    fn permits(&self) -> u128 {
        self.0.iter().map(|(_, permits)| permits).sum()
    }
}

impl Meter for InFlight {
    fn passes(&self, policy: &Policy, _at: Time, cost: u64) -> bool {
        self.permits() + u128::from(cost) <= u128::from(policy.limit())
    }

    fn is_fresh(&self, _at: Time) -> bool {
        self.permits() == 0
    }

    fn charge(&mut self, at: Time, units: u64) {
        self.0.push((at, units.into()));
    }

    fn give_back(&mut self, _at: Time, charged_at: Time, units: u64) {
        let mut left = u128::from(units);
        for (_, permits) in self.0.iter_mut().filter(|(then, _)| *then == charged_at) {
            let taken = left.min(*permits);
            *permits -= taken;
            left -= taken;
        }
    }

    fn runs_by_clock(&self) -> bool {
        false
    }
}
