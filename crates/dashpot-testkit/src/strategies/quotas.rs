//! Counts and windows: friendly, awkward and extreme.

use std::time::Duration;

use dashpot::{Quota, Window};
use proptest::prelude::*;

/// A hundred years of the calendar in nanoseconds: the longest window.
const CENTURY: u64 = 3_155_695_200_000_000_000;

/// Units per window: mostly a few, now and then a prime, and all the way from none to
/// `u64::MAX`.
pub fn count() -> BoxedStrategy<u64> {
    prop_oneof![
        12 => 1_u64..=10,
        6 => prop::sample::select(vec![7, 13, 60, 97, 100, 7777, 65_537]),
        1 => Just(0),
        2 => prop::sample::select(vec![1_000_000, 1_000_000_000, 1_000_000_007, 1 << 53]),
        1 => prop::sample::select(vec![u64::MAX, u64::MAX - 1, i64::MAX as u64, 1 << 63]),
        1 => any::<u64>(),
    ]
    .boxed()
}

/// Windows: mostly seconds to hours, now and then of a prime length or of the calendar, and all the
/// way from a nanosecond to a hundred years.
pub fn window() -> BoxedStrategy<Window> {
    let calendar = vec![Window::DAY, Window::WEEK, Window::MONTH, Window::YEAR, nanos(14 * DAY)];
    let awkward = vec![nanos(7), nanos(999_999_937), nanos(1_000_000_007), nanos(86_399_999_999)];
    let extreme = vec![nanos(1), nanos(2), nanos(1000), nanos(CENTURY - 1), nanos(CENTURY)];
    prop_oneof![
        8 => friendly_window(),
        4 => prop::sample::select(awkward),
        3 => prop::sample::select(calendar),
        1 => (1_u32..=1200).prop_map(|months| Window::months(months).unwrap()),
        2 => prop::sample::select(extreme),
        1 => (1..=CENTURY).prop_map(nanos),
    ]
    .boxed()
}

/// Seconds to hours.
pub(super) fn friendly_window() -> BoxedStrategy<Window> {
    let windows = [Window::SECOND, Window::MINUTE, Window::HOUR, nanos(10_000_000_000)];
    prop::sample::select(windows.to_vec()).boxed()
}

/// So many units per window, without a burst.
pub fn quota() -> BoxedStrategy<Quota> {
    (count(), window()).prop_map(|(count, window)| Quota::new(count, window)).boxed()
}

const DAY: u64 = 86_400_000_000_000;

fn nanos(nanos: u64) -> Window {
    Window::new(Duration::from_nanos(nanos)).unwrap()
}
