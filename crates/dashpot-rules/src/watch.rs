//! Somebody who looks for changes.

use std::io;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Looks for changes until it is dropped.
#[derive(Debug)]
#[must_use = "nobody looks for changes any more when this is dropped"]
pub struct Watch {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Looks every so often, in a thread of this name. What is seen is given the last that was known; when it is something
    /// else, and stays the same for one more look, `changed` is told, and says what is known from then on. So nobody
    /// believes half a file.
    ///
    /// # Errors
    /// If there is no thread to be had.
    pub fn start<T: Clone + PartialEq + Send + 'static>(
        name: &str,
        every: Duration,
        known: T,
        mut look: impl FnMut(&T) -> T + Send + 'static,
        mut changed: impl FnMut(T) -> T + Send + 'static,
    ) -> io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let work = move || {
            let (mut known, mut last) = (known.clone(), known);
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let now = look(&known);
                if now == known || now != last {
                    last = now;
                    continue;
                }
                known = changed(now);
                last.clone_from(&known);
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It panics only if whoever is told does, which was told to its user then.
            let _ = thread.join();
        }
    }
}
