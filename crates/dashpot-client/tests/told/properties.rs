//! Whatever is told, nobody panics, and nothing has no end.

use std::time::Duration;

use dashpot::Timestamp;
use dashpot_client::Told;
use http::{HeaderMap, HeaderName, HeaderValue};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::{NOW, read};
use crate::common::HEADERS;

/// Parts that values are made of: put together at random they are nearly right.
const PARTS: [&str; 40] = [
    "\"a\"",
    "\"b\"",
    ";r=",
    ";t=",
    ";q=",
    ";w=",
    ";qu=",
    "\"tokens\"",
    "limit=",
    "remaining=",
    "reset=",
    ", ",
    ",",
    ";",
    "0",
    "1",
    "60",
    "1.5",
    "-1",
    "999999999999999",
    "9999999999999999",
    "18446744073709551616",
    "340282366920938463463374607431768211456",
    "1700000030",
    "1700000030000",
    "1000000000",
    "1000000000000",
    "6m0s",
    "12ms",
    "1h",
    "9223372036854775807h",
    "2023-11-14T22:13:50Z",
    "-009999-01-02T01:59:59Z",
    "9999-12-30T22:00:00.999999999Z",
    "Tue, 14 Nov 2023 22:13:50 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "(",
    ")",
    ":YQ==:",
];

fn value() -> impl Strategy<Value = HeaderValue> {
    let parts = vec(select(&PARTS[..]), 0..8).prop_map(|parts| parts.concat().into_bytes());
    let long = (select(&PARTS[..]), 0..3000usize)
        .prop_map(|(part, times)| part.repeat(times).into_bytes());
    let any = prop_oneof![4 => parts, 2 => vec(any::<u8>(), 0..40), 1 => long];
    any.prop_filter_map("no value", |bytes| HeaderValue::from_bytes(&bytes).ok())
}

fn answers() -> impl Strategy<Value = HeaderMap> {
    let fields = vec((select(HEADERS), value()), 0..12);
    fields.prop_map(|fields| {
        let named = |(name, value)| (HeaderName::from_static(name), value);
        let mut headers = HeaderMap::new();
        fields.into_iter().map(named).for_each(|(name, value)| {
            headers.append(name, value);
        });
        headers
    })
}

/// A year, and a day for those that have one more.
const LONGEST: Duration = Duration::from_secs(366 * 86_400);

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn whatever_is_told_is_bounded(headers in answers(), now in prop_oneof![Just(NOW * 1_000_000_000), any::<u64>()]) {
        let told = Told::read(&headers, Timestamp::from_nanos(now));
        prop_assert!(told.retry_after.is_none_or(|wait| wait <= LONGEST), "{told:?}");
        prop_assert!(told.allowances.len() <= 8, "{told:?}");
        for known in &told.allowances {
            prop_assert!(known.name.len() <= 128, "{known:?}");
            prop_assert!(known.reset_after.is_none_or(|wait| wait <= LONGEST), "{known:?}");
            prop_assert!(known.remaining.is_some() || known.reset_after.is_some(), "{known:?}");
        }
        prop_assert_eq!(&told, &Told::read(&headers, Timestamp::from_nanos(now)));
    }

    #[test]
    fn what_is_well_formed_is_read_as_it_was_meant(
        limit in 0..1_000_000_000_000_000u64,
        remaining in 0..1_000_000_000_000_000u64,
        reset in 0..31_000_000u64,
    ) {
        let told = |name: &str| format!("{name}: {remaining}/{limit} requests, all in {:?}", Duration::from_secs(reset));
        let current = format!("RateLimit-Policy: \"a\";q={limit};w=60\nRateLimit: \"a\";r={remaining};t={reset}");
        prop_assert_eq!(read(&current), [told("a")]);
        let draft_07 = format!("RateLimit: limit={limit}, remaining={remaining}, reset={reset}");
        prop_assert_eq!(read(&draft_07), [told("ratelimit")]);
        for prefix in ["RateLimit", "X-RateLimit", "X-Rate-Limit"] {
            let name = prefix.to_ascii_lowercase();
            let three = |reset: &str| {
                read(&format!("{prefix}-Limit: {limit}\n{prefix}-Remaining: {remaining}\n{prefix}-Reset: {reset}"))
            };
            prop_assert_eq!(three(&reset.to_string()), [told(&name)]);
            prop_assert_eq!(three(&(NOW + reset).to_string()), [told(&name)]);
            prop_assert_eq!(three(&format!("{}000", NOW + reset)), [told(&name)]);
        }
    }

    #[test]
    fn a_header_that_nobody_knows_changes_nothing(headers in answers(), other in value()) {
        let now = Timestamp::from_secs(NOW);
        let before = Told::read(&headers, now);
        let mut more = headers;
        more.insert("x-request-cost", other.clone());
        more.insert("x-ratelimit-used", other);
        prop_assert_eq!(before, Told::read(&more, now));
    }
}
