#![no_main]

//! What servers tell the client about their limits: whatever they write, it is bounded.

use std::time::Duration;

use dashpot::Timestamp;
use dashpot_client::Told;
use dashpot_fuzz::parts;
use libfuzzer_sys::fuzz_target;

const YEAR: Duration = Duration::from_secs(366 * 86_400);

fuzz_target!(|data: &[u8]| {
    let headers = parts::headers(data);
    let now = Timestamp::from_secs(1_800_000_000);
    let told = Told::read(&headers, now);
    assert_eq!(told, Told::read(&headers, now));
    assert!(told.retry_after.is_none_or(|wait| wait <= YEAR), "{told:?}");
    assert!(told.allowances.len() <= 8, "{told:?}");
    for known in &told.allowances {
        assert!(known.name.len() <= 128, "{known:?}");
        assert!(known.reset_after.is_none_or(|wait| wait <= YEAR), "{known:?}");
        assert!(known.remaining.is_some() || known.reset_after.is_some(), "{known:?}");
    }
    // Who says so many seconds is not asked again before.
    let said = headers.get("retry-after").and_then(|said| said.to_str().ok());
    let said = said.filter(|said| said.bytes().all(|byte| byte.is_ascii_digit()));
    if let Some(seconds) = said.and_then(|said| said.parse::<u32>().ok()) {
        let wait = Duration::from_secs(seconds.into()).min(YEAR);
        assert!(told.retry_after >= Some(wait), "{told:?}");
    }
});
