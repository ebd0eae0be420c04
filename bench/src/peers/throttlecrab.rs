//! throttlecrab's library behind a lock, as its documentation has it. Its periodic store, which is
//! the one its server takes unless told otherwise; the adaptive one looks at every key on each
//! insertion while its map is three quarters full.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use quanta::{Clock, Instant};
use throttlecrab::{PeriodicStore, RateLimiter};

use crate::peer::{Peer, Rate, Setup};

pub(crate) struct Throttlecrab {
    clock: Clock,
    origin: (SystemTime, Instant),
    rate: Rate,
    limiter: Mutex<RateLimiter<PeriodicStore>>,
}

impl Peer for Throttlecrab {
    fn new(setup: &Setup) -> Self {
        let clock = Clock::new();
        // Its own minute is longer than we look at it.
        let interval = Duration::from_millis(if setup.sweeping { 500 } else { 60_000 });
        let store = PeriodicStore::builder().cleanup_interval(interval).build();
        Self {
            origin: (SystemTime::now(), clock.now()),
            clock,
            rate: setup.rate,
            limiter: Mutex::new(RateLimiter::new(store)),
        }
    }

    fn check(&self, key: &String) -> bool {
        let Rate { count, window, burst } = self.rate;
        let (wall, instant) = self.origin;
        let (count, burst) = (i64::from(count), i64::from(burst));
        let window = window.as_secs().cast_signed();
        let mut limiter = self.limiter.lock().expect("nobody panics with the lock");
        // It takes the wall clock's time, and gets it from the counter that the others read.
        let now = wall + self.clock.now().saturating_duration_since(instant);
        let answer = black_box(limiter.rate_limit(key, burst, count, window, 1, now));
        answer.is_ok_and(|(allowed, _)| allowed)
    }
}
