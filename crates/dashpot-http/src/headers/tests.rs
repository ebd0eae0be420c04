use std::time::Duration;

use dashpot::{Algorithm, Check, ManualClock, MemoryStore, Policy, Quota, Timestamp, Window};

use super::*;

/// A store at 1 000 000 000.25 seconds of the epoch.
fn store() -> (ManualClock, MemoryStore) {
    let clock = ManualClock::new(Timestamp::from_nanos(1_000_000_000_250_000_000));
    (clock.clone(), MemoryStore::with_clock(clock))
}

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, quota.parse().unwrap()).unwrap()
}

fn policy_by(algorithm: Algorithm, quota: &str) -> Policy {
    Policy::builder("p", quota.parse().unwrap()).algorithm(algorithm).build().unwrap()
}

fn told_with_jitter(decision: &Decision<'_>, style: HeaderStyle, jitter: u64) -> (Wait, HeaderMap) {
    let mut config = Headers::default();
    config.styles = vec![style];
    config.jitter = Duration::from_secs(jitter);
    let wait = Wait::of(decision, config.jitter);
    let mut headers = HeaderMap::new();
    describe(decision, &wait, &config, &mut headers);
    (wait, headers)
}

/// All fields, sorted: `name: value`.
fn told(decision: &Decision<'_>, style: HeaderStyle) -> Vec<String> {
    let (_, headers) = told_with_jitter(decision, style, 0);
    let field =
        |(name, value): (&HeaderName, &HeaderValue)| format!("{name}: {}", value.to_str().unwrap());
    let mut fields: Vec<_> = headers.iter().map(field).collect();
    fields.sort();
    fields
}

/// The value of `RateLimit`, and the one of `RateLimit-Policy`.
fn ietf(decision: &Decision<'_>) -> [String; 2] {
    let (_, headers) = told_with_jitter(decision, HeaderStyle::Ietf, 0);
    [RATELIMIT, POLICY].map(|name| headers[name].to_str().unwrap().to_owned())
}

#[test]
fn every_style_tells_the_same_in_its_own_words() {
    let (clock, store) = store();
    let (burst, day) = (policy("burst", "60/min burst 10"), policy("day", "1000/day"));
    let checks = [Check::new(&burst, "a").cost(4), Check::new(&day, "a").cost(4)];
    let allowed = store.decide_now(&checks);
    assert_eq!(
        told(&allowed, HeaderStyle::Ietf),
        [
            r#"ratelimit-policy: "burst";q=10;w=10, "day";q=1000;w=86400"#,
            r#"ratelimit: "burst";r=6;t=6"#,
        ]
    );
    assert_eq!(
        told(&allowed, HeaderStyle::Draft07),
        ["ratelimit-policy: 10;w=10, 1000;w=86400", "ratelimit: limit=10, remaining=6, reset=4",]
    );
    assert_eq!(
        told(&allowed, HeaderStyle::Draft06),
        [
            "ratelimit-limit: 10",
            "ratelimit-policy: 10;w=10, 1000;w=86400",
            "ratelimit-remaining: 6",
            "ratelimit-reset: 4",
        ]
    );
    assert_eq!(
        told(&allowed, HeaderStyle::XRateLimit),
        ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 6", "x-ratelimit-reset: 1000000005",]
    );

    clock.advance(Duration::from_millis(500));
    let checks = [Check::new(&burst, "a").cost(9), Check::new(&day, "a").cost(9)];
    let denied = store.decide_now(&checks);
    assert_eq!(denied.retry_after(), Some(Duration::from_millis(2500)));
    assert_eq!(ietf(&denied)[0], r#""burst";r=0;t=3"#);
    assert_eq!(told(&denied, HeaderStyle::Draft07)[1], "ratelimit: limit=10, remaining=0, reset=3");
    assert_eq!(
        told(&denied, HeaderStyle::XRateLimit),
        ["x-ratelimit-limit: 10", "x-ratelimit-remaining: 0", "x-ratelimit-reset: 1000000005",]
    );
}

#[test]
fn each_algorithm_says_how_long_what_remains_must_last() {
    let (_, store) = store();
    let said = |algorithm, quota| {
        let policy = policy_by(algorithm, quota);
        let [state, _] = ietf(&store.decide_now(&[Check::new(&policy, "a")]));
        state
    };
    assert_eq!(said(Algorithm::TokenBucket, "100/min"), r#""p";r=99;t=60"#);
    assert_eq!(said(Algorithm::TokenBucket, "1/min"), r#""p";r=0;t=60"#);
    assert_eq!(said(Algorithm::LeakyBucket, "60/min burst 5"), r#""p";r=4;t=4"#);
    // A minute began 40.25 seconds ago.
    assert_eq!(said(Algorithm::FixedWindow, "100/min"), r#""p";r=99;t=20"#);
    assert_eq!(said(Algorithm::FixedWindow, "1/min"), r#""p";r=0;t=20"#);
    assert_eq!(said(Algorithm::SlidingLog, "100/min"), r#""p";r=99;t=60"#);
    assert_eq!(said(Algorithm::SlidingWindow, "100/min"), r#""p";r=99;t=60"#);
    assert_eq!(said(Algorithm::Concurrency, "3 concurrent"), r#""p";r=2"#);
}

#[test]
fn an_idle_key_does_not_say_that_all_can_be_used_at_once() {
    let (_, store) = store();
    for algorithm in [Algorithm::TokenBucket, Algorithm::FixedWindow, Algorithm::SlidingLog] {
        let policy = policy_by(algorithm, "100/min");
        let decision = store.decide_now(&[Check::new(&policy, "idle").cost(0)]);
        assert_eq!(ietf(&decision)[0], r#""p";r=100;t=60"#, "{algorithm}");
    }
}

#[test]
fn what_runs_by_no_clock_has_no_times() {
    let (_, store) = store();
    let policy = policy("jobs", "1 concurrent");
    let allowed = store.decide_now(&[Check::new(&policy, "a")]);
    let listed = r#""jobs";q=1;qu="concurrent-requests""#;
    assert_eq!(ietf(&allowed), [r#""jobs";r=0"#, listed]);
    let denied = store.decide_now(&[Check::new(&policy, "a")]);
    assert_eq!(ietf(&denied), [r#""jobs";r=0"#, listed]);
    assert_eq!(told(&denied, HeaderStyle::Draft07), ["ratelimit: limit=1, remaining=0, reset=0"]);
}

#[test]
fn the_denier_with_the_longest_wait_is_told_and_never_is_longest() {
    let (_, store) = store();
    let (short, long) = (policy("short", "1/s"), policy("long", "1/min"));
    let (never, jobs) = (policy("never", "0/s"), policy("jobs", "0 concurrent"));
    let checks = [Check::new(&short, "a"), Check::new(&long, "a")];
    assert!(store.decide_now(&checks).is_allowed());
    assert_eq!(ietf(&store.decide_now(&checks))[0], r#""long";r=0;t=60"#);
    let checks = [checks[0], Check::new(&never, "a"), checks[1]];
    let [state, listed] = ietf(&store.decide_now(&checks));
    assert_eq!(state, r#""never";r=0"#);
    assert_eq!(listed, r#""short";q=1;w=1, "never";q=0;w=1, "long";q=1;w=60"#);
    let full = policy("full", "1 concurrent");
    assert!(store.decide_now(&[Check::new(&full, "a")]).is_allowed());
    let checks = [Check::new(&full, "a"), checks[0]];
    assert_eq!(ietf(&store.decide_now(&checks))[0], r#""short";r=0;t=1"#);
    assert_eq!(ietf(&store.decide_now(&[Check::new(&jobs, "a").cost(0)]))[0], r#""jobs";r=0"#);
}

#[test]
fn the_policy_of_which_least_remains_is_told() {
    let (_, store) = store();
    let (few, many) = (policy("few", "10/s"), policy("many", "1000/s"));
    let checks = [Check::new(&few, "a"), Check::new(&many, "a").cost(101)];
    // 9 of 10 remain, and 899 of 1000.
    assert_eq!(ietf(&store.decide_now(&checks))[0], r#""many";r=899;t=1"#);
    // In doubt, the first.
    let checks = [Check::new(&few, "b"), Check::new(&many, "b").cost(100)];
    assert_eq!(ietf(&store.decide_now(&checks))[0], r#""few";r=9;t=1"#);
}

#[test]
fn each_policy_is_listed_once_and_those_without_a_limit_never() {
    let (_, store) = store();
    let (free, api) = (Policy::new("free", Quota::UNLIMITED).unwrap(), policy("api", "5/s"));
    let checks = [Check::new(&free, "a"), Check::new(&api, "a"), Check::new(&api, "b")];
    assert_eq!(ietf(&store.decide_now(&checks)), [r#""api";r=4;t=1"#, r#""api";q=5;w=1"#]);
    for style in HeaderStyle::ALL {
        assert!(told(&store.decide_now(&checks[..1]), style).is_empty());
        assert!(told(&store.decide_now(&[]), style).is_empty());
    }
}

#[test]
fn names_cannot_break_a_header_and_numbers_have_fifteen_digits() {
    let (_, store) = store();
    let odd = policy("a\"b\\c,;é☃", "18446744073709551615/s");
    let [state, listed] = ietf(&store.decide_now(&[Check::new(&odd, "a")]));
    assert_eq!(listed, r#""a\"b\\c,;??";q=999999999999999;w=1"#);
    assert_eq!(state, r#""a\"b\\c,;??";r=999999999999999;t=1"#);
    let long = policy(&"\"".repeat(256), "1/s");
    let [_, listed] = ietf(&store.decide_now(&[Check::new(&long, "a")]));
    assert_eq!(listed, format!("\"{}\";q=1;w=1", "\\\"".repeat(256)));
}

#[test]
fn jitter_is_the_same_everywhere() {
    let (_, store) = store();
    let policy = policy("p", "1/10s");
    assert!(store.decide_now(&[Check::new(&policy, "a")]).is_allowed());
    let denied = store.decide_now(&[Check::new(&policy, "a")]);
    let mut seen = [false; 4];
    for _ in 0..1000 {
        let (wait, headers) = told_with_jitter(&denied, HeaderStyle::Ietf, 3);
        let seconds = wait.seconds().unwrap();
        assert_eq!(headers[RATELIMIT], format!(r#""p";r=0;t={seconds}"#));
        seen[usize::try_from(seconds - 10).unwrap()] = true;
        let (wait, headers) = told_with_jitter(&denied, HeaderStyle::XRateLimit, 3);
        let reset = 1_000_000_001 + wait.seconds().unwrap();
        assert_eq!(headers["x-ratelimit-reset"], reset.to_string());
    }
    assert_eq!(seen, [true; 4]);
}

#[test]
fn what_is_exposed_is_added_to_what_the_application_exposes() {
    let mut config = Headers::default();
    config.styles = vec![HeaderStyle::Draft07, HeaderStyle::XRateLimit];
    let mut headers = HeaderMap::new();
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("Etag"));
    expose(&config, &mut headers);
    let lines: Vec<_> = headers.get_all(ACCESS_CONTROL_EXPOSE_HEADERS).iter().collect();
    assert_eq!(
        lines,
        [
            "Etag",
            "Retry-After",
            "RateLimit, RateLimit-Policy",
            "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset",
        ]
    );
    config.expose = false;
    let mut headers = HeaderMap::new();
    expose(&config, &mut headers);
    assert!(headers.is_empty());
}

#[test]
fn parts_of_a_second_count_as_one() {
    let (_, store) = store();
    let window = Window::new(Duration::from_nanos(3_000_000_001)).unwrap();
    // It fills in a third of that: a third of a nanosecond more than a second.
    let policy = Policy::new("p", Quota::new(3, window).burst(1)).unwrap();
    let [_, listed] = ietf(&store.decide_now(&[Check::new(&policy, "a")]));
    assert_eq!(listed, r#""p";q=1;w=2"#);
}
