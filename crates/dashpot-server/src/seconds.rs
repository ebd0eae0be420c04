//! Durations as seconds.

use std::time::Duration;

/// As a number of seconds that prints with the very decimals there are, up to three months.
#[expect(
    clippy::cast_precision_loss,
    reason = "exact below 2⁵³ nanoseconds; beyond, nobody counts them"
)]
pub(crate) fn seconds(duration: Duration) -> f64 {
    // One division rounds once; `as_secs_f64` rounds twice, and shows it.
    duration.as_nanos() as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_decimals_there_are() {
        let shown = |nanos| serde_json::to_string(&seconds(Duration::from_nanos(nanos))).unwrap();
        assert_eq!(shown(0), "0.0");
        assert_eq!(shown(100_000_000), "0.1");
        assert_eq!(shown(300_000_001), "0.300000001");
        assert_eq!(shown(2_678_400_123_456_789), "2678400.123456789");
        assert_eq!(shown(7_776_000_999_999_999), "7776000.999999999");
    }
}
