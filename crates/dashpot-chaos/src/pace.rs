//! How late this process itself is: who is late because the machine is busy was not made to wait by dashpot.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const TICK: Duration = Duration::from_millis(5);

/// When a thread that sleeps for five milliseconds at a time woke up too late, and by how much, in seconds.
#[derive(Debug)]
pub(crate) struct Pace(Arc<Mutex<Vec<(f64, f64)>>>);

impl Pace {
    pub(crate) fn watch(begun: Instant) -> Self {
        let late = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::downgrade(&late);
        thread::spawn(move || {
            let mut before = Instant::now();
            while let Some(noted) = noted.upgrade() {
                drop(noted.lock().unwrap_or_else(PoisonError::into_inner));
                thread::sleep(TICK);
                let late = before.elapsed().saturating_sub(TICK);
                before = Instant::now();
                if late > TICK {
                    let note = (begun.elapsed().as_secs_f64(), late.as_secs_f64());
                    noted.lock().unwrap_or_else(PoisonError::into_inner).push(note);
                }
            }
        });
        Self(late)
    }

    /// How late it was in all, between these.
    pub(crate) fn late(&self, from: f64, to: f64) -> f64 {
        let noted = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let touching = noted.iter().rev().take_while(|(at, _)| *at >= from);
        touching.filter(|(at, late)| at - late <= to).map(|(_, late)| late).sum()
    }
}
