//! What people read, in short.

use std::time::Duration;

/// A time in one unit, or two: `10s`, `1min 30s`, `36h`.
pub(crate) fn time(duration: Duration) -> String {
    let units = [("d", 86_400), ("h", 3600), ("min", 60), ("s", 1)];
    let seconds = duration.as_secs();
    if duration.subsec_nanos() > 0 || seconds == 0 {
        let millis = duration.as_nanos().div_ceil(1_000_000);
        if millis < 1000 {
            return format!("{millis}ms");
        }
        let text = format!("{}.{:03}", millis / 1000, millis % 1000);
        return format!("{}s", text.trim_end_matches('0').trim_end_matches('.'));
    }
    let largest = units.iter().position(|(_, length)| seconds >= *length).unwrap_or(3);
    let mut words = Vec::new();
    let mut rest = seconds;
    for (name, length) in units.iter().skip(largest).take(2) {
        if rest / length > 0 {
            words.push(format!("{}{name}", rest / length));
        }
        rest %= length;
    }
    words.join(" ")
}

/// What an SVG may say.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_in_words() {
        for (seconds, told) in
            [(0, "0ms"), (1, "1s"), (60, "1min"), (90, "1min 30s"), (3600, "1h"), (86_400, "1d")]
        {
            assert_eq!(time(Duration::from_secs(seconds)), told);
        }
        assert_eq!(time(Duration::from_millis(1500)), "1.5s");
        assert_eq!(time(Duration::from_micros(1)), "1ms");
    }
}
