//! What headers say, read back by a parser that is not ours, against the rules for filling them.

mod scene;

use std::time::Duration;

use dashpot::{Algorithm, Decision, PolicyStatus, Timestamp};
use dashpot_http::{Wait, headers};
use dashpot_rules::{HeaderStyle, Headers};
use dashpot_testkit::strategies::cases;
use http::HeaderMap;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use scene::scene;
use sfv::{BareItem, Dictionary, Item, List, ListEntry, Parser};

const FIFTEEN_DIGITS: u64 = 10_u64.pow(15) - 1;

fn told(decision: &Decision<'_>, style: HeaderStyle, jitter: u64) -> (Wait, HeaderMap) {
    let mut config = Headers::default();
    config.styles = vec![style];
    let wait = Wait::of(decision, Duration::from_secs(jitter));
    let mut told = HeaderMap::new();
    headers::describe(decision, &wait, &config, &mut told);
    (wait, told)
}

fn text<'a>(told: &'a HeaderMap, name: &str) -> &'a str {
    assert_eq!(told.get_all(name).iter().count(), 1, "{name}");
    told[name].to_str().unwrap()
}

/// An item of a list: its value, and its parameters as text.
fn parts(entry: &ListEntry) -> (BareItem, Vec<(String, String)>) {
    let ListEntry::Item(item) = entry else { panic!("{entry:?}") };
    let value = |value: &BareItem| match value {
        BareItem::Integer(number) => i64::from(*number).to_string(),
        BareItem::String(text) => format!("{:?}", text.as_str()),
        other => panic!("{other:?}"),
    };
    let params = item.params.iter().map(|(key, it)| (key.as_str().to_owned(), value(it)));
    (item.bare_item.clone(), params.collect())
}

fn list(text: &str) -> Vec<(BareItem, Vec<(String, String)>)> {
    Parser::new(text).parse::<List>().unwrap().iter().map(parts).collect()
}

fn string(item: &BareItem) -> &str {
    let BareItem::String(text) = item else { panic!("{item:?}") };
    text.as_str()
}

fn integer(item: &BareItem) -> i64 {
    let BareItem::Integer(number) = item else { panic!("{item:?}") };
    i64::from(*number)
}

/// Parameters in the form that `parts` gives them.
fn params(wanted: &[(&str, Option<u128>)]) -> Vec<(String, String)> {
    let there = wanted.iter().filter_map(|(name, value)| value.map(|value| (*name, value)));
    there.map(|(name, value)| (name.to_owned(), clamped(value).to_string())).collect()
}

fn clamped(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX).min(FIFTEEN_DIGITS)
}

/// A name as an ASCII string can have it.
fn asciified(name: &str) -> String {
    name.chars().map(|c| if matches!(c, ' '..='~') { c } else { '?' }).collect()
}

const SECOND: u128 = 1_000_000_000;

fn is_bucket(status: &PolicyStatus<'_>) -> bool {
    matches!(status.policy().algorithm(), Algorithm::TokenBucket | Algorithm::LeakyBucket)
}

/// Nanoseconds in which the limit is granted: B·T for a bucket, else the window. Never more than
/// 584 years, as all waits.
fn window_nanos(status: &PolicyStatus<'_>) -> Option<u128> {
    let quota = status.policy().quota();
    let window = quota.window()?.length().as_nanos();
    Some(match quota.count() {
        Some(count @ 1..) if is_bucket(status) => {
            (u128::from(status.limit()) * window).div_ceil(count.into()).min(u64::MAX.into())
        }
        _ => window,
    })
}

fn window_seconds(status: &PolicyStatus<'_>) -> Option<u128> {
    window_nanos(status).map(|nanos| nanos.div_ceil(SECOND).max(1))
}

/// The status that should be told of, found the slow way: every other one is no better.
fn governing<'d, 'p>(decision: &'d Decision<'p>) -> Option<&'d PolicyStatus<'p>> {
    let limited = |status: &&PolicyStatus<'_>| !status.policy().quota().is_unlimited();
    let rank = |status: &PolicyStatus<'_>| match status.retry_after() {
        _ if status.is_never() => u128::MAX,
        Some(wait) => wait.as_nanos() + 1,
        None => 0,
    };
    if decision.is_allowed() {
        let all: Vec<_> = decision.statuses().iter().filter(limited).collect();
        let product = |one: &PolicyStatus<'_>, other: &PolicyStatus<'_>| {
            u128::from(one.remaining()) * u128::from(other.limit().max(1))
        };
        let is_least = |one: &&&PolicyStatus<'_>| {
            all.iter().all(|other| product(one, other) <= product(other, one))
        };
        all.iter().find(is_least).copied()
    } else {
        let all: Vec<_> = decision.denied().filter(limited).collect();
        let longest = all.iter().map(|status| rank(status)).max();
        all.iter().find(|status| Some(rank(status)) == longest).copied()
    }
}

/// The rules for `t`, as they are written down.
fn expected_t(decision: &Decision<'_>, status: &PolicyStatus<'_>, wait: &Wait) -> Option<u128> {
    let seconds = |duration: Duration| duration.as_nanos().div_ceil(SECOND);
    if !decision.is_allowed() {
        return wait.seconds().map(u128::from);
    }
    window_nanos(status)?;
    if status.remaining() == 0 {
        return status.available_after().map(seconds).map(|t| t.max(1));
    }
    match status.policy().algorithm() {
        Algorithm::TokenBucket | Algorithm::LeakyBucket => {
            let left = window_nanos(status)?.saturating_sub(status.reset_after().as_nanos());
            Some(left.div_ceil(SECOND).max(1))
        }
        Algorithm::FixedWindow if !status.reset_after().is_zero() => {
            Some(seconds(status.reset_after()))
        }
        _ => window_seconds(status),
    }
}

fn check(decision: &Decision<'_>, jitter: u64) -> TestCaseResult {
    let Some(status) = governing(decision) else {
        for style in HeaderStyle::ALL {
            prop_assert!(told(decision, style, jitter).1.is_empty());
        }
        return Ok(());
    };
    let remaining = if decision.is_allowed() { status.remaining() } else { 0 };
    let exact = decision.retry_after().map(|wait| wait.as_nanos().div_ceil(SECOND).max(1));

    // The wait, with no less and no more than the jitter.
    let (wait, ietf) = told(decision, HeaderStyle::Ietf, jitter);
    let seconds = wait.seconds().map(u128::from);
    prop_assert_eq!(seconds.is_some(), exact.is_some());
    if let (Some(seconds), Some(exact)) = (seconds, exact) {
        prop_assert!((exact..=exact + u128::from(jitter)).contains(&seconds));
    }

    // Today's draft.
    prop_assert_eq!(ietf.len(), 2);
    let mut wanted: Vec<(&str, Vec<(String, String)>)> = Vec::new();
    let mut numbers: Vec<(u64, Vec<(String, String)>)> = Vec::new();
    for status in decision.statuses() {
        let name = status.policy().name();
        if status.policy().quota().is_unlimited() || wanted.iter().any(|(other, _)| *other == name)
        {
            continue;
        }
        let window = window_seconds(status);
        let mut all = params(&[("q", Some(status.limit().into())), ("w", window)]);
        match window {
            Some(_) => numbers.push((clamped(status.limit().into()), params(&[("w", window)]))),
            None => all.push(("qu".to_owned(), "\"concurrent-requests\"".to_owned())),
        }
        wanted.push((name, all));
    }
    let listed = list(text(&ietf, "ratelimit-policy"));
    prop_assert_eq!(listed.len(), wanted.len());
    for ((item, got), (name, wanted)) in listed.iter().zip(&wanted) {
        prop_assert_eq!(string(item), asciified(name));
        prop_assert_eq!(got, wanted);
    }
    let state = list(text(&ietf, "ratelimit"));
    prop_assert_eq!(state.len(), 1);
    prop_assert_eq!(string(&state[0].0), asciified(status.policy().name()));
    let t = expected_t(decision, status, &wait);
    prop_assert_eq!(&state[0].1, &params(&[("r", Some(remaining.into())), ("t", t)]));

    // The older drafts, each with its own draw of the jitter.
    let (wait, draft07) = told(decision, HeaderStyle::Draft07, jitter);
    let dictionary: Dictionary = Parser::new(text(&draft07, "ratelimit")).parse().unwrap();
    let member = |name: &str| {
        let ListEntry::Item(item) = &dictionary[name] else { panic!("{name}") };
        integer(&item.bare_item)
    };
    let clamped_signed = |number: u64| i64::try_from(number.min(FIFTEEN_DIGITS)).unwrap();
    prop_assert_eq!(dictionary.len(), 3);
    prop_assert_eq!(member("limit"), clamped_signed(status.limit()));
    prop_assert_eq!(member("remaining"), clamped_signed(remaining));
    let reset_after = clamped(status.reset_after().as_nanos().div_ceil(SECOND));
    let is_reset = |told: i64, wait: &Wait| match wait.seconds() {
        Some(seconds) => told == clamped_signed(seconds),
        None => (reset_after..=reset_after + jitter).contains(&u64::try_from(told).unwrap()),
    };
    prop_assert!(is_reset(member("reset"), &wait));

    let (wait, draft06) = told(decision, HeaderStyle::Draft06, jitter);
    let field = |name: &str| {
        let item: Item = Parser::new(text(&draft06, name)).parse().unwrap();
        integer(&item.bare_item)
    };
    prop_assert_eq!(field("ratelimit-limit"), clamped_signed(status.limit()));
    prop_assert_eq!(field("ratelimit-remaining"), clamped_signed(remaining));
    prop_assert!(is_reset(field("ratelimit-reset"), &wait));

    for told in [&draft07, &draft06] {
        if numbers.is_empty() {
            prop_assert!(!told.contains_key("ratelimit-policy"));
            continue;
        }
        let got: Vec<_> = list(text(told, "ratelimit-policy"))
            .into_iter()
            .map(|(item, params)| (u64::try_from(integer(&item)).unwrap(), params))
            .collect();
        prop_assert_eq!(&got, &numbers);
    }

    // GitHub's.
    let (_, github) = told(decision, HeaderStyle::XRateLimit, jitter);
    let field = |name: &str| text(&github, name).parse::<u64>().unwrap();
    prop_assert_eq!(field("x-ratelimit-limit"), clamped(status.limit().into()));
    prop_assert_eq!(field("x-ratelimit-remaining"), clamped(remaining.into()));
    let at = decision.at().since(Timestamp::EPOCH) + status.reset_after();
    let whole = u64::try_from(at.as_nanos().div_ceil(SECOND)).unwrap();
    let late = if decision.is_allowed() { 0 } else { jitter };
    prop_assert!((whole..=whole + late).contains(&field("x-ratelimit-reset")));
    Ok(())
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn headers_say_what_was_decided(scene in scene(), jitter in prop_oneof![Just(0), 1..9_u64]) {
        scene.play(|decision| check(decision, jitter))?;
    }
}
