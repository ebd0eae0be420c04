//! Tokens of language models.

use bytes::Bytes;
use dashpot::Percent;
use dashpot_client::{Patience, Tokens, Why};
use http::Request;
use http_body_util::Full;

use super::{HERE, Scene};
use crate::common::{answer, get, millis, secs};

fn taking(tokens: u64) -> Request<Full<Bytes>> {
    let mut request = get(HERE);
    request.extensions_mut().insert(Tokens(tokens));
    request
}

/// A server that tells this with its first answer.
fn told(headers: &'static [(&'static str, &'static str)]) -> Scene {
    let mut scene = Scene::new(
        move |arrival| match arrival.number {
            0 => answer(200, headers),
            _ => answer(200, &[]),
        },
        |builder| builder.patience(secs(1000)).thrift(Percent::new(0), secs(0)),
    );
    scene.ask(get(HERE));
    scene
}

/// Of 10 000 there are 1000, and a hundred more each second.
const OPENAI: &[(&str, &str)] = &[
    ("x-ratelimit-limit-tokens", "10000"),
    ("x-ratelimit-remaining-tokens", "1000"),
    ("x-ratelimit-reset-tokens", "1m30s"),
];

#[test]
fn who_takes_no_more_than_is_left_goes_at_once() {
    let mut scene = told(OPENAI);
    assert_eq!(scene.ask(taking(1000)).over, secs(0));
}

#[test]
fn who_takes_more_waits_until_as_many_are_there() {
    let mut scene = told(OPENAI);
    let outcome = scene.ask(taking(3000));
    let over = outcome.over;
    // Two thousand more take twenty seconds; a tenth of ninety may be added by chance.
    assert!(over >= secs(20) && over <= secs(29), "{over:?}");
    assert_eq!(outcome.report.waited_for(Why::Quota), over, "{}", outcome.report);
}

#[test]
fn who_does_not_say_what_it_takes_does_not_wait_for_tokens() {
    let mut scene = told(OPENAI);
    assert_eq!(scene.ask(get(HERE)).over, secs(0));
}

#[test]
fn two_do_not_believe_in_the_same_tokens() {
    let mut scene = told(OPENAI).way(millis(10));
    let calls = [scene.call(taking(900)), scene.call(taking(900))];
    scene.world.run();
    assert_eq!(scene.of(calls[0]).over, millis(20));
    // 800 are missing: eight seconds.
    assert!(scene.of(calls[1]).over >= secs(7), "{:?}", scene.of(calls[1]).over);
}

#[test]
fn input_tokens_of_anthropic_count() {
    let mut scene = Scene::new(
        |arrival| {
            let date = httpdate::fmt_http_date(
                std::time::UNIX_EPOCH + std::time::Duration::from_nanos(arrival.at.as_nanos()),
            );
            let seconds = arrival.at.as_nanos() as i64 / 1_000_000_000 + 90;
            let reset = jiff::Timestamp::from_second(seconds).unwrap().to_string();
            let headers = [
                ("date", date.as_str()),
                ("anthropic-ratelimit-input-tokens-limit", "10000"),
                ("anthropic-ratelimit-input-tokens-remaining", "1000"),
                ("anthropic-ratelimit-input-tokens-reset", reset.as_str()),
            ];
            answer(200, if arrival.number == 0 { &headers } else { &[] })
        },
        |builder| builder.patience(secs(1000)),
    );
    scene.ask(get(HERE));
    let over = scene.ask(taking(3000)).over;
    assert!(over >= secs(20) && over <= secs(31), "{over:?}");
}

#[test]
fn who_takes_more_than_there_ever_is_does_not_wait_for_ever() {
    let mut scene = told(OPENAI);
    let mut request = taking(1_000_000);
    request.extensions_mut().insert(Patience(secs(500)));
    let outcome = scene.ask(request);
    assert!(outcome.over <= secs(501), "{outcome:?}");
}

#[test]
fn who_takes_little_and_comes_later_keeps_its_place_in_line() {
    let mut scene = told(OPENAI);
    let large = scene.call(taking(3000));
    let small = scene.call(taking(1));
    scene.world.run();
    assert!(scene.of(large).over <= scene.of(small).over, "first come, first served");
}

#[test]
fn with_no_tokens_left_and_requests_left_who_takes_tokens_waits() {
    let mut scene = told(&[
        ("x-ratelimit-limit-requests", "100"),
        ("x-ratelimit-remaining-requests", "99"),
        ("x-ratelimit-reset-requests", "600ms"),
        ("x-ratelimit-limit-tokens", "6000"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "1m0s"),
    ]);
    let over = scene.ask(taking(600)).over;
    assert!(over >= secs(6) && over <= secs(12), "{over:?}");
}
