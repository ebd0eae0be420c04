//! Those who wait, first come first in each class.

use std::collections::BTreeMap;
use std::task::Waker;
use std::time::Duration;

use crate::{Class, Timestamp};

/// A line for each class. Whoever has the lock may use it; wakers are handed out, to be woken or dropped without.
#[derive(Debug, Default)]
pub(super) struct Lines {
    /// By their order, and in each by number. A waker that was woken is gone until its owner has looked again.
    lines: [BTreeMap<u64, Waiter>; Class::ALL.len()],
    waiting: u64,
    /// The number of the next who comes.
    next: u64,
}

/// Somebody who waits.
#[derive(Debug)]
struct Waiter {
    /// When it came.
    asked: Timestamp,
    waker: Option<Waker>,
}

impl Lines {
    pub(super) const fn len(&self) -> u64 {
        self.waiting
    }

    /// Whether somebody of this class waits, or of a more important one.
    pub(super) fn are_ahead_of(&self, class: Class) -> bool {
        self.lines.iter().skip(class as usize).any(|line| !line.is_empty())
    }

    /// Who is next.
    pub(super) fn first(&self) -> Option<(Class, u64)> {
        let occupied = Class::ALL.into_iter().zip(&self.lines).rev();
        { occupied }.find_map(|(class, line)| Some((class, *line.first_key_value()?.0)))
    }

    /// The class of whom somebody of this one would take the place.
    pub(super) fn displaceable_by(&self, class: Class) -> Option<Class> {
        let lower = Class::ALL.into_iter().zip(&self.lines).take(class as usize);
        { lower }.find_map(|(lower, line)| (!line.is_empty()).then_some(lower))
    }

    /// Gets in line.
    pub(super) fn join(&mut self, class: Class, asked: Timestamp) -> u64 {
        let number = self.next;
        self.next += 1;
        if let Some(line) = self.lines.get_mut(class as usize) {
            line.insert(number, Waiter { asked, waker: None });
            self.waiting += 1;
        }
        number
    }

    /// Sends the last of a class away.
    pub(super) fn displace(&mut self, class: Class) -> Option<Waker> {
        let (_, waiter) = self.lines.get_mut(class as usize)?.pop_last()?;
        self.waiting -= 1;
        waiter.waker
    }

    /// Sends those away who have waited for so long, but for one.
    pub(super) fn expire(
        &mut self,
        now: Timestamp,
        wait: Duration,
        but: Option<(Class, u64)>,
    ) -> Vec<Waker> {
        let mut late = Vec::new();
        for class in Class::ALL {
            // Those who came first are late first.
            while let Some(line) = self.lines.get_mut(class as usize)
                && let Some(first) = line.first_entry()
                && first.get().asked.after(wait) <= now
                && Some((class, *first.key())) != but
            {
                late.extend(first.remove().waker);
                self.waiting -= 1;
            }
        }
        late
    }

    /// Whether somebody is still there.
    pub(super) fn holds(&self, class: Class, number: u64) -> bool {
        self.lines.get(class as usize).is_some_and(|line| line.contains_key(&number))
    }

    /// Leaves a waker to be woken by; the one that was there before comes back.
    pub(super) fn leave_waker(&mut self, class: Class, number: u64, waker: Waker) -> Option<Waker> {
        match self.lines.get_mut(class as usize).and_then(|line| line.get_mut(&number)) {
            Some(known) => known.waker.replace(waker),
            None => Some(waker),
        }
    }

    /// Leaves the line. Its waker, to be dropped.
    pub(super) fn remove(&mut self, class: Class, number: u64) -> Option<Waker> {
        let waiter = self.lines.get_mut(class as usize)?.remove(&number)?;
        self.waiting -= 1;
        waiter.waker
    }

    /// Takes the waker of somebody.
    pub(super) fn take_waker(&mut self, class: Class, number: u64) -> Option<Waker> {
        self.lines.get_mut(class as usize)?.get_mut(&number)?.waker.take()
    }
}
