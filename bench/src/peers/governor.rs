//! governor's keyed limiter as its documentation builds it: a `DashMap`, std's hasher, quanta.

use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::peer::{Peer, Setup, Usage};

pub(crate) struct Governor(DefaultKeyedRateLimiter<String>);

impl Peer for Governor {
    fn new(setup: &Setup) -> Self {
        let quota = Quota::with_period(setup.rate.unit()).expect("a period that is not empty");
        let burst = NonZeroU32::new(setup.rate.burst).expect("a burst that is not empty");
        Self(RateLimiter::keyed(quota.allow_burst(burst)))
    }

    fn check(&self, key: &String) -> bool {
        self.0.check_key(key).is_ok()
    }

    fn housekeep(&self) {
        self.0.retain_recent();
    }

    fn usage(&self) -> Usage {
        Usage { keys: self.0.len() as f64, ..Usage::UNTOLD }
    }
}
