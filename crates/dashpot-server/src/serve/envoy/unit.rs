//! Units of time, as envoyproxy/ratelimit counts them.

use std::time::Duration;

use dashpot::{Algorithm, Policy, PolicyError, Quota, Window};

use super::message::Unit;

const DAY: u64 = 24 * 60 * 60;

/// All units, their names and how long they are, in seconds: a month is 30 days, a year 365.
const UNITS: [(Unit, &str, u64); 7] = [
    (Unit::Second, "SECOND", 1),
    (Unit::Minute, "MINUTE", 60),
    (Unit::Hour, "HOUR", 60 * 60),
    (Unit::Day, "DAY", DAY),
    (Unit::Week, "WEEK", 7 * DAY),
    (Unit::Month, "MONTH", 30 * DAY),
    (Unit::Year, "YEAR", 365 * DAY),
];

impl Unit {
    /// By its name, in any case.
    pub(crate) fn named(name: &str) -> Option<Self> {
        UNITS.iter().find(|(_, known, _)| known.eq_ignore_ascii_case(name)).map(|(unit, ..)| *unit)
    }

    /// By its number, if it is one of time.
    pub(crate) fn numbered(number: i32) -> Option<Self> {
        Self::try_from(number).ok().filter(|unit| *unit != Self::Unknown)
    }

    pub(crate) fn name(self) -> &'static str {
        UNITS.iter().find(|(unit, ..)| *unit == self).map_or("UNKNOWN", |(_, name, _)| name)
    }

    /// The unit a window is, if it is one. The calendar's months are none.
    pub(crate) fn of(window: Window) -> Self {
        let is_it = |unit: &Self| unit.window().is_some_and(|known| known == window);
        UNITS.iter().map(|(unit, ..)| *unit).find(is_it).unwrap_or(Self::Unknown)
    }

    fn window(self) -> Option<Window> {
        let (_, _, seconds) = UNITS.iter().find(|(unit, ..)| *unit == self)?;
        Window::new(Duration::from_secs(*seconds)).ok()
    }

    /// The policy of so many in a unit.
    pub(crate) fn policy(
        self,
        name: &str,
        count: u32,
        algorithm: Algorithm,
    ) -> Result<Policy, PolicyError> {
        // All units of time are windows.
        let window = self.window().unwrap_or(Window::SECOND);
        Policy::builder(name, Quota::new(u64::from(count), window)).algorithm(algorithm).build()
    }
}
