//! Where the windows of the clock and of the calendar begin, in UTC.

use dashpot::{Timestamp, Window};

use super::meter::{Time, time};

const DAY: Time = 86_400_000_000_000;
const WEEK: Time = 7 * DAY;
/// The first Monday after the epoch: 5 January 1970.
const MONDAY: Time = 4 * DAY;

/// The first moment of the fixed window that this moment falls in.
pub(super) fn window_start(window: Window, at: Time) -> Time {
    if let Some(months) = window.as_months() {
        let months = Time::from(months);
        let month = month_of_day(at.div_euclid(DAY));
        return first_day(month.div_euclid(months) * months) * DAY;
    }
    let length = nanos(window);
    let origin = if length % WEEK == 0 { MONDAY } else { 0 };
    (at - origin).div_euclid(length) * length + origin
}

/// Whether two moments fall in the same fixed window.
pub(crate) fn same_window(window: Window, one: Timestamp, other: Timestamp) -> bool {
    window_start(window, time(one)) == window_start(window, time(other))
}

/// The window's length; the mean length of months.
pub(super) fn nanos(window: Window) -> Time {
    Time::try_from(window.length().as_nanos()).expect("at most a hundred years")
}

/// The month that a day since the epoch falls in, counted from January of the year 0.
fn month_of_day(day: Time) -> Time {
    // Never more than a month off: a guess from the mean month, then a step at a time.
    let mut month = 1970 * 12 + day * 4800 / 146_097;
    while first_day(month) > day {
        month -= 1;
    }
    while first_day(month + 1) <= day {
        month += 1;
    }
    month
}

/// The first day of a month counted from January of the year 0, in days since the epoch.
fn first_day(month: Time) -> Time {
    const BEFORE: [Time; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let (year, month) = (month.div_euclid(12), month.rem_euclid(12));
    let leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    let leap_day = Time::from(leap && month >= 2);
    days_before_year(year) - days_before_year(1970) + BEFORE[month as usize] + leap_day
}

/// Days from the start of the year 0 to the start of this one.
fn days_before_year(year: Time) -> Time {
    let last = year - 1;
    365 * year + last.div_euclid(4) - last.div_euclid(100) + last.div_euclid(400) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_begin_where_the_calendar_says() {
        // `date -u -d 2024-03-01 +%s` and friends, in days.
        let year = |year: Time| year * 12;
        assert_eq!(first_day(year(1970)), 0);
        assert_eq!(first_day(year(1970) + 1), 31);
        assert_eq!(first_day(year(2000)), 10_957);
        assert_eq!(first_day(year(2000) + 2), 11_017);
        assert_eq!(first_day(year(2024) + 2), 19_783);
        assert_eq!(first_day(year(2100) + 2), 47_541);
        assert_eq!(month_of_day(19_782), year(2024) + 1);
        assert_eq!(month_of_day(19_783), year(2024) + 2);
        assert_eq!(month_of_day(0), year(1970));
    }

    #[test]
    fn weeks_begin_on_monday() {
        assert_eq!(window_start(Window::WEEK, MONDAY - 1), MONDAY - WEEK);
        assert_eq!(window_start(Window::WEEK, MONDAY), MONDAY);
        assert_eq!(window_start(Window::DAY, DAY + 5), DAY);
    }

    #[test]
    fn quarters_begin_in_january_april_july_and_october() {
        let quarter = Window::months(3).unwrap();
        let may = first_day(2023 * 12 + 4) * DAY;
        assert_eq!(window_start(quarter, may), first_day(2023 * 12 + 3) * DAY);
    }
}
