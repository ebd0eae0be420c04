//! What our own server writes is read as what it means, in every style.

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Decision, ManualClock, MemoryStore, Policy, PolicyStatus, Timestamp,
};
use dashpot_client::{Allowance, Told, Unit};
use dashpot_http::{Wait, headers};
use dashpot_rules::{HeaderStyle, Headers};
use http::{HeaderMap, HeaderValue};

fn policy(name: &str, quota: &str, algorithm: Algorithm) -> Policy {
    Policy::builder(name, quota.parse().unwrap()).algorithm(algorithm).build().unwrap()
}

fn policies() -> Vec<Policy> {
    let queue = Policy::builder("queue", "1/s".parse().unwrap());
    let queue = queue.algorithm(Algorithm::LeakyBucket).queue(4).build().unwrap();
    vec![
        policy("token", "5/10s", Algorithm::TokenBucket),
        policy("fast", "100/s burst 3", Algorithm::TokenBucket),
        policy("with \"quotes\" and \\, 100 %", "7/min", Algorithm::LeakyBucket),
        policy("fixed", "4/min", Algorithm::FixedWindow),
        policy("log", "6/h", Algorithm::SlidingLog),
        policy("window", "8/day", Algorithm::SlidingWindow),
        policy("none", "0/s", Algorithm::TokenBucket),
        policy("jobs", "6 concurrent", Algorithm::Concurrency),
        policy("huge", "18446744073709551615/s", Algorithm::TokenBucket),
        queue,
    ]
}

/// Decisions of all algorithms, alone and together: some pass, some do not.
fn decisions(policies: &[Policy]) -> Vec<Decision<'_>> {
    let clock = ManualClock::new(Timestamp::from_nanos(1_700_000_000_250_000_000));
    let store = MemoryStore::with_clock(clock.clone());
    let mut decisions = Vec::new();
    for pause in [0, 0, 700, 700, 5000] {
        clock.advance(Duration::from_millis(pause));
        for policy in policies {
            for cost in [0, 1, 3] {
                decisions.push(store.decide_now(&[Check::new(policy, "a").cost(cost)]));
            }
        }
        let pairs = policies.iter().flat_map(|one| policies.iter().map(move |other| (one, other)));
        for (one, other) in pairs.filter(|(one, other)| one.name() != other.name()) {
            decisions.push(store.decide_now(&[Check::new(one, "b"), Check::new(other, "b")]));
        }
    }
    decisions
}

/// What is told in these styles, and read.
fn read(decision: &Decision<'_>, styles: &[HeaderStyle]) -> (Wait, HeaderMap, Told) {
    let mut config = Headers::default();
    config.styles = styles.to_vec();
    let mut fields = HeaderMap::new();
    let wait = Wait::of(decision, Duration::ZERO);
    headers::describe(decision, &wait, &config, &mut fields);
    if let Some(seconds) = wait.seconds() {
        fields.insert("retry-after", HeaderValue::from(seconds));
    }
    let told = Told::read(&fields, decision.at());
    (wait, fields, told)
}

const fn fifteen_digits(number: u64) -> u64 {
    if number > 999_999_999_999_999 { 999_999_999_999_999 } else { number }
}

/// The one of a decision's policies that this may be about.
fn meant<'d, 'p>(decision: &'d Decision<'p>, known: &Allowance) -> Vec<&'d PolicyStatus<'p>> {
    let remaining = |it: &PolicyStatus<'_>| {
        if decision.is_allowed() { fifteen_digits(it.remaining()) } else { 0 }
    };
    let is_it = |it: &&PolicyStatus<'_>| {
        known.limit == Some(fifteen_digits(it.limit())) && known.remaining == Some(remaining(it))
    };
    decision.statuses().iter().filter(is_it).collect()
}

#[test]
fn every_style_is_read_as_what_it_means() {
    let policies = policies();
    let decisions = decisions(&policies);
    assert!(decisions.iter().any(Decision::is_allowed));
    assert!(decisions.iter().any(|decision| decision.retry_after().is_some()));
    for decision in &decisions {
        for style in HeaderStyle::ALL {
            let (wait, fields, told) = read(decision, &[style]);
            let context = format!("{}: {fields:?} read as {told:?}", style.name());
            assert_eq!(told.retry_after, wait.seconds().map(Duration::from_secs), "{context}");
            assert_eq!(told.should_retry, None, "{context}");
            let Some(known) = told.allowances.first() else {
                // Nothing is read of permits, for which no clock is told.
                assert_eq!(style, HeaderStyle::Ietf, "{context}");
                assert!(fields["ratelimit"].to_str().unwrap().starts_with("\"jobs\""), "{context}");
                continue;
            };
            assert_eq!((told.allowances.len(), known.unit), (1, Unit::Requests), "{context}");
            let meant = meant(decision, known);
            assert!(!meant.is_empty(), "{context}");
            let reset = known.reset_after.unwrap_or_else(|| panic!("{context}"));
            if style == HeaderStyle::Ietf {
                assert!(meant.iter().any(|it| it.policy().name() == &*known.name), "{context}");
            }
            if let Some(wait) = decision.retry_after() {
                assert!(reset >= wait.min(Duration::from_secs(1)), "{context}");
            }
            // Rounded up: who waits as told does not come too early.
            let is_told = |it: &&&PolicyStatus<'_>| {
                let (least, most) = (it.reset_after(), it.reset_after() + Duration::from_secs(1));
                (least..most).contains(&reset)
            };
            match style {
                HeaderStyle::XRateLimit => {
                    assert!(meant.iter().any(|it| is_told(&it)), "{context}");
                }
                HeaderStyle::Draft06 | HeaderStyle::Draft07 => match wait.seconds() {
                    Some(wait) => assert_eq!(reset, Duration::from_secs(wait), "{context}"),
                    None => assert!(meant.iter().any(|it| is_told(&it)), "{context}"),
                },
                _ => {
                    let more = meant.iter().filter_map(|it| it.available_after()).min();
                    let is_empty = known.remaining == Some(0);
                    assert!(!is_empty || more.is_none_or(|more| reset >= more), "{context}");
                }
            }
        }
    }
}

#[test]
fn of_two_styles_that_go_together_the_newer_one_is_read() {
    let policies = policies();
    for decision in decisions(&policies) {
        for newer in [HeaderStyle::Ietf, HeaderStyle::Draft07, HeaderStyle::Draft06] {
            let (.., alone) = read(&decision, &[newer]);
            let (_, fields, both) = read(&decision, &[newer, HeaderStyle::XRateLimit]);
            if !alone.allowances.is_empty() {
                assert_eq!(both, alone, "{fields:?}");
            }
        }
    }
}
