use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
use std::time::Duration;

use parking_lot::Mutex;

use super::alarm::Alarms;
use super::{Alarm, Clock, Timestamp};

/// A clock that stands still until told otherwise: for tests, yours included, and simulations.
///
/// Clones show the same time. Whoever waits on it is woken when it is moved.
///
/// ```
/// use dashpot::{Limiter, ManualClock, MemoryStore, Policy, Quota};
/// use std::time::Duration;
///
/// let clock = ManualClock::default();
/// let store = MemoryStore::with_clock(clock.clone());
/// let limiter = Limiter::on(Policy::new("api", Quota::per_second(1))?, store);
///
/// assert!(limiter.check("alice").is_allowed());
/// assert!(!limiter.check("alice").is_allowed());
/// clock.advance(Duration::from_secs(1));
/// assert!(limiter.check("alice").is_allowed());
/// # Ok::<(), dashpot::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ManualClock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    nanos: AtomicU64,
    alarms: Mutex<Alarms<Timestamp>>,
}

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: Timestamp) -> Self {
        let nanos = AtomicU64::new(now.as_nanos());
        Self { shared: Arc::new(Shared { nanos, alarms: Mutex::new(Alarms::new()) }) }
    }

    /// Moves the time forward.
    pub fn advance(&self, by: Duration) {
        let later = |nanos| Some(Timestamp::from_nanos(nanos).after(by).as_nanos());
        // Never an error: there is always a later.
        let _ = self.shared.nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
        self.ring();
    }

    /// Shows `now` from here on, be it earlier or later than before.
    pub fn set(&self, now: Timestamp) {
        self.shared.nanos.store(now.as_nanos(), Ordering::SeqCst);
        self.ring();
    }

    /// Wakes those whose time has come.
    fn ring(&self) {
        let due = self.shared.alarms.lock().take_due(self.now());
        due.into_iter().for_each(Waker::wake);
    }
}

/// Starts in September 2001, a billion seconds after the epoch.
impl Default for ManualClock {
    fn default() -> Self {
        Self::new(Timestamp::from_secs(1_000_000_000))
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.shared.nanos.load(Ordering::SeqCst))
    }

    fn wake_at(&self, at: Timestamp, waker: &Waker) -> Alarm {
        let waker = waker.clone();
        let mut alarms = self.shared.alarms.lock();
        // Under the lock. Who moves the time rings afterwards: either the new time is seen here, or
        // the alarm is seen there.
        if at <= self.now() {
            drop(alarms);
            waker.wake();
            return Alarm::rung();
        }
        let alarm = alarms.set(at, waker);
        drop(alarms);
        let clock = self.clone();
        Alarm::new(move || {
            let _dropped_without_the_lock = clock.shared.alarms.lock().call_off(alarm);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Wake;

    #[derive(Default)]
    struct Rings(AtomicU64);

    impl Wake for Rings {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    #[test]
    fn an_alarm_rings_when_its_moment_is_shown_and_once() {
        let (clock, rings) = (ManualClock::default(), Arc::new(Rings::default()));
        let second = Duration::from_secs(1);
        let _alarm = clock.wake_at(clock.now().after(second), &rings.clone().into());
        clock.advance(second - Duration::from_nanos(1));
        assert_eq!(rings.0.load(Ordering::SeqCst), 0);
        clock.advance(Duration::from_nanos(1));
        assert_eq!(rings.0.load(Ordering::SeqCst), 1);
        clock.advance(second);
        assert_eq!(rings.0.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn an_alarm_for_now_or_before_rings_at_once() {
        let (clock, rings) = (ManualClock::default(), Arc::new(Rings::default()));
        let _now = clock.wake_at(clock.now(), &rings.clone().into());
        let _past = clock.wake_at(Timestamp::EPOCH, &rings.clone().into());
        assert_eq!(rings.0.load(Ordering::SeqCst), 2);
        assert!(clock.shared.alarms.lock().first().is_none());
    }

    #[test]
    fn setting_the_time_back_rings_nothing_and_forward_all_in_between() {
        let (clock, rings) = (ManualClock::default(), Arc::new(Rings::default()));
        let start = clock.now();
        let waits = [1, 2, 60].map(Duration::from_secs);
        let _alarms = waits.map(|wait| clock.wake_at(start.after(wait), &rings.clone().into()));
        clock.set(Timestamp::EPOCH);
        assert_eq!(rings.0.load(Ordering::SeqCst), 0);
        clock.set(start.after(Duration::from_secs(2)));
        assert_eq!(rings.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn dropping_an_alarm_takes_it_out() {
        let (clock, rings) = (ManualClock::default(), Arc::new(Rings::default()));
        drop(clock.wake_at(Timestamp::MAX, &rings.clone().into()));
        assert!(clock.shared.alarms.lock().first().is_none());
        assert_eq!(Arc::strong_count(&rings), 1);
        clock.set(Timestamp::MAX);
        assert_eq!(rings.0.load(Ordering::SeqCst), 0);
    }
}
