//! What the table is built on, in one place so that a model checker can stand in for it: with
//! `--cfg dashpot_loom` the same code runs on loom's atomics and locks.

#[cfg(not(dashpot_loom))]
pub(super) use parking_lot::{Mutex, MutexGuard};
#[cfg(not(dashpot_loom))]
pub(super) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

#[cfg(dashpot_loom)]
pub(super) use loom::{
    hint::spin_loop,
    sync::MutexGuard,
    sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

/// loom's lock, with the face of the real one.
#[cfg(dashpot_loom)]
#[derive(Debug, Default)]
pub(super) struct Mutex<T>(loom::sync::Mutex<T>);

#[cfg(dashpot_loom)]
impl<T> Mutex<T> {
    pub(super) fn new(value: T) -> Self {
        Self(loom::sync::Mutex::new(value))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

/// Waits a little, and a little longer each time: whoever is in the way needs some nanoseconds, or
/// a turn on this core.
#[derive(Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Rounds of spinning before the core is offered to others.
    const SPINS: u32 = 6;

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
