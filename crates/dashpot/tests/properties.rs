//! The algorithms against the oracle, on anything a generator can think of.
//!
//! What it finds is saved beside this file and tried first from then on; what it has found is told
//! in `regressions.rs`.

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Key, KeyBuf, KeyOperation, Limiter, ManualClock, MemoryStore, Policy,
    Quota, Timestamp, Window, Zone,
};
use dashpot_testkit::strategies::{
    any_window_trace, cases, cost, mixed_trace, pause, policy, quota, start, trace,
};
use dashpot_testkit::{Trace, admitted_within_bound, bucket_must_admit, replay};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Every decision is the oracle's, and waits are exact.
fn equals_the_oracle(trace: &Trace) -> TestCaseResult {
    let clock = ManualClock::default();
    let store = MemoryStore::with_clock(clock.clone());
    replay(&store, &clock, trace).map_err(TestCaseError::fail)
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn a_token_bucket_equals_the_oracle(trace in trace(Algorithm::TokenBucket)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_leaky_bucket_equals_the_oracle(trace in trace(Algorithm::LeakyBucket)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_token_bucket_of_any_window_equals_the_oracle(
        trace in any_window_trace(Algorithm::TokenBucket)
    ) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_leaky_bucket_of_any_window_equals_the_oracle(
        trace in any_window_trace(Algorithm::LeakyBucket)
    ) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_fixed_window_equals_the_oracle(trace in trace(Algorithm::FixedWindow)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_sliding_log_equals_the_oracle(trace in trace(Algorithm::SlidingLog)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn a_sliding_window_equals_the_oracle(trace in trace(Algorithm::SlidingWindow)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn concurrency_equals_the_oracle(trace in trace(Algorithm::Concurrency)) {
        equals_the_oracle(&trace)?;
    }

    #[test]
    fn several_limits_equal_the_oracle(trace in mixed_trace()) {
        equals_the_oracle(&trace)?;
    }
}

/// A policy, when somebody starts asking, and the pauses and costs of what they ask.
fn run(algorithm: Algorithm) -> impl Strategy<Value = (Policy, Timestamp, Vec<(Duration, u64)>)> {
    policy("p", algorithm).prop_flat_map(|policy| {
        let asks = vec((pause(&policy), cost(&policy)), 1..100);
        (Just(policy.clone()), start(&policy), asks)
    })
}

fn rate_limiting() -> impl Strategy<Value = Algorithm> {
    let all = Algorithm::ALL.into_iter();
    prop::sample::select(all.filter(|&it| it != Algorithm::Concurrency).collect::<Vec<_>>())
}

proptest! {
    #![proptest_config(cases(1000))]

    #[test]
    fn no_interval_admits_more_than_its_bound(
        (policy, start, asks) in rate_limiting().prop_flat_map(run)
    ) {
        let clock = ManualClock::new(start);
        let limiter = Limiter::on(policy.clone(), MemoryStore::with_clock(clock.clone()));
        let mut admissions = Vec::new();
        for (pause, cost) in asks {
            clock.advance(pause);
            let decision = limiter.check_n("k", cost);
            if decision.is_allowed() {
                admissions.push((decision.at(), cost));
            }
        }
        admitted_within_bound(&policy, &admissions).map_err(TestCaseError::fail)?;
    }

    /// Nor do those together who were admitted for good, whoever was undone in between.
    #[test]
    fn undoing_puts_too_much_into_no_interval(
        (policy, start, asks) in rate_limiting().prop_flat_map(run),
        undone in vec(prop::option::of(0_usize..4), 100),
    ) {
        let clock = ManualClock::new(start);
        let store = MemoryStore::with_clock(clock.clone());
        let (mut admissions, mut pending) = (Vec::new(), Vec::new());
        for ((pause, cost), undone) in asks.into_iter().zip(undone) {
            clock.advance(pause);
            let check = Check::new(&policy, "k").cost(cost);
            let decision = store.decide_now(&[check]);
            match (check.reservation(&decision), undone) {
                // So many asks later.
                (Some(reservation), Some(later)) => pending.push((later, reservation)),
                (Some(_), None) => admissions.push((decision.at(), cost)),
                (None, _) => {}
            }
            pending.retain_mut(|(later, reservation)| {
                if *later == 0 {
                    store.undo_now(reservation);
                }
                *later = later.wrapping_sub(1);
                *later != usize::MAX
            });
        }
        admitted_within_bound(&policy, &admissions).map_err(TestCaseError::fail)?;
    }

    /// From the full history of what it admitted, without levels or arrival times: a bucket denies
    /// what would put too much into some interval, and nothing else.
    #[test]
    fn a_bucket_denies_only_what_some_interval_forbids(
        (policy, start, asks) in run(Algorithm::TokenBucket)
    ) {
        if policy.quota().is_unlimited() {
            return Ok(());
        }
        let clock = ManualClock::new(start);
        let limiter = Limiter::on(policy.clone(), MemoryStore::with_clock(clock.clone()));
        let mut admissions = Vec::new();
        for (pause, cost) in asks.into_iter().filter(|&(_, cost)| cost > 0) {
            clock.advance(pause);
            let must = bucket_must_admit(&policy, &admissions, clock.now(), cost);
            let decision = limiter.check_n("k", cost);
            prop_assert_eq!(decision.is_allowed(), must, "{} at {:?}", cost, decision);
            if decision.is_allowed() {
                admissions.push((decision.at(), cost));
            }
        }
    }

    /// In one queue, cost 1: no more than one leaves each T, to the nanosecond on which a
    /// departure can be told.
    #[test]
    fn a_queue_lets_go_at_an_even_pace(
        count in 1_u64..1000, places in 0_u64..20, pauses in vec(0_u64..3_000, 1..100)
    ) {
        let policy = Policy::builder("p", Quota::per_second(count))
            .algorithm(Algorithm::LeakyBucket)
            .queue(places)
            .build()
            .unwrap();
        let clock = ManualClock::default();
        let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));
        let unit = 1_000_000_000 / u128::from(count);
        let mut departures = Vec::new();
        for pause in pauses {
            // Around a thousandth of a unit to three units.
            clock.advance(Duration::from_nanos(u64::try_from(unit).unwrap() * pause / 1000));
            let decision = limiter.check("k");
            if decision.is_allowed() {
                departures.push(decision.at().after(decision.delay()));
            }
        }
        for (index, first) in departures.iter().enumerate() {
            for (later, last) in departures.iter().enumerate().skip(index) {
                let elapsed = last.since(*first).as_nanos() + 1;
                let more = elapsed * u128::from(count) / 1_000_000_000;
                prop_assert!((later - index) as u128 <= more, "from {first:?} to {last:?}");
            }
        }
    }

    /// From one a year to a billion a second, whoever takes all there is gets the rate to one part
    /// in a million, and never more.
    #[test]
    fn the_long_run_rate_is_right(
        (count, window) in prop_oneof![
            (1_u64..100, Just(Window::YEAR)),
            (1_u64..100_000, Just(Window::DAY)),
            (1_u64..=1_000_000_000, Just(Window::SECOND)),
        ],
        nap in 1_u64..20,
    ) {
        // Naps as long as `nap` units, in a bucket that is deep enough for them; for four million
        // units, so that a part in a million would show.
        let quota = Quota::new(count, window).burst(40 * nap + 1_000);
        let start = Timestamp::from_secs(1_700_000_000);
        let clock = ManualClock::new(start);
        let policy = Policy::new("p", quota).unwrap();
        let limiter = Limiter::on(policy, MemoryStore::with_clock(clock.clone()));
        let window = window.length().as_nanos();
        let span = window.saturating_mul(nap.into()) / u128::from(count);
        let nap = Duration::from_nanos(u64::try_from(span).unwrap().max(1));
        let mut admitted = 0_u128;
        for _ in 0..100 {
            let all = limiter.peek("k").statuses()[0].remaining();
            prop_assert!(limiter.check_n("k", all).is_allowed());
            admitted += u128::from(all);
            clock.advance(nap);
        }
        let all = limiter.peek("k").statuses()[0].remaining();
        admitted += u128::from(all);
        let elapsed = clock.now().since(start).as_nanos();
        let exact = elapsed * u128::from(count) / window;
        let burst = u128::from(quota.capacity());
        prop_assert_eq!(admitted, burst + exact, "{} in {} ns", quota, elapsed);
    }
}

fn any_window() -> impl Strategy<Value = Window> {
    let length = (any::<u64>(), 0_u32..1_000_000_000).prop_map(|(secs, nanos)| {
        Window::new(Duration::new(secs, nanos)).unwrap_or(Window::SECOND)
    });
    let months = any::<u32>().prop_map(|months| Window::months(months).unwrap_or(Window::MONTH));
    prop_oneof![length, months, Just(Window::DAY), Just(Window::WEEK)]
}

fn any_quota() -> impl Strategy<Value = Quota> {
    let rate =
        (any::<u64>(), any_window(), any::<Option<u64>>()).prop_map(|(count, window, burst)| {
            match burst {
                Some(burst) => Quota::new(count, window).burst(burst),
                None => Quota::new(count, window),
            }
        });
    prop_oneof![4 => rate, 2 => quota(), 1 => any::<u64>().prop_map(Quota::concurrent), 1 => Just(Quota::UNLIMITED)]
}

fn any_zone() -> impl Strategy<Value = Zone> {
    let names = ["UTC", "Europe/Berlin", "Pacific/Apia", "America/St_Johns", "Asia/Kathmandu"];
    prop::sample::select(names.to_vec()).prop_map(|name| name.parse().unwrap())
}

fn any_operation() -> impl Strategy<Value = KeyOperation> {
    prop_oneof![
        Just(KeyOperation::Peek),
        Just(KeyOperation::Reset),
        any::<u64>().prop_map(|nanos| KeyOperation::Block(Timestamp::from_nanos(nanos))),
        Just(KeyOperation::Unblock),
    ]
}

proptest! {
    #![proptest_config(cases(2000))]

    #[test]
    fn a_quota_survives_being_printed(quota in any_quota()) {
        prop_assert_eq!(quota.to_string().parse::<Quota>(), Ok(quota));
    }

    #[test]
    fn any_text_is_a_quota_or_an_error_that_points_into_it(
        text in prop_oneof![any::<String>(), "[0-9kMG_ ]{0,8}[/ ]{0,2}[0-9a-zµ. ]{0,10}( burst [0-9]{0,3})?"]
    ) {
        if let Err(error) = text.parse::<Quota>() {
            let span = error.span();
            prop_assert!(text.get(span).is_some(), "{error}");
            prop_assert!(error.column() <= text.chars().count() + 1, "{error}");
            prop_assert!(error.excerpt().starts_with(&text));
        }
        let _ = text.parse::<Window>();
        let _ = text.parse::<Zone>();
        let _ = text.parse::<Algorithm>();
        let _ = Policy::new(text, Quota::per_second(1));
    }

    /// Whatever goes in, an answer comes out, and it is in order.
    #[test]
    fn no_public_call_panics(
        quotas in vec(any_quota(), 1..4),
        algorithm in prop::sample::select(Algorithm::ALL.to_vec()),
        (queue, undelayed) in any::<(Option<u64>, Option<u64>)>(),
        zone in any_zone(),
        any in any::<bool>(),
        calls in vec((any::<u64>(), any::<u64>(), any::<u64>(), vec(any::<u8>(), 0..40), any_operation()), 1..20),
    ) {
        let clock = ManualClock::default();
        let store = MemoryStore::with_clock(clock.clone());
        let policies: Vec<_> = quotas.into_iter().filter_map(|quota| {
            let mut policy = Policy::builder("p", quota).algorithm(algorithm).zone(zone.clone());
            if let Some(places) = queue {
                policy = policy.queue(places);
            }
            if let Some(places) = undelayed {
                policy = policy.undelayed(places);
            }
            if any {
                policy = policy.any_window();
            }
            policy.build().or_else(|_| Policy::new("q", quota)).ok()
        }).collect();
        for (now, cost, used, key, operation) in calls {
            clock.set(Timestamp::from_nanos(now));
            clock.advance(Duration::from_nanos(used));
            let key = Key::new(&key);
            let checks: Vec<_> = policies.iter().map(|policy| Check::new(policy, key).cost(cost)).collect();
            let decision = store.decide_now(&checks);
            prop_assert_eq!(decision.statuses().len(), checks.len());
            prop_assert_eq!(decision.is_allowed(), decision.denied().count() == 0);
            for status in decision.statuses() {
                prop_assert!(status.remaining() <= status.limit());
                let _ = (status.reset_after(), status.available_after(), status.delay());
                prop_assert!(status.retry_after() != Some(Duration::ZERO));
            }
            for check in &checks {
                if let Some(reservation) = check.reservation(&decision) {
                    store.settle_now(&reservation, used.into());
                }
                let _ = store.manage_now(check.policy, key, operation);
            }
            let _ = decision.at().after(Duration::MAX).before(Duration::MAX);
        }
    }

    #[test]
    fn keys_of_different_values_differ(one in vec(vec(any::<u8>(), 0..4), 0..4), other in vec(vec(any::<u8>(), 0..4), 0..4)) {
        let key = |values: &[Vec<u8>]| values.iter().collect::<KeyBuf>();
        prop_assert_eq!(key(&one) == key(&other), one == other);
    }
}
