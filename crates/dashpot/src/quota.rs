//! What is allowed: so many units per window.

mod text;

use std::num::NonZeroU32;
use std::time::Duration;

pub use text::ParseQuotaError;

/// The mean length of a month of the Gregorian calendar, in seconds (a year has 365.2425 days).
const MEAN_MONTH_SECS: u64 = 2_629_746;

/// The longest window: a hundred years.
const MAX_MONTHS: u32 = 1200;
const MAX_NANOS: u64 = MAX_MONTHS as u64 * MEAN_MONTH_SECS * NANOS_PER_SEC;

pub(crate) const NANOS_PER_SEC: u64 = 1_000_000_000;
pub(crate) const NANOS_PER_DAY: u64 = 86_400 * NANOS_PER_SEC;

/// The window of a [`Quota`]: an exact length of time, or a number of calendar months.
///
/// Every window is longer than nothing and at most a hundred years long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window(Length);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Length {
    Nanos(u64),
    Months(NonZeroU32),
}

impl Window {
    /// One second.
    pub const SECOND: Self = Self::secs(1);
    /// Sixty seconds.
    pub const MINUTE: Self = Self::secs(60);
    /// Sixty minutes.
    pub const HOUR: Self = Self::secs(3600);
    /// Twenty-four hours; under a fixed window in a time zone, a day of its calendar.
    pub const DAY: Self = Self::secs(86_400);
    /// Seven days; fixed windows of whole weeks start on Monday.
    pub const WEEK: Self = Self::secs(7 * 86_400);
    /// A month: of the calendar under a fixed window, else the mean month of 30.436875 days.
    pub const MONTH: Self = Self(Length::Months(NonZeroU32::MIN));
    /// Twelve months.
    pub const YEAR: Self = match Self::months(12) {
        Ok(year) => year,
        Err(_) => Self::MONTH, // never: twelve is in range
    };

    const fn secs(secs: u64) -> Self {
        Self(Length::Nanos(secs * NANOS_PER_SEC))
    }

    /// A window of this exact length.
    ///
    /// # Errors
    /// If the length is zero or more than a hundred years.
    pub const fn new(length: Duration) -> Result<Self, WindowError> {
        let nanos = length.as_nanos();
        if nanos == 0 {
            return Err(WindowError::Empty);
        }
        if nanos > MAX_NANOS as u128 {
            return Err(WindowError::TooLong);
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most MAX_NANOS")]
        Ok(Self(Length::Nanos(nanos as u64)))
    }

    /// A window of so many months.
    ///
    /// # Errors
    /// If there are none, or more than 1200.
    pub const fn months(months: u32) -> Result<Self, WindowError> {
        match NonZeroU32::new(months) {
            None => Err(WindowError::Empty),
            Some(_) if months > MAX_MONTHS => Err(WindowError::TooLong),
            Some(months) => Ok(Self(Length::Months(months))),
        }
    }

    /// How long the window is; for months, their mean length.
    #[must_use]
    pub const fn length(self) -> Duration {
        Duration::from_nanos(self.nanos())
    }

    /// The number of months, if it is counted in months.
    #[must_use]
    pub const fn as_months(self) -> Option<u32> {
        match self.0 {
            Length::Months(months) => Some(months.get()),
            Length::Nanos(_) => None,
        }
    }

    /// Whether a calendar can measure it: whole days or months.
    pub(crate) const fn is_calendar(self) -> bool {
        match self.0 {
            Length::Nanos(nanos) => nanos.is_multiple_of(NANOS_PER_DAY),
            Length::Months(_) => true,
        }
    }

    pub(crate) const fn nanos(self) -> u64 {
        match self.0 {
            Length::Nanos(nanos) => nanos,
            Length::Months(months) => months.get() as u64 * MEAN_MONTH_SECS * NANOS_PER_SEC,
        }
    }
}

/// Why a [`Window`] cannot be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// A window of no length.
    #[error("a window must be longer than nothing")]
    Empty,
    /// A window of more than a hundred years.
    #[error("a window must be at most 100 years long")]
    TooLong,
}

/// So many units per window, with a burst; or so many at once; or no limit at all.
///
/// Any quota that can be written down is a right one: there is nothing to validate later.
///
/// ```
/// use dashpot::{Quota, Window};
///
/// let quota = Quota::per_second(10).burst(20);
/// assert_eq!(quota, "10/s burst 20".parse()?);
/// assert_eq!(Quota::new(5, Window::MINUTE).to_string(), "5/min");
/// # Ok::<(), dashpot::ParseQuotaError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quota(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Rate { count: u64, window: Window, burst: Option<u64> },
    Concurrent(u64),
    Unlimited,
}

impl Quota {
    /// No limit: everything is allowed.
    pub const UNLIMITED: Self = Self(Kind::Unlimited);

    /// `count` units per `window`. A count of 0 never allows anything.
    #[must_use]
    pub const fn new(count: u64, window: Window) -> Self {
        Self(Kind::Rate { count, window, burst: None })
    }

    /// `count` units per second.
    #[must_use]
    pub const fn per_second(count: u64) -> Self {
        Self::new(count, Window::SECOND)
    }

    /// `count` units per minute.
    #[must_use]
    pub const fn per_minute(count: u64) -> Self {
        Self::new(count, Window::MINUTE)
    }

    /// `count` units per hour.
    #[must_use]
    pub const fn per_hour(count: u64) -> Self {
        Self::new(count, Window::HOUR)
    }

    /// `count` units per day.
    #[must_use]
    pub const fn per_day(count: u64) -> Self {
        Self::new(count, Window::DAY)
    }

    /// `count` units per month.
    #[must_use]
    pub const fn per_month(count: u64) -> Self {
        Self::new(count, Window::MONTH)
    }

    /// `count` units in flight at once; see [`Algorithm::Concurrency`](crate::Algorithm).
    #[must_use]
    pub const fn concurrent(count: u64) -> Self {
        Self(Kind::Concurrent(count))
    }

    /// The capacity of a bucket: how much may pass at one instant after a rest. It is the count if
    /// left out.
    ///
    /// A bucket that holds nothing never allows anything, which is a count of 0. Quotas without a
    /// rate, or with a count of 0, have no burst and stay as they are.
    #[must_use]
    pub const fn burst(self, capacity: u64) -> Self {
        match self.0 {
            Kind::Rate { window, .. } if capacity == 0 => Self::new(0, window),
            Kind::Rate { count: count @ 1.., window, .. } => {
                Self(Kind::Rate { count, window, burst: Some(capacity) })
            }
            Kind::Rate { .. } | Kind::Concurrent(_) | Kind::Unlimited => self,
        }
    }

    /// The units per window, or at once; `None` without a limit.
    #[must_use]
    pub const fn count(self) -> Option<u64> {
        match self.0 {
            Kind::Rate { count, .. } | Kind::Concurrent(count) => Some(count),
            Kind::Unlimited => None,
        }
    }

    /// The window, if there is one.
    #[must_use]
    pub const fn window(self) -> Option<Window> {
        match self.0 {
            Kind::Rate { window, .. } => Some(window),
            Kind::Concurrent(_) | Kind::Unlimited => None,
        }
    }

    /// The burst as written; `None` if it was left out.
    #[must_use]
    pub const fn explicit_burst(self) -> Option<u64> {
        match self.0 {
            Kind::Rate { burst, .. } => burst,
            Kind::Concurrent(_) | Kind::Unlimited => None,
        }
    }

    /// The most that can pass at one instant: the burst, else the count.
    #[must_use]
    pub const fn capacity(self) -> u64 {
        match self.0 {
            Kind::Rate { burst: Some(burst), .. } => burst,
            Kind::Rate { count, .. } | Kind::Concurrent(count) => count,
            Kind::Unlimited => u64::MAX,
        }
    }

    /// Whether it counts what is in flight.
    #[must_use]
    pub const fn is_concurrent(self) -> bool {
        matches!(self.0, Kind::Concurrent(_))
    }

    /// Whether there is no limit.
    #[must_use]
    pub const fn is_unlimited(self) -> bool {
        matches!(self.0, Kind::Unlimited)
    }
}
