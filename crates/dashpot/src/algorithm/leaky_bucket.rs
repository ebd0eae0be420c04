//! The leaky bucket: the token bucket seen as a meter, and with a queue, a delay on top.

use super::token_bucket::{Tat, TokenBucket};
use super::{Enforce, Verdict};

#[derive(Debug)]
pub(super) struct LeakyBucket {
    /// One place for each in the queue and one for the one in service.
    pub(super) meter: TokenBucket,
    /// With a queue: how many places proceed at once. Without: nobody waits.
    pub(super) undelayed: Option<u64>,
}

impl Enforce for LeakyBucket {
    type State = Tat;

    fn verdict(&self, tat: &Tat, now: u64, cost: u64) -> Verdict {
        match (self.meter.verdict(tat, now, cost), self.undelayed) {
            // What is ahead in the queue, as it stands before this one is added.
            (Verdict::Allow { .. }, Some(undelayed)) => {
                Verdict::Allow { delay: self.meter.drained_to(tat, now, undelayed) }
            }
            (verdict, _) => verdict,
        }
    }

    fn charge(&self, tat: &mut Tat, now: u64, units: u64) {
        self.meter.charge(tat, now, units);
    }

    fn credit(&self, tat: &mut Tat, now: u64, charged_at: u64, units: u64) {
        self.meter.credit(tat, now, charged_at, units);
    }

    fn undo(&self, tat: &mut Tat, now: u64, charged_at: u64, units: u64) {
        self.meter.undo(tat, now, charged_at, units);
    }

    fn remaining(&self, tat: &Tat, now: u64) -> u64 {
        self.meter.remaining(tat, now)
    }

    fn reset_after(&self, tat: &Tat, now: u64) -> u64 {
        self.meter.reset_after(tat, now)
    }

    fn is_idle(&self, tat: &Tat, now: u64) -> bool {
        self.meter.is_idle(tat, now)
    }
}
