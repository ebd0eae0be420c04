//! Wake-ups that are due.

use std::collections::BTreeMap;
use std::fmt;
use std::task::Waker;

/// A wake-up that a [clock](super::Clock) owes somebody. Dropping it calls it off.
#[must_use = "an alarm that is dropped is called off"]
pub struct Alarm(Option<Box<dyn FnOnce() + Send + Sync>>);

impl Alarm {
    /// An alarm that is called off like this. Not called off in time, it may ring all the same.
    pub fn new(call_off: impl FnOnce() + Send + Sync + 'static) -> Self {
        Self(Some(Box::new(call_off)))
    }

    /// An alarm that has rung already.
    pub const fn rung() -> Self {
        Self(None)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(call_off) = self.0.take() {
            call_off();
        }
    }
}

impl fmt::Debug for Alarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Alarm").finish_non_exhaustive()
    }
}

/// Alarms by the moment they are set to. Kept behind a lock, so it hands wakers out instead of
/// waking or dropping them: either may run anything, and come back for the lock.
#[derive(Debug)]
pub(super) struct Alarms<T> {
    set: BTreeMap<(T, u64), Waker>,
    /// Tells alarms of one moment apart.
    number: u64,
}

impl<T: Ord + Copy> Alarms<T> {
    pub(super) const fn new() -> Self {
        Self { set: BTreeMap::new(), number: 0 }
    }

    pub(super) fn set(&mut self, at: T, waker: Waker) -> (T, u64) {
        let alarm = (at, self.number);
        self.number = self.number.wrapping_add(1);
        self.set.insert(alarm, waker);
        alarm
    }

    pub(super) fn call_off(&mut self, alarm: (T, u64)) -> Option<Waker> {
        self.set.remove(&alarm)
    }

    /// The moment of the first one.
    pub(super) fn first(&self) -> Option<T> {
        self.set.first_key_value().map(|((at, _), _)| *at)
    }

    /// Takes out those that are due.
    pub(super) fn take_due(&mut self, now: T) -> Vec<Waker> {
        let mut due = Vec::new();
        while let Some(first) = self.set.first_entry()
            && first.key().0 <= now
        {
            due.push(first.remove());
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_are_due_come_out_and_the_others_stay() {
        let mut alarms = Alarms::new();
        for at in [30, 10, 20, 20] {
            alarms.set(at, Waker::noop().clone());
        }
        assert_eq!(alarms.first(), Some(10));
        assert_eq!(alarms.take_due(9).len(), 0);
        assert_eq!(alarms.take_due(20).len(), 3);
        assert_eq!(alarms.first(), Some(30));
    }

    #[test]
    fn one_that_was_called_off_does_not_come_out() {
        let mut alarms = Alarms::new();
        let (one, _other) =
            (alarms.set(10, Waker::noop().clone()), alarms.set(10, Waker::noop().clone()));
        assert!(alarms.call_off(one).is_some());
        assert!(alarms.call_off(one).is_none());
        assert_eq!(alarms.take_due(10).len(), 1);
    }
}
