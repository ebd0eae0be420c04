//! A model checker's atomics and locks, with the faces of the real ones.

#[cfg(dashpot_loom)]
use loom as checker;
#[cfg(dashpot_shuttle)]
use shuttle as checker;

use std::sync::PoisonError;

use checker::sync::{RwLockReadGuard, RwLockWriteGuard};
pub(crate) use checker::{
    hint::spin_loop,
    sync::MutexGuard,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    thread::yield_now,
};

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(checker::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(checker::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock().ok()
    }
}

#[derive(Debug, Default)]
pub(crate) struct RwLock<T>(checker::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
        self.0.try_read().ok()
    }

    pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The real one, which never waits, and a flag by which loom sees that whoever finds a value there
/// sees all that was done before it was set.
#[derive(Debug)]
pub(crate) struct Once<T> {
    value: std::sync::OnceLock<T>,
    #[cfg(dashpot_loom)]
    is_set: loom::sync::atomic::AtomicBool,
}

impl<T> Default for Once<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Once<T> {
    pub(crate) fn new() -> Self {
        Self {
            value: std::sync::OnceLock::new(),
            #[cfg(dashpot_loom)]
            is_set: loom::sync::atomic::AtomicBool::new(false),
        }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        #[cfg(dashpot_loom)]
        if !self.is_set.load(Ordering::Acquire) {
            return None;
        }
        self.value.get()
    }

    pub(crate) fn set(&self, value: T) -> Result<(), T> {
        self.value.set(value)?;
        #[cfg(dashpot_loom)]
        self.is_set.store(true, Ordering::Release);
        Ok(())
    }
}
