//! Time zones, for windows that follow a calendar.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::Timestamp;

/// A time zone of the IANA database.
///
/// ```
/// use dashpot::{Algorithm, Policy, Quota, Zone};
///
/// let daily = Policy::builder("daily", Quota::per_day(1000))
///     .algorithm(Algorithm::FixedWindow)
///     .zone("Europe/Berlin".parse()?)
///     .build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Zone {
    name: Cow<'static, str>,
    rules: TimeZone,
}

impl Zone {
    /// Universal time.
    pub const UTC: Self = Self { name: Cow::Borrowed("UTC"), rules: TimeZone::UTC };

    /// Its name in the IANA database.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is universal time.
    #[must_use]
    pub fn is_utc(&self) -> bool {
        self.name == Self::UTC.name
    }

    /// The date there at this moment.
    pub(crate) fn date(&self, at: Timestamp) -> Date {
        let nanos = i128::from(at.as_nanos());
        let moment = jiff::Timestamp::from_nanosecond(nanos).unwrap_or(jiff::Timestamp::MAX);
        self.rules.to_datetime(moment).date()
    }

    /// The first moment of this date, in nanoseconds since the epoch; where clocks pass midnight
    /// twice, the earlier one, and where they skip it, the moment they do. A window may end beyond
    /// the last [`Timestamp`], so this is none.
    pub(crate) fn midnight(&self, date: Date) -> u64 {
        let midnight = self.rules.to_ambiguous_timestamp(date.at(0, 0, 0, 0));
        let nanos = midnight.compatible().map_or(i128::MAX, |moment| moment.as_nanosecond());
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }
}

impl FromStr for Zone {
    type Err = UnknownZone;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let unknown = || UnknownZone(name.to_owned());
        // Others for universal time, which the database has as zones of their own.
        const UTC: [&str; 6] = ["UTC", "Etc/UTC", "Zulu", "Universal", "GMT", "Etc/GMT"];
        if UTC.iter().any(|utc| utc.eq_ignore_ascii_case(name)) {
            return Ok(Self::UTC);
        }
        let rules = TimeZone::get(name).map_err(|_| unknown())?;
        let name = rules.iana_name().filter(|_| !rules.is_unknown()).ok_or_else(unknown)?;
        Ok(Self { name: Cow::Owned(name.to_owned()), rules })
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Zone {}

impl Hash for Zone {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Zone({})", self.name)
    }
}

impl fmt::Display for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// There is no time zone of this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a time zone; use a name such as Europe/Berlin, America/New_York or UTC")]
pub struct UnknownZone(String);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_looked_up_and_spelled_as_in_the_database() {
        let berlin: Zone = "europe/berlin".parse().unwrap();
        assert_eq!(berlin.name(), "Europe/Berlin");
        assert!(!berlin.is_utc());
        for utc in ["UTC", "utc", "Etc/UTC", "Zulu", "GMT"] {
            assert!(utc.parse::<Zone>().unwrap().is_utc(), "{utc}");
        }
        assert!("Etc/Unknown".parse::<Zone>().is_err());
        let error = "Europe/Atlantis".parse::<Zone>().unwrap_err();
        assert!(error.to_string().contains("Europe/Atlantis"));
    }
}
