//! Servers that are slow, strict or away.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Cost, Key, KeyOperation, Store, Timestamp};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::{policy, ready, sleep, url, with};

/// A server that is slower than the deadline is connected to again and again, and callers wait for it.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_always_late_adds_no_latency() {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server.address());
    let store = RedisStore::builder(url(&proxy)).start().unwrap();
    ready(&store).await;
    let api = policy("api", "1000000/s");
    proxy.set(Fault::Delay(Duration::from_millis(15)));
    sleep(200).await;
    let (started, mut asked, mut slow) = (Instant::now(), 0, 0);
    while started.elapsed() < Duration::from_secs(5) {
        let before = Instant::now();
        let tasks: Vec<_> = (0..20)
            .map(|_| {
                let (store, api) = (store.clone(), api.clone());
                tokio::spawn(
                    async move { store.decide(&[Check::new(&api, "alice")]).await.is_ok() },
                )
            })
            .collect();
        for task in tasks {
            let _ = task.await;
        }
        asked += 1;
        slow += u32::from(before.elapsed() > Duration::from_millis(15));
        sleep(5).await;
    }
    let health = store.health();
    // Who waits for a server in vain is counted there, a round of 20 for each connection that was believed; the
    // clock sees the machine pause, too, which it does now and then.
    assert!(health.servers[0].late < 5 * 20, "of {asked} rounds of 20 in 5 s: {health:?}");
    assert!(slow < asked / 10, "{slow} of {asked} rounds of 20 waited in 5 s; {health:?}");
}

/// The ACL of docs/redis.md, and a password that is wrong.
#[tokio::test(flavor = "multi_thread")]
async fn the_acl_of_the_docs_is_enough() {
    let server = RedisServer::start();
    let docs = include_str!("../../../../docs/redis.md");
    let (_, acl) = docs.split_once("```text\nACL").unwrap();
    let words = acl.split("```").next().unwrap().split_whitespace();
    let words: Vec<&str> = std::iter::once("ACL").chain(words).collect();
    assert!(server.command(&words).is_ok());
    let wrong = RedisStore::builder(format!("redis://dashpot:hunter2@{}", server.address()))
        .start()
        .unwrap();
    sleep(300).await;
    let told = format!(
        "{:?} {:?}",
        wrong.health(),
        wrong.decide(&[Check::new(&policy("p", "1/s"), "a")]).await
    );
    assert!(!told.contains("hunter2"));
    let store = RedisStore::builder(format!("redis://dashpot:secret@{}/0", server.address()))
        .deadline(Duration::from_secs(1))
        .permit_lease(Duration::from_secs(1))
        .start()
        .unwrap();
    ready(&store).await;
    for algorithm in Algorithm::ALL {
        let quota = if algorithm == Algorithm::Concurrency { "3 concurrent" } else { "3/s" };
        let policy = with(algorithm.name(), quota, algorithm);
        let check = Check::new(&policy, "alice");
        for _ in 0..5 {
            let decision = store.decide(&[check]).await.unwrap();
            if let Some(reservation) = check.reservation(&decision) {
                store.settle(&reservation, Cost::new(2)).await.unwrap();
            }
            sleep(300).await;
        }
        for wish in
            [KeyOperation::Block(Timestamp::MAX), KeyOperation::Reset, KeyOperation::Unblock]
        {
            let _ = store.manage(&policy, Key::from("alice"), wish).await.unwrap();
        }
        let _ = store.decide(&[check]).await.unwrap();
    }
    store.list(None, 100).await.unwrap();
    store.reset_all(None, 100).await.unwrap();
}

/// One that starts while Redis is down knows nothing of others, unless it was told.
#[tokio::test(flavor = "multi_thread")]
async fn who_starts_during_an_outage_believes_what_it_was_told() {
    let server = RedisServer::start();
    server.kill();
    let three = std::num::NonZeroU64::new(3).unwrap();
    let told = RedisStore::builder(server.url()).instances_at_least(three).start().unwrap();
    sleep(600).await;
    assert_eq!(told.instances(), three);
    server.restart();
    ready(&told).await;
    assert_eq!(told.instances(), three, "there are no fewer");
}
