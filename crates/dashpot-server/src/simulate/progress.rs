//! How far it is, for who waits.

use std::cell::Cell;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar on the terminal; nothing where there is none.
pub(super) struct Bar {
    bar: ProgressBar,
    seen: Cell<u64>,
}

impl Bar {
    /// So far to go, in whatever is counted.
    pub(super) fn of(steps: u64) -> Self {
        let bar =
            ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{wide_bar} {percent:>3} %  {eta} left") {
            bar.set_style(style);
        }
        Self { bar, seen: Cell::new(0) }
    }

    /// So far it is. Seldom told on: to look at the time takes longer than to decide.
    pub(super) fn at(&self, step: u64) {
        let told = self.seen.get() + 1;
        self.seen.set(told);
        // What is over soon needs no bar.
        if told.is_multiple_of(16) && self.bar.elapsed() > Duration::from_millis(300) {
            self.bar.set_position(step);
        }
    }

    pub(super) fn end(&self) {
        self.bar.finish_and_clear();
    }
}
