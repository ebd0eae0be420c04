//! Keys that are asked about often are not asked about every time: units are leased from Redis in batches, or
//! counted here and told every so often.
//!
//! Why the fleet never grants more than the policy does: units are taken of the key before they are leased, and while
//! they are out a bucket's capacity is as much less, so that all there is, at hand and in the bucket, is never more than
//! it holds. Leases of windows end before the window does. A holder counts from before it asked, so it
//! stops before Redis takes the lease to have ended; then the room comes back, but not the units, which the holder may
//! have spent. Who gives back says what it spent, and only a lease that Redis knows of comes back.

mod demand;
mod exchange;
mod giving;
pub(crate) mod held;
mod local;
mod purse;
#[cfg(test)]
mod simulation;
mod slot;
mod table;
mod upkeep;

use std::sync::atomic::{AtomicU64, Ordering};

use demand::Demand;
use slot::{Nanos, Ways};
use table::Table;
use tokio::runtime::Handle;

pub(crate) use local::is_exact;
pub(crate) use upkeep::keep_up;

use crate::settings::Settings;

/// What is leased, and how.
pub(crate) struct Leases {
    table: Table,
    demand: Demand,
    ways: Ways,
    clock: quanta::Clock,
    origin: u64,
    runtime: Handle,
    calls: AtomicU64,
}

impl Leases {
    pub(crate) fn new(settings: &Settings, runtime: Handle) -> Self {
        let clock = quanta::Clock::new();
        let ways = Ways {
            // It outlasts a decision that something is set aside for.
            lease: settings.lease.max(8 * settings.deadline),
            interval: settings.interval,
            denial_memory: settings.denial_memory,
        };
        Self {
            table: Table::default(),
            demand: Demand::default(),
            ways,
            // Never zero, which is before anything was heard.
            origin: clock.raw().saturating_sub(1),
            clock,
            runtime,
            calls: AtomicU64::new(0),
        }
    }

    /// How many keys are decided here.
    pub(crate) fn keys(&self) -> usize {
        self.table.len()
    }

    /// How many calls were made about them.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    /// The time by this machine's clock. It only grows, and at the pace of time.
    fn now(&self) -> Nanos {
        self.clock.delta_as_nanos(self.origin, self.clock.raw())
    }
}
