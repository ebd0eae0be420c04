//! Redis goes away while units are out.

use std::time::{Duration, Instant};

use dashpot::{Check, Policy, Store, StoreError, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::bound::{now, within_bound};
use super::callers::{Callers, together};
use super::common::{
    LEASABLE, LONG, SHORT, drain, each, heat, instances, leased, leasing, millis, sleep, started,
    weekly,
};

/// One that does not wait for long.
async fn hasty(server: &RedisServer, lease: Duration) -> RedisStore {
    let store = leasing(RedisStore::builder(server.url()), lease);
    started(store.connect_timeout(millis(250))).await
}

/// Asks until there is no answer any more, and says how many passed and when that was.
async fn spend(store: &RedisStore, policy: &Policy) -> (u64, StoreError) {
    let (start, mut passed) = (Instant::now(), 0);
    loop {
        assert!(start.elapsed() < Duration::from_secs(8), "{policy} is granted for ever");
        match store.decide(&[Check::new(policy, "hot")]).await {
            Ok(decision) => passed += u64::from(decision.is_allowed()),
            Err(error) => return (passed, error),
        }
        tokio::task::yield_now().await;
    }
}

async fn until_answered(store: &RedisStore, policy: &Policy) {
    let start = Instant::now();
    while store.decide(&[Check::new(policy, "hot").cost(0)]).await.is_err() {
        assert!(start.elapsed() < Duration::from_secs(5), "it does not find back");
        sleep(5).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_is_spent_while_redis_is_dead_and_then_there_is_an_error() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let store = hasty(&server, Duration::from_secs(4)).await;
        let policy = weekly(algorithm, 1000);
        let before = heat(&store, &policy, "hot").await;
        server.kill();
        let (passed, error) = spend(&store, &policy).await;
        assert!(passed >= 1, "{policy}: nothing was out");
        assert!(before + passed <= 1000, "{policy}: {before} and {passed}");
        assert!(matches!(error, StoreError::Unavailable(_)), "{error:?}");
        server.restart();
        until_answered(&store, &policy).await;
        // It begins anew, and nothing that was out before is given to what does not know of it.
        let taken = drain(&store, &policy, "hot", 1001).await;
        assert_eq!(taken, 1000, "{policy}");
    })
    .await;
}

/// Who has units left must not spend them once their lease has ended, though nobody tells.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_out_is_worth_nothing_after_the_lease() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let store = hasty(&server, 4 * SHORT).await;
        let policy = weekly(algorithm, 100_000);
        heat(&store, &policy, "hot").await;
        server.hang();
        tokio::time::sleep(4 * SHORT).await;
        let answer = store.decide(&[Check::new(&policy, "hot")]).await;
        assert!(answer.is_err(), "{policy}: {answer:?}");
        server.resume();
        until_answered(&store, &policy).await;
    })
    .await;
}

/// Redis stands still again and again under load: never too much, and it goes on afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stands_still_gives_nothing_away() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = [hasty(&server, SHORT).await, hasty(&server, SHORT).await];
        let policy = leased(algorithm, 1000, Window::SECOND);
        let callers = Callers::start(&stores, &policy, "hot");
        for _ in 0..2 {
            sleep(300).await;
            server.hang();
            sleep(400).await;
            server.resume();
        }
        let resumed = now();
        sleep(1200).await;
        let said = callers.stop::<2>().await;
        let passed = together(&said);
        within_bound(&policy, &passed, 0);
        assert!(passed.iter().any(|one| one.began > resumed), "{policy}: it goes on");
        assert!(said.iter().any(|said| !said.failed.is_empty()), "{policy}: nobody noticed");
        let late = resumed.after(Duration::from_secs(1));
        assert!(said.iter().all(|said| said.failed.iter().all(|at| *at < late)), "{policy}");
    })
    .await;
}

/// Of what does not come back, nothing is granted twice, however often the server stands still.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_asked_for_while_nobody_answered_is_not_granted_twice() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = [hasty(&server, SHORT).await, hasty(&server, SHORT).await];
        let policy = weekly(algorithm, 5000);
        let callers = Callers::start(&stores, &policy, "hot");
        for pause in [60, 110, 200] {
            sleep(100).await;
            server.hang();
            sleep(pause).await;
            server.resume();
        }
        sleep(700).await;
        let passed = together(&callers.stop::<2>().await).len();
        eprintln!("{policy}: {passed}");
        assert!(passed <= 5000, "{policy}: {passed}");
    })
    .await;
}

/// Scripts that are forgotten are told again.
#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_are_forgotten_cost_nobody_anything() {
    let server = RedisServer::start();
    let stores = instances::<2>(&server, LONG).await;
    let policy = weekly(LEASABLE[0], 3000);
    let callers = Callers::start(&stores, &policy, "hot");
    for _ in 0..30 {
        assert!(server.command(&["SCRIPT", "FLUSH"]).is_ok());
        sleep(10).await;
    }
    sleep(700).await;
    let said = callers.stop::<2>().await;
    assert!(said.iter().all(|said| said.failed.is_empty()));
    let passed = together(&said).len();
    assert!((2700..=3000).contains(&passed), "{passed}");
}
