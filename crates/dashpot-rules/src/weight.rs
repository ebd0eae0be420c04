//! How much a request counts beside others.

use std::fmt;
use std::str::FromStr;

use dashpot::Quota;

/// What limits are multiplied by, exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Weight {
    Unlimited,
    /// So many billionths.
    Times(u128),
}

const ONE: u128 = 1_000_000_000;

impl Weight {
    /// A count with this weight: never less than one, unless it was none.
    pub(crate) fn scale(self, count: u64) -> u64 {
        match self {
            _ if count == 0 => 0,
            Self::Unlimited => u64::MAX,
            Self::Times(billionths) => {
                let scaled = u128::from(count).saturating_mul(billionths) / ONE;
                u64::try_from(scaled).unwrap_or(u64::MAX).max(1)
            }
        }
    }

    /// The quota with this weight.
    pub(crate) fn of(self, quota: Quota) -> Quota {
        if self == Self::Unlimited {
            return Quota::UNLIMITED;
        }
        let Some(count) = quota.count() else { return quota };
        match quota.window() {
            None => Quota::concurrent(self.scale(count)),
            Some(window) => {
                let scaled = Quota::new(self.scale(count), window);
                match quota.explicit_burst() {
                    Some(burst) => scaled.burst(self.scale(burst)),
                    None => scaled,
                }
            }
        }
    }
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Times(billionths) => {
                let (whole, rest) = (billionths / ONE, billionths % ONE);
                let text = format!("{whole}.{rest:09}");
                f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
            }
        }
    }
}

impl FromStr for Weight {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unlimited" {
            return Ok(Self::Unlimited);
        }
        let text = text.strip_prefix('+').unwrap_or(text).replace('_', "");
        let (whole, decimals) = text.split_once('.').unwrap_or((&text, ""));
        let digits = |part: &str| part.chars().all(|c| c.is_ascii_digit());
        if whole.is_empty() || whole.len() > 9 || decimals.len() > 9 {
            return Err(());
        }
        if !digits(whole) || !digits(decimals) {
            return Err(());
        }
        let billionths = format!("{whole}{decimals:0<9}").parse().map_err(|_| ())?;
        if billionths == 0 { Err(()) } else { Ok(Self::Times(billionths)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weighted(weight: &str, quota: &str) -> String {
        weight.parse::<Weight>().unwrap().of(quota.parse().unwrap()).to_string()
    }

    #[test]
    fn limits_and_bursts_are_multiplied_exactly() {
        assert_eq!(weighted("10", "100/min"), "1000/min");
        assert_eq!(weighted("10.0", "100/min burst 20"), "1000/min burst 200");
        assert_eq!(weighted("0.5", "5/s"), "2/s");
        assert_eq!(weighted("0.29", "100/s"), "29/s");
        assert_eq!(weighted("0.5", "7 concurrent"), "3 concurrent");
        assert_eq!(weighted("unlimited", "100/min"), "unlimited");
    }

    #[test]
    fn at_least_one_is_left_unless_there_was_none() {
        assert_eq!(weighted("0.001", "5/s burst 3"), "1/s burst 1");
        assert_eq!(weighted("10", "0/s"), "0/s");
        assert_eq!(weighted("3", "18446744073709551615/s"), "18446744073709551615/s");
        assert_eq!(weighted("3", "unlimited"), "unlimited");
    }

    #[test]
    fn what_is_no_weight_is_refused() {
        for text in ["", "0", "0.0", "-1", "1e3", "nan", "inf", "ten", ".5", "0.1234567891"] {
            assert!(text.parse::<Weight>().is_err(), "{text}");
        }
        assert_eq!("1_000.50".parse::<Weight>().unwrap().to_string(), "1000.5");
    }
}
