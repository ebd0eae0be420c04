//! What nobody should say or set, and what comes of it: nothing bad.

use dashpot::Timestamp;
use dashpot_client::{Tokens, Told};
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use http_body_util::Full;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{Answer, HERE, Scene};
use crate::common::{Arrival, HEADERS, answer, get, secs};

const VALUES: &[&str] = &[
    "0",
    "1",
    "-1",
    "-0",
    "+5",
    "1.5",
    "1e9",
    "1e308",
    "1e999",
    "NaN",
    "inf",
    "-inf",
    "",
    " ",
    ",",
    "18446744073709551615",
    "18446744073709551616",
    "99999999999999999999999999999999999999",
    "9223372036854775807",
    "-9223372036854775808",
    "0x10",
    "١٢",
    "½",
    "true",
    "false",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "Fri, 31 Dec 9999 23:59:59 GMT",
    "Mon, 99 Foo 0000 99:99:99",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
    "-9999-01-01T00:00:00Z",
    "0000-00-00T00:00:00Z",
    "6m0s",
    "99999999999999h",
    "-5s",
    "1ms",
    "1h1h1h",
    "s",
    "m",
    "1d",
    "\"a\";r=0;t=0",
    "\"a\";r=-1;t=-1",
    "\"a\";r=999999999999999;t=999999999999999",
    "\"a\";r=0.5;t=0.5",
    "\"a\";r=?1;t=\"x\"",
    "\"a\";q=0;w=0",
    "\"a\";q=1;w=999999999999999",
    "limit=0, remaining=0, reset=0",
    "limit=, remaining=, reset=",
    "10;w=0",
    ";;;;",
    "\"",
    "\"a",
    "(((",
    "a;b;c;d=e=f",
];

fn header() -> impl Strategy<Value = (&'static str, HeaderValue)> {
    let absurd = proptest::sample::select(VALUES)
        .prop_map(|text| HeaderValue::from_bytes(text.as_bytes()).unwrap());
    let bytes = vec(any::<u8>(), 0..20)
        .prop_filter_map("no header", |bytes| HeaderValue::from_bytes(&bytes).ok());
    let number = any::<u64>().prop_map(HeaderValue::from);
    let small = (0..100_u64).prop_map(HeaderValue::from);
    let value = prop_oneof![3 => absurd, 1 => bytes, 1 => number, 2 => small];
    (proptest::sample::select(HEADERS), value)
}

fn map(headers: &[(&'static str, HeaderValue)]) -> HeaderMap {
    let named = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.clone()));
    let mut map = HeaderMap::new();
    named.for_each(|(name, value)| {
        map.append(name, value);
    });
    map
}

proptest! {
    #![proptest_config(super::cases(256))]

    #[test]
    fn whatever_headers_say_it_can_be_read(headers in vec(header(), 0..12), now in any::<u64>()) {
        let told = Told::read(&map(&headers), Timestamp::from_nanos(now));
        // What is believed is within what can be waited for.
        for allowance in &told.allowances {
            prop_assert!(!allowance.name.is_empty() || allowance.remaining.is_some());
        }
        let again = Told::read(&map(&headers), Timestamp::from_nanos(now));
        prop_assert_eq!(told, again);
    }

    #[test]
    fn whatever_servers_say_every_call_comes_to_an_end_in_time(
        answers in vec((prop_oneof![Just(200_u16), Just(429), Just(403), Just(503)], vec(header(), 0..8)), 1..8),
        seed in any::<u64>(),
    ) {
        let handler = move |arrival: &Arrival| -> Answer {
            let (status, headers) = &answers[arrival.number % answers.len()];
            let mut response = Response::builder().status(*status).body(Full::default())?;
            *response.headers_mut() = map(headers);
            Ok(response)
        };
        let mut scene = Scene::new(handler, |builder| builder.seed(seed));
        let calls: Vec<usize> = (0..12)
            .map(|number| {
                let mut request = get(HERE);
                if number % 3 == 0 {
                    request.extensions_mut().insert(Tokens(1 << (number * 5)));
                }
                scene.call_at(secs(number), request)
            })
            .collect();
        scene.world.run();
        for (number, call) in calls.into_iter().enumerate() {
            let over = scene.of(call).over - secs(number as u64);
            prop_assert!(over <= secs(121), "{over:?}");
        }
        let seen = scene.server.arrivals().len();
        prop_assert!(seen <= 12 * 4);
    }
}

#[test]
fn thousands_of_lines_are_noise() {
    let mut headers = HeaderMap::new();
    for number in 0..10_000 {
        let text = format!("\"p{number}\";r=0;t={number}");
        headers.append("ratelimit", text.parse().unwrap());
        headers.append("ratelimit-policy", format!("\"p{number}\";q=1;w=1").parse().unwrap());
        headers.append("retry-after", number.to_string().parse().unwrap());
    }
    let told = Told::read(&headers, Timestamp::from_secs(1_800_000_000));
    assert!(told.allowances.len() <= 1000, "{}", told.allowances.len());
    // One line with as much.
    let long = (0..20_000).map(|number| format!("\"p{number}\";r=1;t=5")).collect::<Vec<_>>();
    let mut headers = HeaderMap::new();
    headers.insert("ratelimit", long.join(", ").parse().unwrap());
    let told = Told::read(&headers, Timestamp::from_secs(1_800_000_000));
    assert!(told.allowances.len() <= 1000, "{}", told.allowances.len());
}

#[test]
fn a_server_with_ever_new_names_is_not_remembered_for_ever() {
    let handler = |arrival: &Arrival| {
        let text = format!("\"p{}\";r=100000;t=50", arrival.number);
        answer(200, &[("ratelimit", &text)])
    };
    let mut scene = Scene::new(handler, |builder| builder);
    for _ in 0..2000 {
        let outcome = scene.ask(get(HERE));
        assert_eq!((outcome.status, outcome.over), (Some(200), secs(0)));
    }
}

#[test]
fn malformed_waits_are_ignored() {
    for value in ["-5", "NaN", "soon", "", "1e9x", "Mon, 99 Foo 0000 99:99:99", "½"] {
        let mut headers = HeaderMap::new();
        headers.insert("retry-after", HeaderValue::from_bytes(value.as_bytes()).unwrap());
        let told = Told::read(&headers, Timestamp::from_secs(1_800_000_000));
        assert_eq!(told.retry_after, None, "{value}");
    }
}

#[test]
fn a_wait_that_is_past_is_none() {
    let mut scene = Scene::new(
        |arrival| match arrival.number {
            0 => answer(429, &[("retry-after", "Thu, 01 Jan 1970 00:00:00 GMT")]),
            _ => answer(200, &[]),
        },
        |builder| builder,
    );
    let outcome = scene.ask(get(HERE));
    assert_eq!(outcome.status, Some(200));
    assert!(outcome.over <= secs(1), "{outcome:?}");
}
