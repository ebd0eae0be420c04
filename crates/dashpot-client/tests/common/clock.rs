//! A clock that knows when somebody wants to be woken next.

use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use dashpot::{Alarm, Clock, ManualClock, Timestamp};

/// Clones show the same time. It stands still until it is moved.
#[derive(Clone, Default)]
pub(crate) struct WorldClock {
    time: ManualClock,
    /// When somebody wants to be woken, and how many do.
    due: Arc<Mutex<BTreeMap<Timestamp, usize>>>,
}

impl WorldClock {
    /// The next moment at which somebody wants to be woken, if it is not past.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let due = self.due.lock().unwrap();
        due.keys().find(|at| **at > self.now()).copied()
    }

    pub(crate) fn set(&self, at: Timestamp) {
        self.time.set(at);
    }

    pub(crate) fn advance(&self, time: Duration) {
        self.time.advance(time);
    }

    /// Waits until then.
    pub(crate) fn until(&self, at: Timestamp) -> impl Future<Output = ()> + Send + use<> {
        let clock = self.clone();
        let mut _alarm = None;
        poll_fn(move |context| {
            if clock.now() >= at {
                return Poll::Ready(());
            }
            _alarm = Some(clock.wake_at(at, context.waker()));
            Poll::Pending
        })
    }

    /// Waits so long.
    pub(crate) fn sleep(&self, time: Duration) -> impl Future<Output = ()> + Send + use<> {
        self.until(self.now().after(time))
    }
}

impl Clock for WorldClock {
    fn now(&self) -> Timestamp {
        self.time.now()
    }

    fn wake_at(&self, at: Timestamp, waker: &Waker) -> Alarm {
        *self.due.lock().unwrap().entry(at).or_default() += 1;
        let (due, alarm) = (self.due.clone(), self.time.wake_at(at, waker));
        Alarm::new(move || {
            drop(alarm);
            let mut due = due.lock().unwrap();
            if let Some(many) = due.get_mut(&at) {
                *many -= 1;
                if *many == 0 {
                    due.remove(&at);
                }
            }
        })
    }
}
