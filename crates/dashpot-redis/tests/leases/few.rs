//! How seldom Redis is asked.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Consistency, Policy, Quota, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{
    LEASABLE, LONG, each, heat, instance, instances, leased, left, millis, policy, questions,
    sleep, takes, until, weekly,
};

/// Asks for one unit after another for so long, about so many a second.
async fn steady(stores: &[RedisStore], policy: &Policy, rate: u32, time: Duration) -> u64 {
    let (start, mut asked) = (Instant::now(), 0_u32);
    while start.elapsed() < time {
        while f64::from(asked) < start.elapsed().min(time).as_secs_f64() * f64::from(rate) {
            let store = &stores[asked as usize % stores.len()];
            assert!(takes(store, policy, "hot", 1).await, "there is enough");
            asked += 1;
        }
        sleep(1).await;
    }
    u64::from(asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_enough_of_is_asked_for_in_batches() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = instances::<2>(&server, Duration::from_secs(2)).await;
        let policy = leased(algorithm, 500_000, Window::HOUR);
        let before = questions(&server);
        let checks = steady(&stores, &policy, 2000, millis(1500)).await;
        let asked = questions(&server) - before;
        assert!(asked * 8 < checks, "{policy}: {asked} questions for {checks} checks");
    })
    .await;
}

/// A lease ends with its window; the next one is leased just as well.
async fn goes_on_with_the_next_window(algorithm: Algorithm) {
    let server = RedisServer::start();
    let stores = [instance(&server, LONG).await];
    let policy = leased(algorithm, 100_000, Window::SECOND);
    // That is more than two windows.
    let before = questions(&server);
    let checks = steady(&stores, &policy, 2000, millis(3300)).await;
    let asked = questions(&server) - before;
    let calls = stores[0].health().lease_calls;
    assert!(asked * 4 < checks, "{policy}: {asked} questions ({calls}) for {checks} checks");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_window_is_leased_in_the_next_window_too() {
    goes_on_with_the_next_window(Algorithm::FixedWindow).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_is_leased_in_the_next_window_too() {
    goes_on_with_the_next_window(Algorithm::SlidingWindow).await;
}

/// A few checks a second are no reason to lease anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_cold_key_is_exact() {
    let server = RedisServer::start();
    let store = instance(&server, Duration::from_secs(2)).await;
    let other = instance(&server, Duration::from_secs(2)).await;
    for consistency in [Consistency::Leased, Consistency::Approximate] {
        let each = LEASABLE.map(|algorithm| {
            let quota = Quota::new(12, Window::WEEK);
            let name = format!("{consistency}-{algorithm}");
            let exact = policy(&format!("{name}-exact"), algorithm, quota, Consistency::Exact);
            (policy(&name, algorithm, quota, consistency), exact)
        });
        for number in 0..14 {
            for (cold, exact) in &each {
                let store = if number % 2 == 0 { &store } else { &other };
                let [cold, exact] = [cold, exact].map(|policy| Check::new(policy, "cold"));
                let cold = store.decide(&[cold]).await.unwrap();
                let exact = store.decide(&[exact]).await.unwrap();
                assert_eq!(cold.outcome(), exact.outcome(), "{number} under {consistency}");
                let [cold, exact] = [cold, exact].map(|one| one.statuses()[0].remaining());
                assert_eq!(cold, exact, "{number} under {consistency}");
            }
            sleep(30).await;
        }
    }
    for store in [store, other] {
        let health = store.health();
        assert_eq!((health.leased_keys, health.lease_calls), (0, 0));
    }
}

/// Nobody leases what is hardly there: half of the limit among all would be fewer than four.
#[tokio::test(flavor = "multi_thread")]
async fn a_small_limit_is_exact_however_often_it_is_asked_about() {
    let server = RedisServer::start();
    let store = instance(&server, Duration::from_secs(2)).await;
    for algorithm in LEASABLE {
        let policy = leased(algorithm, 6, Window::WEEK);
        let mut passed = 0;
        for _ in 0..100 {
            passed += u64::from(takes(&store, &policy, "hot", 1).await);
        }
        assert_eq!(passed, 6, "{policy}");
    }
    assert_eq!(store.health().leased_keys, 0);
}

/// Half a second after the last question, a key is as it was, and what was out is there for others.
#[tokio::test(flavor = "multi_thread")]
async fn an_idle_key_gives_back_what_it_has_by_itself() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    let other = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 1000);
        let taken = heat(&store, &policy, "idle").await;
        let back =
            until("all is back", async || left(&other, &policy, "idle").await == 1000 - taken);
        let took = back.await;
        assert_eq!(store.health().leased_keys, 0, "{policy} after {took:?}");
    }
}
