#![no_main]

//! What our layer writes is read by our client as what it means, in every style. The input is limits and checks.

use std::time::Duration;

use dashpot::{Check, ManualClock, MemoryStore, Policy, Timestamp};
use dashpot_client::Told;
use dashpot_http::{Wait, headers};
use dashpot_rules::{HeaderStyle, Headers};
use http::{HeaderMap, HeaderValue};
use libfuzzer_sys::fuzz_target;

/// The most that is told.
const INTEGER_MAX: u64 = 999_999_999_999_999;

fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    // A name and a limit; then costs.
    let (name, limit) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let Ok(quota) = limit.parse() else { return };
    let Ok(policy) = Policy::new(name, quota) else { return };
    let clock = ManualClock::new(Timestamp::from_nanos(1_700_000_000_250_000_000));
    let store = MemoryStore::with_clock(clock.clone());
    for line in lines.take(8) {
        let Ok(cost) = line.parse::<u64>() else { continue };
        clock.advance(Duration::from_millis(cost % 1000));
        let decision = store.decide_now(&[Check::new(&policy, "a").cost(cost)]);
        for style in HeaderStyle::ALL {
            let (mut config, mut fields) = (Headers::default(), HeaderMap::new());
            config.styles = vec![style];
            let wait = Wait::of(&decision, Duration::ZERO);
            headers::describe(&decision, &wait, &config, &mut fields);
            if let Some(seconds) = wait.seconds() {
                fields.insert("retry-after", HeaderValue::from(seconds));
            }
            let told = Told::read(&fields, decision.at());
            if let (Some(read), Some(needed)) = (told.retry_after, decision.retry_after()) {
                let year = Duration::from_secs(366 * 86_400);
                assert!(read >= needed.min(year), "too early: {fields:?}");
            }
            assert_eq!(told.retry_after.is_some(), wait.seconds().is_some(), "{fields:?}");
            let [known] = &*told.allowances else { continue };
            let status = &decision.statuses()[0];
            let left = if decision.is_allowed() { status.remaining() } else { 0 };
            assert_eq!(known.limit, Some(status.limit().min(INTEGER_MAX)), "{fields:?}");
            assert_eq!(known.remaining, Some(left.min(INTEGER_MAX)), "{fields:?}");
            // Structured fields have no other letters.
            if style == HeaderStyle::Ietf && name.chars().all(|c| (' '..='~').contains(&c)) {
                assert_eq!(&*known.name, policy.name());
            }
        }
    }
});
