//! Many callers of one key at several instances: never too much, and few questions.

use dashpot::{Algorithm, Window};
use dashpot_testkit::RedisServer;

use super::bound::within_bound;
use super::callers::{Callers, together};
use super::common::{SHORT, each, instances, leased, questions, sleep, weekly};

const RATE: u64 = 2000;

/// Four instances ask for more than there is while leases begin and end.
async fn hammered(algorithm: Algorithm) {
    let server = RedisServer::start();
    let stores = instances::<4>(&server, SHORT).await;
    let policy = leased(algorithm, RATE, Window::SECOND);
    let before = questions(&server);
    let callers = Callers::start(&stores, &policy, "hot");
    sleep(2500).await;
    let said = callers.stop::<4>().await;
    let asked = questions(&server) - before;
    let (passed, checks) = (together(&said), said.iter().map(|said| said.checks).sum::<u64>());
    let calls = stores.iter().map(|store| store.health().lease_calls).sum::<u64>();
    eprintln!(
        "{algorithm:?}: {} of {checks} passed, {asked} questions, {calls} calls",
        passed.len()
    );
    within_bound(&policy, &passed, 0);
    assert!(passed.len() as u64 > RATE, "{} passed", passed.len());
    assert!(asked < checks, "{asked} questions for {checks} checks");
    assert!((1..=asked).contains(&calls), "{calls} of {asked}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bucket_is_never_overdrawn() {
    hammered(Algorithm::TokenBucket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaky_bucket_is_never_overdrawn() {
    hammered(Algorithm::LeakyBucket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_window_is_never_overdrawn() {
    hammered(Algorithm::FixedWindow).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_is_never_overdrawn() {
    hammered(Algorithm::SlidingWindow).await;
}

/// What is out when a lease ends is lost, and nothing is lost while everybody lives and gives back.
#[tokio::test(flavor = "multi_thread")]
async fn of_what_does_not_come_back_nobody_gets_more_than_there_is() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = instances::<3>(&server, SHORT).await;
        let policy = weekly(algorithm, RATE);
        let callers = Callers::start(&stores, &policy, "hot");
        sleep(1500).await;
        let passed = together(&callers.stop::<3>().await).len() as u64;
        eprintln!("{algorithm:?}: {passed} of {RATE}");
        assert!(passed <= RATE, "{policy}: {passed}");
        assert!(passed >= RATE / 2, "{policy}: only {passed}");
        assert!(server.keys_without_ttl().is_empty(), "{:?}", server.keys_without_ttl());
    })
    .await;
}
