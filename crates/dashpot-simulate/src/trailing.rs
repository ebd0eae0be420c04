//! How much passed in the window that ends now, whenever that is.

use std::collections::VecDeque;

/// The most that passed in any window's length, and when that window ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worst {
    /// How many units.
    pub units: u64,
    /// When the window ended, in nanoseconds since the start.
    pub at: u64,
    /// Whose it was.
    pub caller: u32,
}

/// What one caller was granted within the last window: later than its length ago, up to now.
#[derive(Debug)]
pub(crate) struct Trailing {
    window: u64,
    passed: VecDeque<(u64, u64)>,
    sum: u64,
}

impl Trailing {
    pub(crate) const fn new(window: u64) -> Self {
        Self { window, passed: VecDeque::new(), sum: 0 }
    }

    /// So many units leave, not before those that left before. `tell` hears how much it is from when on, step by step.
    pub(crate) fn pass(&mut self, at: u64, units: u64, mut tell: impl FnMut(u64, u64)) -> u64 {
        self.forget(at, &mut tell);
        self.sum = self.sum.saturating_add(units);
        self.passed.push_back((at, units));
        tell(at, self.sum);
        self.sum
    }

    /// Time goes on until then.
    pub(crate) fn forget(&mut self, until: u64, mut tell: impl FnMut(u64, u64)) {
        while let Some((at, units)) = self.passed.front().copied() {
            let end = at.saturating_add(self.window);
            if end > until {
                return;
            }
            self.passed.pop_front();
            self.sum = self.sum.saturating_sub(units);
            tell(end, self.sum);
        }
    }
}

/// A line of steps, kept as well as so many columns can show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Steps {
    column: u64,
    /// When, and how much from then on: the first, the lowest, the highest and the last of a column.
    points: Vec<(u64, u64)>,
    /// What is in the column that is not over.
    open: Vec<(u64, u64)>,
}

impl Steps {
    pub(crate) fn of(length: u64, columns: u64) -> Self {
        let open = vec![(0, 0)];
        Self { column: length.div_ceil(columns.max(1)).max(1), points: Vec::new(), open }
    }

    pub(crate) fn step(&mut self, at: u64, value: u64) {
        if self.open.first().is_some_and(|(first, _)| at / self.column != first / self.column) {
            self.close();
        }
        self.open.push((at, value));
        // Of many steps in one column only the extremes are seen.
        if self.open.len() > 64 {
            self.open = extremes(&self.open);
        }
    }

    fn close(&mut self) {
        self.points.extend(extremes(&self.open));
        self.open.clear();
    }

    /// All of it.
    pub(crate) fn into_points(mut self) -> Vec<(u64, u64)> {
        self.close();
        self.points
    }
}

fn extremes(open: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let lowest = open.iter().min_by_key(|(_, value)| *value);
    let highest = open.iter().max_by_key(|(_, value)| *value);
    let mut kept: Vec<(u64, u64)> =
        [open.first(), lowest, highest, open.last()].into_iter().flatten().copied().collect();
    // Steady: what is before at the same time stays before.
    kept.sort_by_key(|(at, _)| *at);
    kept.dedup();
    kept
}
