//! What is broken at the moment, which excuses what callers see.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::fleet::Door;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Calls to it fail or are not answered.
    Gone(Door),
    /// Calls to it take long.
    Slow(Door),
    /// Calls to it by HTTP may do either, since the network there is broken.
    Network(Door),
    /// It was gone, and looks for Redis.
    Finding(Door),
    /// Some of Redis does not answer.
    Store,
    /// The backend behind the gateway does not answer in time.
    Backend,
}

#[derive(Debug)]
struct Time {
    trouble: Trouble,
    from: f64,
    to: Option<f64>,
}

#[derive(Debug, Default)]
pub(crate) struct Troubles(Mutex<Vec<Time>>);

impl Troubles {
    /// It begins; its number ends it.
    pub(crate) fn begin(&self, trouble: Trouble, now: f64) -> usize {
        let mut times = self.times();
        times.push(Time { trouble, from: now, to: None });
        times.len() - 1
    }

    pub(crate) fn end(&self, number: usize, now: f64) {
        self.times()[number].to = Some(now);
    }

    /// Whether there was such trouble at any moment between these.
    pub(crate) fn touched(&self, trouble: Trouble, from: f64, to: f64) -> bool {
        let touches = |time: &Time| time.from <= to && time.to.is_none_or(|ended| ended >= from);
        self.times().iter().any(|time| time.trouble == trouble && touches(time))
    }

    fn times(&self) -> MutexGuard<'_, Vec<Time>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_excuses_whoever_was_under_way_meanwhile() {
        let troubles = Troubles::default();
        let number = troubles.begin(Trouble::Store, 2.0);
        assert!(!troubles.touched(Trouble::Store, 0.0, 1.9));
        assert!(troubles.touched(Trouble::Store, 0.0, 2.1));
        assert!(troubles.touched(Trouble::Store, 7.0, 8.0));
        troubles.end(number, 3.0);
        assert!(troubles.touched(Trouble::Store, 2.9, 8.0));
        assert!(!troubles.touched(Trouble::Store, 3.1, 8.0));
        assert!(!troubles.touched(Trouble::Backend, 0.0, 8.0));
    }
}
