//! Why a call took as long as it did.

use std::fmt;
use std::time::Duration;

use http::StatusCode;

/// What a call waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Why {
    /// Others were there before.
    Line,
    /// Its own [pace](crate::Pace).
    Pace,
    /// As many as may were on their way.
    Concurrent,
    /// The server said when to come back.
    RetryAfter,
    /// The server's quota was used up, by its own account.
    Quota,
    /// Little was left of the server's quota: calls are spread.
    Thrift,
    /// The server had turned somebody away: one call goes first, to see, and then two, and so on.
    Caution,
    /// The last attempt failed.
    Backoff,
}

impl Why {
    const ALL: [Self; 8] = [
        Self::Line,
        Self::Pace,
        Self::Concurrent,
        Self::RetryAfter,
        Self::Quota,
        Self::Thrift,
        Self::Caution,
        Self::Backoff,
    ];

    /// A word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Pace => "pace",
            Self::Concurrent => "concurrent",
            Self::RetryAfter => "retry-after",
            Self::Quota => "quota",
            Self::Thrift => "thrift",
            Self::Caution => "caution",
            Self::Backoff => "backoff",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a call was not made once more, though its answer asked for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GaveUp {
    /// It was made as often as it may be.
    Attempts,
    /// It may have been carried out, and to do it twice may do harm: its method is not idempotent, and it has no
    /// idempotency key.
    Unsafe,
    /// Its body has been sent and was not kept: it was too long.
    Body,
    /// It would be too late.
    TooLate,
    /// Too many calls have been made more than once lately.
    Budget,
    /// The server said that there is no point.
    Told,
}

impl fmt::Display for GaveUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Attempts => "no attempt is left",
            Self::Unsafe => "to do it twice may do harm",
            Self::Body => "its body is gone",
            Self::TooLate => "it would be too late",
            Self::Budget => "too many calls are made twice",
            Self::Told => "the server says there is no point",
        })
    }
}

/// Why a call took as long as it did. Every answer has one among its extensions, and so has every
/// [error](crate::CallError).
///
/// ```
/// # fn look(response: &http::Response<()>) {
/// use dashpot_client::Report;
///
/// if let Some(report) = response.extensions().get::<Report>() {
///     println!("{report}");                  // sent 2 times; waited 12.3s: retry-after 12.1s, pace 200.0ms
/// }
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    attempts: u32,
    /// In nanoseconds: half as long as durations, since it is part of every error.
    waits: [u64; Why::ALL.len()],
    last_status: Option<StatusCode>,
    gave_up: Option<GaveUp>,
}

impl Report {
    /// How often it was sent.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.attempts
    }

    /// How long it waited in all, its answers not counted.
    #[must_use]
    pub fn waited(&self) -> Duration {
        self.waits().map(|(_, time)| time).sum()
    }

    /// What it waited for, and how long.
    pub fn waits(&self) -> impl Iterator<Item = (Why, Duration)> + '_ {
        let all = Why::ALL.into_iter().zip(self.waits.map(Duration::from_nanos));
        all.filter(|(_, time)| !time.is_zero())
    }

    /// How long it waited for this.
    #[must_use]
    pub fn waited_for(&self, why: Why) -> Duration {
        self.waits().find(|(known, _)| *known == why).map_or(Duration::ZERO, |(_, time)| time)
    }

    /// The last attempt's status, if it was answered: also of a call that was then to be made again, and was not.
    #[must_use]
    pub const fn last_status(&self) -> Option<StatusCode> {
        self.last_status
    }

    /// Why it was not made once more, though it failed.
    #[must_use]
    pub const fn gave_up(&self) -> Option<GaveUp> {
        self.gave_up
    }

    pub(crate) fn wait(&mut self, why: Why, time: Duration) {
        let all = Why::ALL.into_iter().zip(&mut self.waits);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        for (_, known) in all.filter(|(known, _)| *known == why) {
            *known = known.saturating_add(nanos);
        }
    }

    pub(crate) const fn sent(&mut self) {
        self.attempts = self.attempts.saturating_add(1);
    }

    pub(crate) const fn answered(&mut self, status: Option<StatusCode>) {
        self.last_status = status;
    }

    pub(crate) const fn give_up(&mut self, why: GaveUp) {
        self.gave_up = Some(why);
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.attempts {
            0 => f.write_str("not sent")?,
            1 => f.write_str("sent once")?,
            times => write!(f, "sent {times} times")?,
        }
        if !self.waited().is_zero() {
            write!(f, "; waited {:.1?}: ", self.waited())?;
            for (number, (why, time)) in self.waits().enumerate() {
                let comma = if number == 0 { "" } else { ", " };
                write!(f, "{comma}{why} {time:.1?}")?;
            }
        }
        match self.gave_up {
            Some(why) => write!(f, "; gave up: {why}"),
            None => Ok(()),
        }
    }
}
