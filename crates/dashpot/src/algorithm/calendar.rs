//! Where fixed windows begin and end.

use std::ops::Range;

use arc_swap::ArcSwap;
use jiff::ToSpan;
use jiff::civil::Date;

use crate::quota::NANOS_PER_DAY;
use crate::{Timestamp, Window, Zone};

const EPOCH: Date = Date::constant(1970, 1, 1);

/// The epoch was a Thursday; the first Monday came four days later.
const FIRST_MONDAY: u16 = 4;

/// Cuts all time into windows.
#[derive(Debug)]
pub(super) enum Grid {
    /// Windows of one length, the first full one starting at `offset` nanoseconds.
    Even { length: u64, offset: u64 },
    /// Windows that follow a calendar.
    Calendar(Calendar),
}

impl Grid {
    pub(super) fn new(window: Window, zone: &Zone) -> Self {
        let length = window.nanos();
        let days = length / NANOS_PER_DAY;
        let weeks = days.is_multiple_of(7) && window.is_calendar();
        let first_day = if weeks { FIRST_MONDAY } else { 0 };
        match window.as_months() {
            Some(months) => Self::Calendar(Calendar::new(Step::Months(months.into()), zone)),
            None if zone.is_utc() => {
                Self::Even { length, offset: u64::from(first_day) * NANOS_PER_DAY }
            }
            None => {
                let days = i64::try_from(days).unwrap_or(i64::MAX);
                Self::Calendar(Calendar::new(Step::Days(days, first_day.into()), zone))
            }
        }
    }

    /// The window that holds this moment, in nanoseconds since the epoch, where the first window
    /// is cut short.
    pub(super) fn window_at(&self, now: u64) -> Range<u64> {
        match self {
            Self::Even { length, offset } => match now.checked_sub(*offset) {
                Some(since) => {
                    let start = now - since % length;
                    start..start.saturating_add(*length)
                }
                None => 0..*offset,
            },
            Self::Calendar(calendar) => calendar.window_at(now),
        }
    }
}

/// The number of days or months in a window.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// So many days, counted from so many days after the epoch.
    Days(i64, i64),
    /// So many months, counted from January of the year 0.
    Months(i64),
}

/// Windows of whole days or months in a time zone.
#[derive(Debug)]
pub(super) struct Calendar {
    step: Step,
    zone: Zone,
    /// The window asked about last: nearly all checks fall into the window of the check before, and
    /// need not look up dates.
    last: ArcSwap<Range<u64>>,
}

impl Calendar {
    fn new(step: Step, zone: &Zone) -> Self {
        Self { step, zone: zone.clone(), last: ArcSwap::from_pointee(0..0) }
    }

    fn window_at(&self, now: u64) -> Range<u64> {
        let last = self.last.load();
        if last.contains(&now) {
            return Range::clone(&last);
        }
        let window = self.look_up(now);
        self.last.store(window.clone().into());
        window
    }

    fn look_up(&self, now: u64) -> Range<u64> {
        let mut number = self.number(self.zone.date(Timestamp::from_nanos(now)));
        // Where clocks are set back past midnight, yesterday's date shows again for a while; the
        // new day has begun all the same.
        while self.start(number + 1) <= now {
            number += 1;
        }
        self.start(number)..self.start(number + 1)
    }

    /// Which window a date falls into.
    fn number(&self, date: Date) -> i64 {
        match self.step {
            Step::Days(days, first) => {
                let since_epoch = date.since(EPOCH).map_or(0, |span| span.get_days());
                (i64::from(since_epoch) - first).div_euclid(days)
            }
            Step::Months(months) => {
                let month = i64::from(date.year()) * 12 + i64::from(date.month()) - 1;
                month.div_euclid(months)
            }
        }
    }

    /// When the window of this number starts. Past the last date there is, no window starts.
    fn start(&self, number: i64) -> u64 {
        let date = match self.step {
            Step::Days(days, first) => EPOCH.checked_add((number * days + first).days()).ok(),
            Step::Months(months) => {
                let month = number * months;
                let year = i16::try_from(month.div_euclid(12)).ok();
                let month = i8::try_from(month.rem_euclid(12) + 1).ok();
                year.zip(month).and_then(|(year, month)| Date::new(year, month, 1).ok())
            }
        };
        date.map_or(u64::MAX, |date| self.zone.midnight(date))
    }
}
