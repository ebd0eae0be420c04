//! Somebody who saves a store now and then.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{StateError, clear_away};
use crate::MemoryStore;

/// Saves a store every so often, on a thread of its own, and once more when it is closed or dropped.
///
/// Whoever is killed in between loses what was counted since the last time, and nothing else.
#[derive(Debug)]
pub struct StateKeeper {
    store: Arc<MemoryStore>,
    path: PathBuf,
    closing: Arc<Closing>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Closing {
    is_closing: Mutex<bool>,
    changed: Condvar,
}

impl StateKeeper {
    /// Saves the store now and then `every` so often. Later failures are told to `report`, and tried
    /// again when the time comes; the last good file stays.
    ///
    /// # Errors
    /// If it cannot be saved now, or there is no thread for it.
    pub fn start(
        store: Arc<MemoryStore>,
        path: impl AsRef<Path>,
        every: Duration,
        report: impl Fn(StateError) + Send + 'static,
    ) -> Result<Self, StateError> {
        let path = path.as_ref().to_owned();
        store.save(&path)?;
        // The file is this keeper's now, and so is what others left beside it.
        clear_away(&path, Duration::ZERO);
        let closing = Arc::new(Closing::default());
        let (saved, place, told) = (store.clone(), path.clone(), closing.clone());
        let work = move || {
            let mut last = Instant::now();
            while told.wait_until(last.checked_add(every)) {
                // From start to start, however long it takes to write.
                last = Instant::now();
                if let Err(error) = saved.save(&place) {
                    report(error);
                }
            }
        };
        let thread = thread::Builder::new()
            .name("dashpot-state".to_owned())
            .spawn(work)
            .map_err(|error| StateError::write(&path, error))?;
        Ok(Self { store, path, closing, thread: Some(thread) })
    }

    /// Saves the store a last time.
    ///
    /// # Errors
    /// If it cannot be saved.
    pub fn close(mut self) -> Result<(), StateError> {
        self.stop()
    }

    fn stop(&mut self) -> Result<(), StateError> {
        let Some(thread) = self.thread.take() else {
            return Ok(());
        };
        *self.closing.is_closing.lock() = true;
        self.closing.changed.notify_all();
        // If it panicked in `report`, that was told already; the last word is ours.
        let _ = thread.join();
        self.store.save(&self.path).map(drop)
    }
}

impl Drop for StateKeeper {
    fn drop(&mut self) {
        // Nobody is left to tell; who wants to know closes it.
        let _ = self.stop();
    }
}

impl Closing {
    /// Waits until then. False if it is time to go.
    fn wait_until(&self, moment: Option<Instant>) -> bool {
        let mut is_closing = self.is_closing.lock();
        while !*is_closing {
            match moment {
                Some(moment) => {
                    if self.changed.wait_until(&mut is_closing, moment).timed_out() {
                        return !*is_closing;
                    }
                }
                // A time so far off never comes.
                None => self.changed.wait(&mut is_closing),
            }
        }
        false
    }
}
