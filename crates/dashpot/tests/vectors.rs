//! Worked examples, number by number.

#[path = "vectors/any_window.rs"]
mod any_window;

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Limiter, ManualClock, MemoryStore, Outcome, Policy, PolicyBuilder, Quota,
    Timestamp,
};

const START: Timestamp = Timestamp::from_secs(1_000_000_000);

fn limiter(policy: PolicyBuilder) -> (Limiter, ManualClock) {
    let clock = ManualClock::new(START);
    let store = MemoryStore::with_clock(clock.clone());
    (Limiter::on(policy.build().unwrap(), store), clock)
}

fn bucket(quota: &str) -> (Limiter, ManualClock) {
    limiter(Policy::builder("bucket", quota.parse().unwrap()))
}

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What a status says: outcome, remaining, reset_after, retry_after.
type Said = (Outcome, u64, Duration, Option<Duration>);

fn ask(limiter: &Limiter, cost: u64) -> Said {
    let decision = limiter.check_n("k", cost);
    let status = decision.statuses()[0];
    (status.outcome(), status.remaining(), status.reset_after(), status.retry_after())
}

fn allow(remaining: u64, reset_after: u64) -> Said {
    (Outcome::Allow, remaining, ms(reset_after), None)
}

fn deny(remaining: u64, reset_after: u64, retry_after: u64) -> Said {
    (Outcome::Deny, remaining, ms(reset_after), Some(ms(retry_after)))
}

#[test]
fn token_bucket_of_five_one_per_second() {
    let (limiter, clock) = bucket("1/s burst 5");
    let at = |millis| clock.set(START.after(ms(millis)));

    let never = limiter.check_n("k", 6);
    assert!(never.is_never());
    assert_eq!(never.retry_after(), None);
    assert_eq!((never.statuses()[0].remaining(), never.statuses()[0].reset_after()), (5, ms(0)));
    for taken in 1..=5 {
        assert_eq!(ask(&limiter, 1), allow(5 - taken, taken * 1000));
    }
    assert_eq!(ask(&limiter, 1), deny(0, 5000, 1000));
    at(3000);
    assert_eq!(ask(&limiter, 1), allow(2, 3000));
    at(3100);
    assert_eq!(ask(&limiter, 1), allow(1, 3900));
    assert_eq!(ask(&limiter, 1), allow(0, 4900));
    at(9500);
    assert_eq!(ask(&limiter, 1), allow(4, 1000));
    assert_eq!(ask(&limiter, 0), allow(4, 1000));
    assert_eq!(ask(&limiter, 5), deny(4, 1000, 1000));
}

#[test]
fn three_then_three_then_a_rejection_then_one() {
    let (limiter, clock) = bucket("1/s burst 5");
    let passes = |count| (0..count).filter(|_| limiter.check("k").is_allowed()).count();
    assert_eq!(passes(3), 3);
    clock.advance(ms(1000));
    assert_eq!(passes(4), 3);
    clock.advance(ms(1000));
    assert_eq!(passes(2), 1);
}

#[test]
fn available_after_tells_when_one_unit_is_back() {
    let (limiter, clock) = bucket("1/s burst 5");
    let available = || limiter.peek("k").statuses()[0].available_after();
    assert!(limiter.check_n("k", 4).is_allowed());
    assert_eq!(available(), Some(ms(0)));
    assert!(limiter.check("k").is_allowed());
    assert_eq!(available(), Some(ms(1000)));
    clock.advance(ms(400));
    assert_eq!(available(), Some(ms(600)));
}

/// nginx's `rate=10r/s burst=20`: without nodelay the 20 leave every 100 ms, with `delay=d`, d + 1
/// pass at once, with `nodelay` all 21 do.
#[test]
fn leaky_bucket_with_a_queue_as_nginx_has_it() {
    let delays = |undelayed| -> Vec<_> {
        let (limiter, _) = limiter(
            Policy::builder("queue", Quota::per_second(10))
                .algorithm(Algorithm::LeakyBucket)
                .queue(20)
                .undelayed(undelayed),
        );
        let decisions = (0..22).map(|_| limiter.check("k").clone());
        let delays = decisions.map(|decision| decision.is_allowed().then(|| decision.delay()));
        delays.collect()
    };
    let expected = |undelayed: u64| -> Vec<_> {
        let delay = |place: u64| ms(100 * place.saturating_sub(undelayed));
        (0..21).map(delay).map(Some).chain([None]).collect()
    };
    for undelayed in [0, 7, 20] {
        assert_eq!(delays(undelayed), expected(undelayed));
    }
}

#[test]
fn leaky_bucket_without_a_queue_polices() {
    let (limiter, _) = limiter(
        Policy::builder("meter", "10/s burst 2".parse().unwrap()).algorithm(Algorithm::LeakyBucket),
    );
    assert_eq!(ask(&limiter, 1), allow(1, 100));
    assert_eq!(ask(&limiter, 1), allow(0, 200));
    assert_eq!(ask(&limiter, 1), deny(0, 200, 100));
    assert_eq!(limiter.check("other").delay(), Duration::ZERO);
}

#[test]
fn fixed_window_passes_twice_the_limit_around_a_boundary() {
    let (limiter, clock) =
        limiter(Policy::builder("window", Quota::per_minute(5)).algorithm(Algorithm::FixedWindow));
    // 10⁹ s is 40 s into its minute.
    clock.advance(ms(19_999));
    assert_eq!(ask(&limiter, 5), allow(0, 1));
    assert_eq!(ask(&limiter, 1), deny(0, 1, 1));
    clock.advance(ms(1));
    assert_eq!(ask(&limiter, 5), allow(0, 60_000));
}

#[test]
fn sliding_log_lets_go_of_the_oldest_first() {
    let (limiter, clock) =
        limiter(Policy::builder("log", Quota::per_minute(3)).algorithm(Algorithm::SlidingLog));
    assert_eq!(ask(&limiter, 1), allow(2, 60_000));
    clock.advance(ms(10_000));
    assert_eq!(ask(&limiter, 2), allow(0, 60_000));
    clock.advance(ms(10_000));
    assert_eq!(ask(&limiter, 1), deny(0, 50_000, 40_000));
    assert_eq!(ask(&limiter, 2), deny(0, 50_000, 50_000));
    clock.advance(ms(40_000));
    assert_eq!(ask(&limiter, 1), allow(0, 60_000));
}

/// prev 7, cur 3, 30 % into the window, limit 10: 7.9, allow.
#[test]
fn sliding_window_weighs_the_previous_one() {
    let (limiter, clock) = limiter(
        Policy::builder("sliding", "10/10s".parse().unwrap()).algorithm(Algorithm::SlidingWindow),
    );
    assert!(limiter.check_n("k", 7).is_allowed());
    clock.advance(ms(10_000));
    // At the boundary the last window weighs fully, so three is all there is.
    assert_eq!(ask(&limiter, 3), allow(0, 20_000));
    clock.advance(ms(3000));
    assert_eq!(limiter.peek("k").statuses()[0].remaining(), 2);
    assert_eq!(ask(&limiter, 1), allow(1, 17_000));
}

#[test]
fn concurrency_has_no_wait_to_tell() {
    let (limiter, _) = limiter(Policy::builder("permits", Quota::concurrent(2)));
    let first = limiter.acquire("k").unwrap();
    let second = limiter.acquire("k").unwrap();
    let denied = limiter.acquire("k").unwrap_err();
    assert_eq!(denied.retry_after(), None);
    assert!(!denied.is_never());
    assert_eq!(denied.statuses()[0].available_after(), None);
    drop(first);
    assert!(limiter.acquire("k").is_ok());
    assert!(limiter.check_n("k", 3).is_never());
    drop(second);
}

/// B = 5, T = 1: reserve 5 at 0, take 4 at 4, give 5 back, take 5: nine at one instant.
#[test]
fn units_given_back_may_come_on_top_in_a_short_interval() {
    let (limiter, clock) = bucket("1/s burst 5");
    let reservation = limiter.reserve("k", 5).unwrap();
    clock.advance(ms(4000));
    assert!(limiter.check_n("k", 4).is_allowed());
    limiter.refund(reservation);
    assert!(limiter.check_n("k", 5).is_allowed());
    assert!(!limiter.check("k").is_allowed());
}

/// The same, undone: only what has not come back by itself does, so it is as if nobody had reserved.
#[test]
fn what_is_undone_does_not_come_on_top() {
    let (limiter, clock) = bucket("1/s burst 5");
    let reservation = limiter.reserve("k", 5).unwrap();
    clock.advance(ms(4000));
    assert!(limiter.check_n("k", 4).is_allowed());
    limiter.store().undo_now(&reservation);
    assert_eq!(ask(&limiter, 1), allow(0, 5000));
    assert_eq!(ask(&limiter, 1), deny(0, 5000, 1000));
}

/// With nobody else about, all is as it was.
#[test]
fn what_is_undone_is_as_if_it_had_not_been() {
    let (limiter, clock) = bucket("1/s burst 5");
    let reservation = limiter.reserve("k", 5).unwrap();
    clock.advance(ms(700));
    limiter.store().undo_now(&reservation);
    assert_eq!(ask(&limiter, 5), allow(0, 5000));
}

#[test]
fn settling_for_more_is_debt() {
    let (limiter, clock) = bucket("1/s burst 5");
    let reservation = limiter.reserve("k", 5).unwrap();
    limiter.settle(reservation, 8);
    assert_eq!(ask(&limiter, 1), deny(0, 8000, 4000));
    clock.advance(ms(4000));
    assert_eq!(ask(&limiter, 1), allow(0, 5000));
}

#[test]
fn several_limits_are_taken_together_or_not_at_all() {
    let store = MemoryStore::with_clock(ManualClock::new(START));
    let second = Policy::new("second", "2/s".parse().unwrap()).unwrap();
    let day = Policy::new("day", "10/day".parse().unwrap()).unwrap();
    let both = [Check::new(&second, "k"), Check::new(&day, "k")];
    let day_left = || store.decide_now(&[Check::new(&day, "k").cost(0)]).statuses()[0].remaining();

    assert!(store.decide_now(&both).is_allowed());
    assert!(store.decide_now(&both).is_allowed());
    assert_eq!(day_left(), 8);
    for _ in 0..100 {
        let denied = store.decide_now(&both);
        let names: Vec<_> = denied.denied().map(|status| status.policy().name()).collect();
        assert_eq!(names, ["second"]);
        assert_eq!(denied.statuses()[1].outcome(), Outcome::Allow);
        assert_eq!(denied.retry_after(), Some(ms(500)));
    }
    assert_eq!(day_left(), 8);
}

#[test]
fn the_longest_wait_rules_and_never_beats_any() {
    let store = MemoryStore::with_clock(ManualClock::new(START));
    let fast = Policy::new("fast", "2/s".parse().unwrap()).unwrap();
    let slow = Policy::new("slow", "2/min".parse().unwrap()).unwrap();
    let small = Policy::new("small", "1/s".parse().unwrap()).unwrap();
    let ask = |cost, policies: &[&Policy]| {
        let checks: Vec<_> = policies.iter().map(|&p| Check::new(p, "k").cost(cost)).collect();
        let decision = store.decide_now(&checks);
        (decision.denied().count(), decision.retry_after(), decision.is_never())
    };
    assert_eq!(ask(2, &[&fast, &slow]), (0, None, false));
    assert_eq!(ask(1, &[&fast, &slow]), (2, Some(ms(30_000)), false));
    assert_eq!(ask(2, &[&fast, &slow, &small]), (3, None, true));
}

#[test]
fn checks_on_one_policy_and_key_are_merged() {
    let store = MemoryStore::with_clock(ManualClock::new(START));
    let policy = Policy::new("p", "5/s".parse().unwrap()).unwrap();
    let again = Policy::new("p", "5/s".parse().unwrap()).unwrap();
    let checks = [
        Check::new(&policy, "k").cost(2),
        Check::new(&policy, "other"),
        Check::new(&again, "k").cost(2),
    ];
    let decision = store.decide_now(&checks);
    let remaining: Vec<_> = decision.statuses().iter().map(|status| status.remaining()).collect();
    assert_eq!(remaining, [1, 4, 1]);
    let denied = store.decide_now(&checks);
    let outcomes: Vec<_> = denied.statuses().iter().map(|status| status.outcome()).collect();
    assert_eq!(outcomes, [Outcome::Deny, Outcome::Allow, Outcome::Deny]);
}

#[test]
fn changed_counts_keep_the_units_used() {
    let clock = ManualClock::new(START);
    let store = MemoryStore::with_clock(clock.clone());
    let define = |quota: &str, algorithm| {
        let quota = quota.parse().unwrap();
        Policy::builder("p", quota).algorithm(algorithm).build().unwrap()
    };
    for algorithm in [
        Algorithm::TokenBucket,
        Algorithm::FixedWindow,
        Algorithm::SlidingLog,
        Algorithm::SlidingWindow,
    ] {
        let ten = define("10/min", algorithm);
        let twenty = define("20/min", algorithm);
        let four = define("4/min", algorithm);
        let per_hour = define("10/h", algorithm);
        let left = |policy: &Policy| {
            store.decide_now(&[Check::new(policy, "k").cost(0)]).statuses()[0].remaining()
        };
        assert!(store.decide_now(&[Check::new(&ten, "k").cost(8)]).is_allowed());
        assert_eq!(left(&twenty), 12, "{algorithm}");
        assert_eq!(left(&four), 0, "{algorithm}");
        assert_eq!(left(&ten), 2, "{algorithm}");
        assert_eq!(left(&per_hour), 10, "{algorithm}: another window starts fresh");
    }
}

/// A denial under a new limit still starts the new rate: its wait would be wrong otherwise.
#[test]
fn a_wait_told_after_a_change_is_exact() {
    let clock = ManualClock::new(START);
    let store = MemoryStore::with_clock(clock.clone());
    let slow = Policy::new("p", "10/h".parse().unwrap()).unwrap();
    let fast = Policy::new("p", "3600/h burst 5".parse().unwrap()).unwrap();
    assert!(store.decide_now(&[Check::new(&slow, "k").cost(10)]).is_allowed());
    let denied = store.decide_now(&[Check::new(&fast, "k")]);
    assert_eq!(denied.retry_after(), Some(ms(6000)));
    clock.advance(ms(5999));
    assert!(!store.decide_now(&[Check::new(&fast, "k")]).is_allowed());
    clock.advance(ms(1));
    assert!(store.decide_now(&[Check::new(&fast, "k")]).is_allowed());
}

#[test]
fn a_reservation_survives_a_change_of_limits() {
    let store = MemoryStore::with_clock(ManualClock::new(START));
    let ten = Policy::new("p", "10/min".parse().unwrap()).unwrap();
    let twenty = Policy::new("p", "20/min".parse().unwrap()).unwrap();
    let check = Check::new(&ten, "k").cost(8);
    let reservation = check.reservation(&store.decide_now(&[check])).unwrap();
    let left = || store.decide_now(&[Check::new(&twenty, "k").cost(0)]).statuses()[0].remaining();
    assert_eq!(left(), 12);
    store.settle_now(&reservation, 3.into());
    assert_eq!(left(), 17);
}

#[test]
fn a_block_denies_until_it_ends_and_a_reset_does_not_end_it() {
    let (limiter, clock) = bucket("1/s burst 5");
    limiter.block("k", ms(10_000));
    assert_eq!(ask(&limiter, 1), deny(0, 10_000, 10_000));
    assert_eq!(ask(&limiter, 0), allow(0, 10_000));
    assert!(limiter.check_n("k", 6).is_never());
    limiter.reset("k");
    clock.advance(ms(9999));
    assert_eq!(ask(&limiter, 1), deny(0, 1, 1));
    clock.advance(ms(1));
    assert_eq!(ask(&limiter, 5), allow(0, 5000));
    limiter.block("k", ms(2000));
    // The longer of the two waits.
    assert_eq!(ask(&limiter, 5), deny(0, 5000, 5000));
    limiter.unblock("k");
    limiter.reset("k");
    assert_eq!(ask(&limiter, 5), allow(0, 5000));
}

/// A rate lets a request pass; that it has ended gives nothing back.
#[test]
fn a_permit_of_a_rate_stays_charged() {
    let (limiter, _) = bucket("2/h");
    let passed = (0..10).filter(|_| limiter.acquire("k").is_ok()).count();
    assert_eq!(passed, 2);
}

#[test]
fn a_permit_from_before_a_reset_does_not_come_back() {
    let (limiter, clock) = limiter(Policy::builder("permits", Quota::concurrent(1)));
    let old = limiter.acquire("k").unwrap();
    clock.advance(ms(1));
    limiter.reset("k");
    let new = limiter.acquire("k").unwrap();
    drop(old);
    assert!(limiter.acquire("k").is_err(), "the new one is still in flight");
    drop(new);
    assert!(limiter.acquire("k").is_ok());
}
