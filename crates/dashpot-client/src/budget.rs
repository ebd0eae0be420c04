//! How many calls may be made again.

use dashpot::Percent;

/// A retry, in hundredths of a percent of a call.
const ONE: u64 = Percent::WHOLE.hundredths() as u64;

/// What nobody used for retries is kept for so many of them.
const MOST: u64 = 100 * ONE;

/// A share of the calls of a lane: that many may be made again, and no more.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// In hundredths of a percent of a call.
    saved: u64,
}

impl Budget {
    /// Puts by a share of a call.
    pub(crate) fn save(&mut self, share: Percent) {
        self.saved = self.saved.saturating_add(share.hundredths().into()).min(MOST);
    }

    /// Takes one retry, if there is one.
    pub(crate) fn take(&mut self) -> bool {
        let left = self.saved.checked_sub(ONE);
        self.saved = left.unwrap_or(self.saved);
        left.is_some()
    }
}
