//! Decisions for people.

use std::io::{self, Write};
use std::time::Duration;

use dashpot::Policy;

use crate::answer::{Answer, OutcomeWord};

pub(crate) fn heading(out: &mut impl Write, policy: &Policy, key: &str) -> io::Result<()> {
    writeln!(out, "{}, {}, key {key:?}\n", policy.quota(), policy.algorithm())?;
    writeln!(out, "   #  outcome  remaining  reset after  retry after  delay")
}

pub(crate) fn row(
    out: &mut impl Write,
    number: u64,
    policy: &Policy,
    answer: &Answer<'_>,
) -> io::Result<()> {
    for status in &answer.policies {
        let retry_after = match status.retry_after {
            Some(wait) => human(wait.0),
            // When a permit comes back nobody knows.
            None if policy.quota().is_concurrent() => "-".to_owned(),
            None if status.outcome == OutcomeWord::Deny => "never".to_owned(),
            None => "-".to_owned(),
        };
        let delay = answer.delay.0;
        let delay = if delay.is_zero() { "-".to_owned() } else { human(delay) };
        writeln!(
            out,
            "{number:>4}  {:<7}  {:>9}  {:>11}  {retry_after:>11}  {delay:>5}",
            status.outcome.as_str(),
            status.remaining,
            human(status.reset_after.0),
        )?;
    }
    Ok(())
}

/// A duration in words, in two units at most and rounded up: a wait that is shown must be enough.
pub(crate) fn human(duration: Duration) -> String {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    if millis < 60_000 {
        let decimals = format!("{}.{:03}", millis / 1000, millis % 1000);
        return format!("{}s", decimals.trim_end_matches('0').trim_end_matches('.'));
    }
    let seconds = millis.div_ceil(1000);
    if seconds < 3600 {
        return format!("{}m{}s", seconds / 60, seconds % 60);
    }
    let minutes = seconds.div_ceil(60);
    if minutes < 1440 {
        return format!("{}h{}m", minutes / 60, minutes % 60);
    }
    let hours = minutes.div_ceil(60);
    format!("{}d{}h", hours / 24, hours % 24)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_rounded_up() {
        let human = |nanos| human(Duration::from_nanos(nanos));
        assert_eq!(human(0), "0s");
        assert_eq!(human(1), "0.001s");
        assert_eq!(human(1_500_000_000), "1.5s");
        assert_eq!(human(1_999_999_999), "2s");
        assert_eq!(human(1_050_000_000), "1.05s");
        assert_eq!(human(59_999_999_999), "1m0s");
        assert_eq!(human(99_000_000_001), "1m40s");
        assert_eq!(human(3_599_500_000_000), "1h0m");
        assert_eq!(human(7_201_000_000_000), "2h1m");
        assert_eq!(human(86_400_000_000_001), "1d1h");
    }
}
