//! The oracle against examples worked out by hand.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // A test stops at the first surprise.

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Key, KeyOperation, Outcome, Policy, PolicyBuilder, Quota, Timestamp, Window,
};
use dashpot_testkit::{Expected, Oracle};

const ALICE: &str = "alice";

fn policy(quota: Quota, algorithm: Algorithm) -> Policy {
    build(Policy::builder("p", quota).algorithm(algorithm))
}

fn build(builder: PolicyBuilder) -> Policy {
    builder.build().unwrap()
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(millis * 1_000_000)
}

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// One policy, one key, and an oracle to ask.
struct Bench {
    oracle: Oracle,
    policy: Policy,
}

impl Bench {
    fn new(policy: Policy) -> Self {
        Self { oracle: Oracle::default(), policy }
    }

    fn ask(&mut self, millis: u64, cost: u64) -> Expected {
        let check = Check::new(&self.policy, ALICE).cost(cost);
        self.oracle.decide(at(millis), &[check])[0]
    }

    fn passes(&mut self, millis: u64, cost: u64) -> bool {
        self.ask(millis, cost).outcome == Outcome::Allow
    }

    fn settle(&mut self, millis: u64, cost: u64, charged_at: u64, used: u64) {
        let key = Key::from(ALICE);
        self.oracle.settle(at(millis), &self.policy, key, cost, at(charged_at), used);
    }

    fn manage(&mut self, millis: u64, operation: KeyOperation) -> Expected {
        self.oracle.manage(at(millis), &self.policy, ALICE.into(), operation)
    }
}

#[test]
fn a_token_bucket_of_five_at_one_per_second() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    let mut row = |millis, cost, passes: bool, remaining, reset, retry: Option<f64>| {
        let got = bench.ask(millis, cost);
        let outcome = if passes { Outcome::Allow } else { Outcome::Deny };
        let retry = retry.map(secs);
        assert_eq!(
            (got.outcome, got.remaining, got.reset_after, got.retry_after, got.never),
            (outcome, remaining, secs(reset), retry, !passes && retry.is_none()),
            "{cost} at {millis} ms"
        );
        assert_eq!((got.limit, got.delay), (5, Duration::ZERO));
        assert_eq!(got.available_after == Some(Duration::ZERO), remaining > 0);
    };
    row(0, 6, false, 5, 0.0, None);
    row(0, 1, true, 4, 1.0, None);
    row(0, 1, true, 3, 2.0, None);
    row(0, 1, true, 2, 3.0, None);
    row(0, 1, true, 1, 4.0, None);
    row(0, 1, true, 0, 5.0, None);
    row(0, 1, false, 0, 5.0, Some(1.0));
    row(3000, 1, true, 2, 3.0, None);
    row(3100, 1, true, 1, 3.9, None);
    row(3100, 1, true, 0, 4.9, None);
    row(9500, 1, true, 4, 1.0, None);
    row(9500, 0, true, 4, 1.0, None);
    row(9500, 5, false, 4, 1.0, Some(1.0));
}

#[test]
fn three_then_three_then_one() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    let passed =
        |bench: &mut Bench, millis, asked| (0..asked).filter(|_| bench.passes(millis, 1)).count();
    assert_eq!(passed(&mut bench, 0, 3), 3);
    assert_eq!(passed(&mut bench, 1000, 4), 3);
    assert_eq!(passed(&mut bench, 2000, 2), 1);
}

#[test]
fn a_third_of_a_second_is_rounded_up() {
    let mut bench = Bench::new(policy(Quota::per_second(3), Algorithm::TokenBucket));
    assert!(bench.passes(0, 3));
    assert_eq!(bench.ask(0, 1).retry_after, Some(Duration::from_nanos(333_333_334)));
    assert_eq!(bench.ask(0, 3).retry_after, Some(Duration::from_secs(1)));
}

#[test]
fn a_clock_that_goes_back_grants_nothing() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    assert!(bench.passes(10_000, 3));
    let back = bench.ask(9_000, 2);
    assert_eq!((back.remaining, back.retry_after), (1, Some(secs(1.0))));
}

#[test]
fn a_queue_holds_what_is_over_the_rate() {
    let queue = |undelayed| {
        let shape = Policy::builder("p", Quota::per_second(10)).algorithm(Algorithm::LeakyBucket);
        Bench::new(build(shape.queue(3).undelayed(undelayed)))
    };
    let delays = |mut bench: Bench| [0; 4].map(|_| bench.ask(0, 1).delay.as_millis());
    assert_eq!(delays(queue(0)), [0, 100, 200, 300]);
    assert_eq!(delays(queue(1)), [0, 0, 100, 200]);
    assert_eq!(delays(queue(3)), [0, 0, 0, 0]);

    let mut full = queue(0);
    assert!(full.passes(0, 4));
    let denial = full.ask(0, 1);
    assert_eq!((denial.limit, denial.delay), (4, Duration::ZERO));
    assert_eq!(denial.retry_after, Some(secs(0.1)));
    assert_eq!(full.ask(0, 0).delay, Duration::ZERO);
}

#[test]
fn nine_at_one_instant_after_a_refund() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    assert!(bench.passes(0, 5));
    assert!(bench.passes(4000, 4));
    bench.settle(4000, 5, 0, 0);
    assert!(bench.passes(4000, 5));
    assert!(!bench.passes(4000, 1));
}

#[test]
fn a_debt_is_worked_off() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    assert!(bench.passes(0, 1));
    bench.settle(0, 1, 0, 8);
    let debt = bench.ask(0, 1);
    assert_eq!((debt.remaining, debt.retry_after), (0, Some(secs(4.0))));
    assert_eq!(debt.reset_after, secs(8.0));
}

#[test]
fn a_fixed_window_passes_twice_its_count_around_a_boundary() {
    let mut bench = Bench::new(policy(Quota::per_second(5), Algorithm::FixedWindow));
    assert!(bench.passes(1999, 5));
    assert_eq!(bench.ask(1999, 1).retry_after, Some(secs(0.001)));
    assert!(bench.passes(2000, 5));
    let denial = bench.ask(2000, 1);
    assert_eq!((denial.retry_after, denial.reset_after), (Some(secs(1.0)), secs(1.0)));
}

#[test]
fn a_fixed_window_never_goes_back() {
    let mut bench = Bench::new(policy(Quota::per_second(5), Algorithm::FixedWindow));
    assert!(bench.passes(5000, 4));
    let back = bench.ask(4400, 2);
    assert_eq!((back.remaining, back.retry_after), (1, Some(secs(1.6))));
}

#[test]
fn a_month_is_a_month() {
    let mut bench = Bench::new(policy(Quota::per_month(5), Algorithm::FixedWindow));
    let day = 86_400_000;
    // 1 February 1972 is day 761; the year has a leap day.
    let taken = bench.ask(761 * day, 5);
    assert_eq!(taken.reset_after, Duration::from_secs(29 * 86_400));
}

#[test]
fn a_log_forgets_one_by_one() {
    let mut bench = Bench::new(policy(Quota::per_second(3), Algorithm::SlidingLog));
    for millis in [0, 100, 300] {
        assert!(bench.passes(millis, 1));
    }
    let denial = bench.ask(999, 2);
    assert_eq!((denial.remaining, denial.retry_after), (0, Some(secs(0.101))));
    assert_eq!(denial.reset_after, secs(0.301));
    assert!(bench.passes(1000, 1), "an entry is gone when its window has passed");
    assert!(!bench.passes(1000, 1));

    bench.settle(1000, 1, 300, 0);
    assert!(bench.passes(1000, 1), "the entry of 300 ms was given back");
}

/// Counts `previous` in one window and `current` in the next, whatever the limit.
fn sliding(previous: u64, current: u64, limit: u64) -> Bench {
    let mut bench = Bench::new(policy(Quota::new(limit, Window::MINUTE), Algorithm::SlidingWindow));
    bench.settle(0, 0, 0, previous);
    bench.settle(60_000, 0, 60_000, current);
    bench
}

#[test]
fn seven_and_three_at_thirty_per_cent_make_seven_point_nine() {
    // 7 × 0.7 + 3 = 7.9 of 10, so 2.1 are left.
    let mut bench = sliding(7, 3, 10);
    assert_eq!(bench.ask(78_000, 0).remaining, 2);
    assert!(bench.passes(78_000, 1));
    assert_eq!(bench.ask(78_000, 0).reset_after, secs(102.0));
    // 7 × (1 − f) + 4 + 2 ≤ 10 from f = 3/7 of the window on.
    let denial = bench.ask(78_000, 2);
    assert_eq!((denial.outcome, denial.remaining), (Outcome::Deny, 1));
    let elapsed = Duration::from_nanos(60_000_000_000 * 3 / 7 + 1) - secs(18.0);
    assert_eq!(denial.retry_after, Some(elapsed));
}

#[test]
fn sixty_and_thirty_half_way_make_sixty() {
    let mut bench = sliding(60, 30, 100);
    assert_eq!(bench.ask(90_000, 0).remaining, 40);
    assert!(!bench.passes(90_000, 41));
    assert!(bench.passes(90_000, 40));
}

#[test]
fn a_window_full_of_this_one_waits_for_the_next() {
    let mut bench = sliding(0, 10, 10);
    // Only in the next window does the 10 begin to fade: one tenth of it takes 6 s.
    assert_eq!(bench.ask(90_000, 1).retry_after, Some(secs(36.0)));
}

#[test]
fn permits_have_no_clock() {
    let mut bench = Bench::new(policy(Quota::concurrent(2), Algorithm::Concurrency));
    assert!(bench.passes(0, 2));
    let denial = bench.ask(1_000_000, 1);
    assert_eq!((denial.outcome, denial.never), (Outcome::Deny, false));
    assert_eq!((denial.retry_after, denial.available_after), (None, None));
    assert_eq!(denial.reset_after, Duration::ZERO);
    bench.settle(0, 2, 0, 1);
    assert_eq!(bench.ask(0, 0).remaining, 2);
}

#[test]
fn a_block_covers_all_waits() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    assert!(bench.passes(0, 2));
    let blocked = bench.manage(0, KeyOperation::Block(at(1500)));
    assert_eq!((blocked.remaining, blocked.reset_after), (0, secs(2.0)));
    assert_eq!(blocked.available_after, Some(secs(1.5)));
    assert_eq!(bench.ask(0, 1).retry_after, Some(secs(1.5)));
    assert_eq!(bench.ask(0, 5).retry_after, Some(secs(2.0)));
    assert!(bench.ask(0, 6).never);
    assert!(bench.passes(0, 0));
    assert!(bench.passes(1500, 4));
}

#[test]
fn a_changed_rate_drains_from_when_it_is_first_asked_about() {
    let mut bench = Bench::new(policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket));
    assert!(bench.passes(0, 5));
    let slow = policy(Quota::per_second(1).burst(5), Algorithm::TokenBucket);
    bench.policy = policy(Quota::per_second(2).burst(5), Algorithm::TokenBucket);
    // Two have drained at the old rate; the other three take a second and a half at the new one.
    let asked = bench.ask(2000, 0);
    assert_eq!((asked.remaining, asked.reset_after), (2, secs(1.5)));
    assert_eq!(asked.slack.nanos, 2);
    bench.policy = slow;
    let asked = bench.ask(3000, 0);
    assert_eq!((asked.remaining, asked.reset_after), (4, secs(1.0)));
}

#[test]
fn the_strictest_definition_governs_a_merged_check() {
    let mut oracle = Oracle::default();
    let wide = policy(Quota::per_second(9), Algorithm::FixedWindow);
    let narrow = policy(Quota::per_second(4), Algorithm::FixedWindow);
    let checks = [Check::new(&wide, ALICE).cost(2), Check::new(&narrow, ALICE)];
    let answers = oracle.decide(at(0), &checks);
    assert_eq!(answers[0], answers[1]);
    assert_eq!((answers[0].limit, answers[0].remaining), (4, 1));
}
