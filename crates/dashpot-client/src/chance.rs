//! Jitter: what keeps those apart who were turned away together.

use std::time::Duration;

use fastrand::Rng;
use parking_lot::Mutex;

/// Waits that double, and chance.
#[derive(Debug)]
pub(crate) struct Chance {
    rng: Mutex<Rng>,
    base: Duration,
    cap: Duration,
}

impl Chance {
    pub(crate) fn new(seed: Option<u64>, base: Duration, cap: Duration) -> Self {
        let rng = Mutex::new(seed.map_or_else(Rng::new, Rng::with_seed));
        Self { rng, base, cap }
    }

    /// How long to wait after so many failures in a row: full jitter, from nothing to a bound that doubles.
    pub(crate) fn backoff(&self, failures: u32) -> Duration {
        self.up_to(self.bound(failures))
    }

    /// What to add to a wait that everybody was told, after so many failures in a row: as much as a backoff, or a tenth of
    /// the wait if that is more, since more come together where the wait is long.
    pub(crate) fn spread(&self, told: Duration, failures: u32) -> Duration {
        self.up_to(self.bound(failures).max(told / 10))
    }

    /// What to add to the time until a quota is there again that many use: up to a tenth of it.
    pub(crate) fn late(&self, wait: Duration) -> Duration {
        self.up_to(wait / 10)
    }

    fn bound(&self, failures: u32) -> Duration {
        let times = 2u32.saturating_pow(failures.saturating_sub(1));
        self.base.saturating_mul(times).min(self.cap)
    }

    fn up_to(&self, most: Duration) -> Duration {
        let nanos = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.rng.lock().u64(0..=nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_doubles_up_to_the_cap_and_all_of_it_is_used() {
        let second = Duration::from_secs(1);
        let chance = Chance::new(Some(1), second, 8 * second);
        for (failures, bound) in [(1, 1), (2, 2), (3, 4), (4, 8), (5, 8), (u32::MAX, 8)] {
            let bound = bound * second;
            let waits: Vec<_> = (0..1000).map(|_| chance.backoff(failures)).collect();
            assert!(waits.iter().all(|wait| *wait <= bound));
            assert!(waits.iter().any(|wait| *wait < bound / 20));
            assert!(waits.iter().any(|wait| *wait > bound / 20 * 19));
        }
    }

    #[test]
    fn long_waits_are_spread_wider() {
        let second = Duration::from_secs(1);
        let chance = Chance::new(Some(1), second, 8 * second);
        let longest = |told| (0..1000).map(|_| chance.spread(told, 1)).max().unwrap();
        assert!(longest(second) <= second);
        let hour = longest(3600 * second);
        assert!(hour > 340 * second && hour <= 360 * second);
    }
}
