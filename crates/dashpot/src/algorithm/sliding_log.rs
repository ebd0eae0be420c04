//! Sliding log: every admission of the last window, remembered.

use std::collections::VecDeque;

use super::{Enforce, Verdict};
use crate::Retry;

#[derive(Debug)]
pub(super) struct SlidingLog {
    pub(super) limit: u64,
    pub(super) window: u64,
}

/// The admissions, oldest first, those of one instant in one entry.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<Entry>,
    /// The units before the first entry, from where `upto` counts on.
    before: u64,
}

/// All units admitted at one instant. Units are numbered as they come, so that any of them is
/// found by bisection.
#[derive(Debug)]
struct Entry {
    at: u64,
    /// The number of the last of them.
    upto: u64,
}

impl Log {
    fn last(&self) -> u64 {
        self.entries.back().map_or(self.before, |entry| entry.upto)
    }

    /// The number of the last unit before the entry at this index.
    fn before(&self, index: usize) -> u64 {
        match index.checked_sub(1).and_then(|index| self.entries.get(index)) {
            Some(entry) => entry.upto,
            None => self.before,
        }
    }

    /// Forgets the oldest units, up to this number.
    fn forget(&mut self, upto: u64) {
        while self.entries.front().is_some_and(|entry| entry.upto <= upto) {
            self.entries.pop_front();
        }
        self.before = self.before.max(upto);
    }
}

impl SlidingLog {
    /// How many of the entries have left the window. They are in order, so the oldest have.
    fn expired(&self, log: &Log, now: u64) -> usize {
        log.entries.partition_point(|entry| entry.at.saturating_add(self.window) <= now)
    }

    fn live(&self, log: &Log, now: u64) -> u64 {
        log.last() - log.before(self.expired(log, now))
    }
}

impl Enforce for SlidingLog {
    type State = Log;

    fn verdict(&self, log: &Log, now: u64, cost: u64) -> Verdict {
        let expired = log.before(self.expired(log, now));
        let wanted = (log.last() - expired).saturating_add(cost);
        let too_many = wanted.saturating_sub(self.limit);
        if too_many == 0 {
            return Verdict::ALLOW;
        }
        // It passes when that many of the oldest live units have left.
        let leaver = expired.saturating_add(too_many);
        let index = log.entries.partition_point(|entry| entry.upto < leaver);
        let wait = match log.entries.get(index) {
            Some(entry) => entry.at.saturating_add(self.window).saturating_sub(now),
            None => 0, // never: no more than all live units are in the way of what fits the limit
        };
        Verdict::Deny(Retry::After(wait))
    }

    fn charge(&self, log: &mut Log, now: u64, units: u64) {
        log.forget(log.before(self.expired(log, now)));
        // More than twice the limit changes no answer, ever: see `forget` below.
        let units = units.min(self.limit.saturating_mul(2));
        let index = log.entries.partition_point(|entry| entry.at < now);
        // Nearly always the index is past the end; it is not if the clock went back.
        if log.entries.get(index).is_none_or(|entry| entry.at != now) {
            let upto = log.before(index);
            log.entries.insert(index, Entry { at: now, upto });
        }
        for entry in log.entries.range_mut(index..) {
            entry.upto = entry.upto.saturating_add(units);
        }
        // Debt can pile up past the limit. All that ever counts are the newest `limit` units, and
        // the ones that would be the newest if some of those were given back; what can be given
        // back was admitted within the limit. So twice the limit is all there is to remember.
        let most = self.limit.saturating_mul(2);
        log.forget(log.last().saturating_sub(most).max(log.before));
    }

    fn credit(&self, log: &mut Log, _now: u64, charged_at: u64, units: u64) {
        let index = log.entries.partition_point(|entry| entry.at < charged_at);
        let Some(entry) = log.entries.get(index).filter(|entry| entry.at == charged_at) else {
            return;
        };
        let charged = entry.upto - log.before(index);
        let given_back = units.min(charged);
        if given_back == charged {
            log.entries.remove(index);
        }
        for entry in log.entries.range_mut(index..) {
            entry.upto -= given_back;
        }
    }

    fn remaining(&self, log: &Log, now: u64) -> u64 {
        self.limit.saturating_sub(self.live(log, now))
    }

    fn reset_after(&self, log: &Log, now: u64) -> u64 {
        log.entries
            .back()
            .map_or(0, |newest| newest.at.saturating_add(self.window).saturating_sub(now))
    }

    fn is_idle(&self, log: &Log, now: u64) -> bool {
        self.live(log, now) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: SlidingLog = SlidingLog { limit: 3, window: 100 };

    #[test]
    fn one_instant_takes_one_entry() {
        let mut log = Log::default();
        LOG.charge(&mut log, 5, 1);
        LOG.charge(&mut log, 5, 2);
        assert_eq!(log.entries.len(), 1);
        assert_eq!(LOG.live(&log, 104), 3);
        assert_eq!(LOG.live(&log, 105), 0);
    }

    #[test]
    fn entries_that_left_are_dropped() {
        let mut log = Log::default();
        for now in (0..100_000).step_by(50) {
            LOG.charge(&mut log, now, 1);
        }
        assert_eq!(log.entries.len(), 2);
    }

    #[test]
    fn debt_takes_no_more_room_than_twice_the_limit() {
        let mut log = Log::default();
        for now in 0..50 {
            LOG.charge(&mut log, now, 1);
        }
        assert_eq!(log.entries.len(), 6);
        LOG.charge(&mut log, 60, u64::MAX);
        assert_eq!((log.entries.len(), LOG.live(&log, 60)), (1, 6));
    }

    #[test]
    fn a_clock_that_goes_back_keeps_the_log_in_order() {
        let mut log = Log::default();
        LOG.charge(&mut log, 50, 1);
        LOG.charge(&mut log, 20, 1);
        LOG.charge(&mut log, 40, 1);
        assert!(log.entries.iter().is_sorted_by_key(|entry| entry.at));
        assert!(log.entries.iter().is_sorted_by_key(|entry| entry.upto));
        assert_eq!(LOG.verdict(&log, 60, 1), Verdict::Deny(Retry::After(60)));
        LOG.credit(&mut log, 60, 40, 1);
        assert_eq!(LOG.remaining(&log, 60), 1);
        assert_eq!(LOG.reset_after(&log, 60), 90);
    }
}
