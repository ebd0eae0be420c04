//! dashpot as its users have it: a limiter on a memory store, answering a whole `Decision`.

use std::hint::black_box;

use dashpot::{Limiter, MemoryStore, Policy, Quota, Window};

use crate::flood::CAP;
use crate::peer::{Peer, Rate, Setup, Usage};

pub(crate) struct Dashpot(Limiter);

impl Peer for Dashpot {
    fn new(setup: &Setup) -> Self {
        Self(Limiter::on(policy("bench", setup.rate), capped_store(u64::MAX)))
    }

    fn check(&self, key: &String) -> bool {
        // The others answer little more than yes or no; dashpot is not let off the rest.
        black_box(&self.0.check(key)).is_allowed()
    }

    fn usage(&self) -> Usage {
        let usage = self.0.store().usage();
        Usage {
            keys: usage.keys as f64,
            reclaimed: usage.reclaimed as f64,
            overflowed: usage.overflowed as f64,
            moved: usage.moved as f64,
        }
    }
}

/// The same with a bound on how many keys it holds, for the flood.
pub(crate) struct Capped(Dashpot);

impl Peer for Capped {
    fn new(setup: &Setup) -> Self {
        Self(Dashpot(Limiter::on(policy("bench", setup.rate), capped_store(CAP))))
    }

    fn check(&self, key: &String) -> bool {
        self.0.check(key)
    }

    fn usage(&self) -> Usage {
        self.0.usage()
    }
}

/// A store of at most so many keys.
pub(crate) fn capped_store(max_keys: u64) -> MemoryStore {
    MemoryStore::builder().max_keys(max_keys as usize).build()
}

/// A token bucket of this rate.
pub(crate) fn policy(name: &str, rate: Rate) -> Policy {
    let window = Window::new(rate.window).expect("a window that is not empty");
    let quota = Quota::new(u64::from(rate.count), window).burst(u64::from(rate.burst));
    Policy::new(name, quota).expect("a bucket takes any quota")
}
