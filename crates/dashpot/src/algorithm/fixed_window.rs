//! Fixed window: one count per window of the clock or the calendar.

use std::ops::Range;

use super::calendar::Grid;
use super::{Enforce, Packed, Verdict};
use crate::{Retry, Window, Zone};

#[derive(Debug)]
pub(super) struct FixedWindow {
    limit: u64,
    grid: Grid,
}

/// The count of the window that starts then. That window never goes back: if the clock does, the
/// newest window goes on counting.
#[derive(Clone, Debug, Default)]
pub(crate) struct Count {
    start: u64,
    count: u64,
}

impl Count {
    pub(super) fn new(start: u64, count: u64) -> Self {
        Self { start, count }
    }

    pub(super) fn units(&self) -> u64 {
        self.count
    }
}

impl FixedWindow {
    pub(super) fn new(limit: u64, window: Window, zone: &Zone) -> Self {
        Self { limit, grid: Grid::new(window, zone) }
    }

    pub(super) fn window_at(&self, now: u64) -> Range<u64> {
        self.grid.window_at(now)
    }

    /// The window that counts now, and its count.
    fn current(&self, state: &Count, now: u64) -> (Range<u64>, u64) {
        let window = self.grid.window_at(now.max(state.start));
        let count = if window.start > state.start { 0 } else { state.count };
        (window, count)
    }
}

impl Enforce for FixedWindow {
    type State = Count;

    fn verdict(&self, state: &Count, now: u64, cost: u64) -> Verdict {
        let (window, count) = self.current(state, now);
        if cost <= self.limit.saturating_sub(count) {
            Verdict::ALLOW
        } else {
            Verdict::Deny(Retry::After(window.end - now))
        }
    }

    fn charge(&self, state: &mut Count, now: u64, units: u64) {
        let (window, count) = self.current(state, now);
        state.start = window.start;
        state.count = count.saturating_add(units);
    }

    fn credit(&self, state: &mut Count, _now: u64, charged_at: u64, units: u64) {
        if self.grid.window_at(charged_at).start == state.start {
            state.count = state.count.saturating_sub(units);
        }
    }

    fn remaining(&self, state: &Count, now: u64) -> u64 {
        self.limit.saturating_sub(self.current(state, now).1)
    }

    fn reset_after(&self, state: &Count, now: u64) -> u64 {
        match self.current(state, now) {
            (_, 0) => 0,
            (window, _) => window.end - now,
        }
    }

    fn is_idle(&self, state: &Count, now: u64) -> bool {
        self.current(state, now).1 == 0
    }
}

impl Packed for Count {
    fn pack(&self, words: &mut [u64]) -> bool {
        match words {
            [start, count, ..] => {
                [*start, *count] = [self.start, self.count];
                true
            }
            _ => false,
        }
    }

    fn unpack(words: &[u64]) -> Self {
        match *words {
            [start, count, ..] => Self { start, count },
            _ => Self::default(),
        }
    }
}
