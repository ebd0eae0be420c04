#![no_main]

//! Traffic in words, as `dashpot simulate` and `POST /v1/simulate` take it.

use std::time::Duration;

use dashpot_simulate::{Setting, Traffic};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let traffic = match text.parse::<Traffic>() {
        Ok(traffic) => traffic,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let told = traffic.to_string();
    assert_eq!(told.parse::<Traffic>(), Ok(traffic), "{told}");
    let setting = Setting { length: Duration::from_secs(60), ..Setting::default() };
    let expected = traffic.expected(setting.length);
    assert!(expected.is_finite() && expected >= 0.0, "{told}: {expected}");
    // The weights of a million callers take a while; a few thousand show the same.
    if matches!(traffic, Traffic::Zipf { callers, .. } if callers > 5000) {
        return;
    }
    let Ok(arrivals) = traffic.arrivals(&setting) else { return };
    let mut last = 0;
    for arrival in arrivals.take(500) {
        assert!((last..60_000_000_000).contains(&arrival.at), "{told}: {arrival:?}");
        last = arrival.at;
    }
});
