//! Sliding window counter: this window's count, and the last one's by how much of it still shows.

use super::{Enforce, Packed, Verdict};
use crate::Retry;

#[derive(Debug)]
pub(super) struct SlidingWindow {
    pub(super) limit: u64,
    pub(super) window: u64,
}

/// The counts of the window that starts then and of the one before. That window never goes back.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    start: u64,
    previous: u64,
    current: u64,
}

/// The counts as they show at one moment.
struct View {
    start: u64,
    previous: u64,
    current: u64,
    /// Nanoseconds of the previous window that still show, which are also those left of this one.
    left: u64,
    /// Nanoseconds by which the clock lags behind the newest window.
    lag: u64,
}

impl Counts {
    pub(super) fn new(start: u64, previous: u64, current: u64) -> Self {
        Self { start, previous, current }
    }

    pub(super) fn units(&self) -> u64 {
        self.previous.saturating_add(self.current)
    }
}

impl SlidingWindow {
    /// Whether a window starts then.
    pub(super) fn is_start(&self, moment: Option<&u64>) -> bool {
        moment.is_some_and(|moment| moment.is_multiple_of(self.window))
    }

    /// Counts of limits below 2³² share a word.
    pub(super) fn words(&self) -> usize {
        if self.limit < 1 << 32 { 2 } else { 3 }
    }

    fn view(&self, state: &Counts, now: u64) -> View {
        let moment = now.max(state.start);
        let elapsed = moment % self.window;
        let start = moment - elapsed;
        let (previous, current) = match (start - state.start) / self.window {
            0 => (state.previous, state.current),
            1 => (state.current, 0),
            _ => (0, 0),
        };
        View { start, previous, current, left: self.window - elapsed, lag: moment - now }
    }

    /// How long a window with `count` units must have been over before it weighs `most` or less.
    fn fade(&self, count: u64, most: u64) -> u64 {
        if count <= most {
            return 0;
        }
        // count·left/window ≤ most, for the largest whole `left`.
        let left = u128::from(most) * u128::from(self.window) / u128::from(count);
        self.window - u64::try_from(left).unwrap_or(self.window)
    }

    /// Nanoseconds until `cost` fits.
    fn wait(&self, view: &View, cost: u64) -> u64 {
        let elapsed = self.window - view.left;
        let room = self.limit - cost;
        let wait = match room.checked_sub(view.current) {
            Some(room) => self.fade(view.previous, room).saturating_sub(elapsed),
            None => view.left.saturating_add(self.fade(view.current, room)),
        };
        match wait {
            0 => 0,
            wait => wait.saturating_add(view.lag),
        }
    }
}

impl Enforce for SlidingWindow {
    type State = Counts;

    fn verdict(&self, state: &Counts, now: u64, cost: u64) -> Verdict {
        match self.wait(&self.view(state, now), cost) {
            0 => Verdict::ALLOW,
            wait => Verdict::Deny(Retry::After(wait)),
        }
    }

    fn charge(&self, state: &mut Counts, now: u64, units: u64) {
        let view = self.view(state, now);
        *state = Counts {
            start: view.start,
            previous: view.previous,
            current: view.current.saturating_add(units),
        };
    }

    fn credit(&self, state: &mut Counts, _now: u64, charged_at: u64, units: u64) {
        let charged = charged_at - charged_at % self.window;
        if charged == state.start {
            state.current = state.current.saturating_sub(units);
        } else if charged.saturating_add(self.window) == state.start {
            state.previous = state.previous.saturating_sub(units);
        }
    }

    fn remaining(&self, state: &Counts, now: u64) -> u64 {
        let view = self.view(state, now);
        let shows = (u128::from(view.previous) * u128::from(view.left))
            .div_ceil(self.window.into())
            .saturating_add(view.current.into());
        let remaining = u128::from(self.limit).saturating_sub(shows);
        u64::try_from(remaining).unwrap_or(u64::MAX)
    }

    fn reset_after(&self, state: &Counts, now: u64) -> u64 {
        let view = self.view(state, now);
        let wait = match view {
            View { current: 1.., .. } => view.left.saturating_add(self.window),
            View { previous: 1.., .. } => view.left,
            View { .. } => return 0,
        };
        wait.saturating_add(view.lag)
    }

    fn is_idle(&self, state: &Counts, now: u64) -> bool {
        let view = self.view(state, now);
        view.previous == 0 && view.current == 0
    }
}

impl Packed for Counts {
    fn pack(&self, words: &mut [u64]) -> bool {
        let fits = (self.previous | self.current) >> 32 == 0;
        match words {
            [start, counts] => {
                [*start, *counts] = [self.start, self.previous << 32 | self.current];
                fits
            }
            [start, previous, current, ..] => {
                [*start, *previous, *current] = [self.start, self.previous, self.current];
                true
            }
            _ => false,
        }
    }

    fn unpack(words: &[u64]) -> Self {
        match *words {
            [start, counts] => {
                Self { start, previous: counts >> 32, current: counts & u64::from(u32::MAX) }
            }
            [start, previous, current, ..] => Self { start, previous, current },
            _ => Self::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_previous_window_weighs_by_how_much_of_it_still_shows() {
        let ten = SlidingWindow { limit: 10, window: 100 };
        let state = Counts { start: 100, previous: 7, current: 3 };
        // 30 % into the window: 7·0.7 + 3 = 7.9.
        assert_eq!(ten.remaining(&state, 130), 2);
        assert_eq!(ten.verdict(&state, 130, 2), Verdict::ALLOW);
        // For three, at most 4 of the 7 may show: 57 % of the window.
        assert_eq!(ten.verdict(&state, 130, 3), Verdict::Deny(Retry::After(13)));

        let state = Counts { start: 100, previous: 60, current: 30 };
        let hundred = SlidingWindow { limit: 100, ..ten };
        // Half way: 60·0.5 + 30 = 60.
        assert_eq!(hundred.remaining(&state, 150), 40);
    }
}
