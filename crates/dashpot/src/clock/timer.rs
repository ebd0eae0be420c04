//! Alarms by the machine's time, for any executor: one thread for the whole process, started when
//! the first alarm is set.
//!
//! There are crates for this. Those that need no runtime panic when their thread could not be
//! started, or was killed by a waker that panicked; and the table of alarms is needed for
//! [`ManualClock`](super::ManualClock) anyway.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use super::Alarm;
use super::alarm::Alarms;

/// The longest sleep. While the machine sleeps, or when its clock is set forward, a store's time
/// goes on and a thread's sleep may not; so those who wait long look at the clock now and then.
const LONGEST: Duration = Duration::from_secs(60);

/// How long the caller itself sleeps if there is no thread to be had.
const NAP: Duration = Duration::from_millis(1);

static TIMER: Timer = Timer {
    table: Mutex::new(Table { alarms: Alarms::new(), is_running: false }),
    changed: Condvar::new(),
};

struct Timer {
    table: Mutex<Table>,
    changed: Condvar,
}

struct Table {
    alarms: Alarms<Instant>,
    is_running: bool,
}

/// Wakes after so long, or after [`LONGEST`].
pub(super) fn wake_after(wait: Duration, waker: &Waker) -> Alarm {
    let at = Instant::now() + wait.min(LONGEST);
    let waker = waker.clone();
    let mut table = TIMER.table.lock();
    if !table.is_running {
        let thread = thread::Builder::new().name("dashpot-timer".to_owned()).spawn(run);
        table.is_running = thread.is_ok();
        if thread.is_err() {
            drop(table);
            // Slow and rude, but neither lost nor spinning; the next alarm asks for a thread again.
            thread::sleep(wait.min(NAP));
            waker.wake();
            return Alarm::rung();
        }
    }
    let is_first = table.alarms.first().is_none_or(|first| at < first);
    let alarm = table.alarms.set(at, waker);
    drop(table);
    if is_first {
        TIMER.changed.notify_one();
    }
    Alarm::new(move || {
        let _dropped_without_the_lock = TIMER.table.lock().alarms.call_off(alarm);
    })
}

fn run() {
    let mut table = TIMER.table.lock();
    loop {
        let due = table.alarms.take_due(Instant::now());
        if !due.is_empty() {
            MutexGuard::unlocked(&mut table, || due.into_iter().for_each(wake));
        } else if let Some(first) = table.alarms.first() {
            TIMER.changed.wait_until(&mut table, first);
        } else {
            TIMER.changed.wait(&mut table);
        }
    }
}

/// Wakes; if that panics, it is that waker's affair and not the others'.
fn wake(waker: Waker) {
    let _ = catch_unwind(AssertUnwindSafe(|| waker.wake()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, mpsc};
    use std::task::Wake;

    struct Bell(mpsc::Sender<Instant>);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            self.0.send(Instant::now()).unwrap();
        }
    }

    struct Broken;

    impl Wake for Broken {
        fn wake(self: Arc<Self>) {
            panic!("a waker that panics, on purpose");
        }
    }

    fn bell() -> (Arc<Bell>, Waker, mpsc::Receiver<Instant>) {
        let (rings, heard) = mpsc::channel();
        let bell = Arc::new(Bell(rings));
        (bell.clone(), Waker::from(bell), heard)
    }

    #[test]
    fn it_wakes_in_time_and_in_order() {
        let (_bell, waker, heard) = bell();
        let start = Instant::now();
        let waits = [12, 3, 6].map(Duration::from_millis);
        let _alarms = waits.map(|wait| wake_after(wait, &waker));
        for wait in [3, 6, 12].map(Duration::from_millis) {
            assert!(heard.recv().unwrap() >= start + wait);
        }
    }

    #[test]
    fn dropping_an_alarm_takes_it_out_at_once_however_far_off() {
        let (bell, waker, heard) = bell();
        let alarm = wake_after(Duration::MAX, &waker);
        assert_eq!(Arc::strong_count(&bell), 3, "bell, waker, alarm");
        drop(alarm);
        assert_eq!(Arc::strong_count(&bell), 2, "bell, waker");
        assert!(heard.try_recv().is_err());
    }

    #[test]
    fn a_waker_that_panics_harms_nobody_else() {
        let (_bell, waker, heard) = bell();
        let _broken = wake_after(Duration::ZERO, &Waker::from(Arc::new(Broken)));
        let _alarm = wake_after(Duration::from_millis(2), &waker);
        assert!(heard.recv().is_ok());
        let _another = wake_after(Duration::from_millis(2), &waker);
        assert!(heard.recv().is_ok());
    }
}
