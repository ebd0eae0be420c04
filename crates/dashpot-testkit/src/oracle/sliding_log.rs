//! Sliding logs: every admission there ever was.

use dashpot::Policy;

use super::calendar::nanos;
use super::meter::{Meter, Time};

#[derive(Clone, Debug)]
pub(super) struct SlidingLog {
    window: Time,
    /// When, and how many units.
    entries: Vec<(Time, u128)>,
}

impl SlidingLog {
    pub(super) fn new(policy: &Policy) -> Self {
        let window = policy.quota().window().expect("a rate has a window");
        Self { window: nanos(window), entries: Vec::new() }
    }

    /// The log's own time never goes back: while the clock is behind the newest entry (given back
    /// or not), everything goes on happening when that did.
    fn moment(&self, at: Time) -> Time {
        self.entries.iter().map(|(then, _)| *then).fold(at, Time::max)
    }

    fn live(&self, at: Time) -> u128 {
        let at = self.moment(at);
        let live = self.entries.iter().filter(|(then, _)| *then > at - self.window);
        live.map(|(_, units)| units).sum()
    }
}

impl Meter for SlidingLog {
    fn passes(&self, policy: &Policy, at: Time, cost: u64) -> bool {
        self.live(at) + u128::from(cost) <= u128::from(policy.limit())
    }

    fn is_fresh(&self, at: Time) -> bool {
        self.live(at) == 0
    }

    fn charge(&mut self, at: Time, units: u64) {
        self.entries.push((self.moment(at), units.into()));
    }

    fn give_back(&mut self, _at: Time, charged_at: Time, units: u64) {
        let mut left = u128::from(units);
        for (then, units) in &mut self.entries {
            if *then == charged_at {
                let taken = left.min(*units);
                *units -= taken;
                left -= taken;
            }
        }
    }
}
