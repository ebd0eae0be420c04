//! What a denied caller is told about coming back.

use std::time::Duration;

use dashpot::Decision;

/// What a denied caller is told about coming back. Decided once for each answer, so that all its
/// parts say the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    told: Told,
    /// Seconds added at random.
    extra: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    /// After so many seconds, the extra not counted.
    Seconds(u64),
    /// Later: nobody knows when.
    Later,
    /// Never.
    Never,
    /// Nothing, for it was not denied.
    Nothing,
}

impl Wait {
    /// The wait of this decision, with up to `jitter` added at random, in whole seconds.
    #[must_use]
    pub fn of(decision: &Decision<'_>, jitter: Duration) -> Self {
        if decision.is_allowed() {
            return Self { told: Told::Nothing, extra: 0 };
        }
        let told = match decision.retry_after() {
            Some(wait) => Told::Seconds(whole_seconds(wait).max(1)),
            None if decision.is_never() => Told::Never,
            None => Told::Later,
        };
        Self { told, extra: extra(jitter) }
    }

    /// Soon, with up to `jitter` added at random: of what is free again any moment.
    pub(crate) fn soon(jitter: Duration) -> Self {
        Self { told: Told::Later, extra: extra(jitter) }
    }

    /// The seconds for `Retry-After`, one if nobody knows.
    pub(crate) fn seconds_or_soon(&self) -> u64 {
        self.seconds().unwrap_or_else(|| self.extra.saturating_add(1))
    }

    /// The seconds for `Retry-After`, at least 1. `None` if there is no wait that is known to help.
    #[must_use]
    pub const fn seconds(&self) -> Option<u64> {
        match self.told {
            Told::Seconds(seconds) => Some(seconds.saturating_add(self.extra)),
            Told::Later | Told::Never | Told::Nothing => None,
        }
    }

    /// Whether waiting does not help.
    #[must_use]
    pub fn is_never(&self) -> bool {
        self.told == Told::Never
    }

    /// The seconds that were added at random, to be added to other moments as well.
    pub(crate) const fn extra(&self) -> u64 {
        self.extra
    }
}

fn extra(jitter: Duration) -> u64 {
    match jitter.as_secs() {
        0 => 0,
        most => fastrand::u64(0..=most),
    }
}

/// Rounded up: who comes back too early is denied again.
pub(crate) const fn whole_seconds(wait: Duration) -> u64 {
    let part = if wait.subsec_nanos() > 0 { 1 } else { 0 };
    wait.as_secs().saturating_add(part)
}
