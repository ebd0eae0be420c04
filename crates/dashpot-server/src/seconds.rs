//! Durations as seconds.

use std::borrow::Cow;
use std::time::Duration;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration that is told in seconds, with the very decimals there are, up to three months.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seconds(pub(crate) Duration);

impl Seconds {
    #[expect(
        clippy::cast_precision_loss,
        reason = "exact below 2⁵³ nanoseconds; beyond, nobody counts them"
    )]
    pub(crate) fn as_f64(self) -> f64 {
        // One division rounds once; `as_secs_f64` rounds twice, and shows it.
        self.0.as_nanos() as f64 / 1e9
    }
}

impl Serialize for Seconds {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.subsec_nanos() {
            0 => to.serialize_u64(self.0.as_secs()),
            _ => to.serialize_f64(self.as_f64()),
        }
    }
}

impl<'de> Deserialize<'de> for Seconds {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let seconds = f64::deserialize(from)?;
        Ok(Self(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)))
    }
}

impl JsonSchema for Seconds {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Seconds".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schemars::json_schema!({ "type": "number", "minimum": 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_have_the_decimals_there_are() {
        let shown = |nanos| serde_json::to_string(&Seconds(Duration::from_nanos(nanos))).unwrap();
        assert_eq!(shown(0), "0");
        assert_eq!(shown(2_000_000_000), "2");
        assert_eq!(shown(100_000_000), "0.1");
        assert_eq!(shown(300_000_001), "0.300000001");
        assert_eq!(shown(2_678_400_123_456_789), "2678400.123456789");
        assert_eq!(shown(7_776_000_999_999_999), "7776000.999999999");
    }

    #[test]
    fn what_is_told_is_read_back() {
        for nanos in [0, 1, 999_999_999, 100_000_000, 7_776_000_999_999_999] {
            let told = serde_json::to_string(&Seconds(Duration::from_nanos(nanos))).unwrap();
            let read: Seconds = serde_json::from_str(&told).unwrap();
            assert_eq!(read.0, Duration::from_nanos(nanos));
        }
    }
}
