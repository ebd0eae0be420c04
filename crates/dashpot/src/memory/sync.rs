//! What the table is built on, in one place so that a model checker can stand in for it: with
//! `--cfg dashpot_loom` or `--cfg dashpot_shuttle` the same code runs on the checker's atomics and
//! locks, and `memory/models/` explores what threads can do to each other.

#[cfg(any(dashpot_loom, dashpot_shuttle))]
mod checked;

#[cfg(any(dashpot_loom, dashpot_shuttle))]
pub(crate) use checked::*;

#[cfg(not(any(dashpot_loom, dashpot_shuttle)))]
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock};
#[cfg(not(any(dashpot_loom, dashpot_shuttle)))]
pub(crate) use std::{
    hint::spin_loop,
    sync::OnceLock as Once,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

/// Of two numbers the first, or under a model checker the second: there, small tables must do.
pub(crate) const fn or_in_models(shipped: usize, modelled: usize) -> usize {
    if cfg!(any(dashpot_loom, dashpot_shuttle)) { modelled } else { shipped }
}

/// Lets somebody who was faster be done with what they have to do here: not with one change, with several. To take a cache line from each
/// other for every single one costs both more than to take turns.
#[cold]
#[inline(never)]
pub(super) fn stand_back(times: u32) {
    const LEAST: usize = or_in_models(32, 1);
    for _ in 0..LEAST << or_in_models(times.min(3) as usize, 0) {
        spin_loop();
    }
}

/// Waits a little, and a little longer each time: whoever is in the way needs some nanoseconds, or
/// a turn on this core.
#[derive(Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Rounds of spinning before the core is offered to others. A model checker need not be told
    /// twice.
    #[expect(clippy::cast_possible_truncation, reason = "it is 6 or 1")]
    const SPINS: u32 = or_in_models(6, 1) as u32;

    pub(super) fn wait(&mut self) {
        if self.0 < Self::SPINS {
            for _ in 0..1 << self.0 {
                spin_loop();
            }
            self.0 += 1;
        } else {
            yield_now();
        }
    }
}
