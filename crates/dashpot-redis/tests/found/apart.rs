//! Checks on two servers.

use std::time::Duration;

use dashpot::{Algorithm, Check, Cost, Policy, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::{policy, ready, sleep, url, with};

/// A key on each of two servers: names found by trying.
async fn apart(store: &RedisStore, servers: [&RedisServer; 2], api: &Policy) -> [String; 2] {
    let mut found: [Option<String>; 2] = [None, None];
    for n in 0..100 {
        let key = format!("k{n}");
        let _ = store.decide(&[Check::new(api, key.as_str())]).await.unwrap();
        for (slot, server) in found.iter_mut().zip(servers) {
            let there = server
                .keys()
                .iter()
                .any(|name| String::from_utf8_lossy(name).contains(&format!("{{{key}}}:")));
            if there && slot.is_none() {
                *slot = Some(key.clone());
            }
        }
    }
    found.map(Option::unwrap)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_one_even_if_another_server_is_down() {
    let (one, two) = (RedisServer::start(), RedisServer::start());
    let store = RedisStore::builder_on([one.url(), two.url()])
        .deadline(Duration::from_millis(200))
        .denial_memory(Duration::ZERO)
        .start()
        .unwrap();
    ready(&store).await;
    let api = policy("api", "1/h");
    let [a, b] = apart(&store, [&one, &two], &api).await;
    two.kill();
    sleep(300).await;
    let alone = store.decide(&[Check::new(&api, a.as_str())]).await.unwrap();
    assert!(!alone.is_allowed());
    let both = store.decide(&[Check::new(&api, a.as_str()), Check::new(&api, b.as_str())]).await;
    assert!(both.is_ok_and(|decision| !decision.is_allowed()), "the denial became an error");
}

/// What is dropped between the two halves stays charged.
#[tokio::test(flavor = "multi_thread")]
async fn a_decision_on_two_servers_that_is_dropped_gives_back() {
    let (one, two) = (RedisServer::start(), RedisServer::start());
    let far = Proxy::to(&two.address());
    let store = RedisStore::builder_on([one.url(), url(&far)])
        .deadline(Duration::from_millis(500))
        .start()
        .unwrap();
    ready(&store).await;
    let api = policy("api", "1000/s");
    let [a, b] = apart(&store, [&one, &two], &api).await;
    let day = with("day", "10/day", Algorithm::FixedWindow);
    far.set(Fault::Hang);
    for _ in 0..10 {
        let checks = [Check::new(&day, a.as_str()), Check::new(&day, b.as_str())];
        let _ = tokio::time::timeout(Duration::from_millis(20), store.decide(&checks)).await;
    }
    far.set(Fault::None);
    sleep(1500).await;
    let left = store.decide(&[Check::new(&day, a.as_str()).cost(Cost::PEEK)]).await.unwrap();
    assert_eq!(left.statuses()[0].remaining(), 10, "charged until midnight for nothing");
}

/// A call that comes to a server with nothing left of its deadline says nothing about that server.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_not_taken_for_down_because_another_is_slow() {
    let (one, two) = (RedisServer::start(), RedisServer::start());
    let (slow, well) = (Proxy::to(&one.address()), Proxy::to(&two.address()));
    let deadline = Duration::from_millis(200);
    let store =
        RedisStore::builder_on([url(&slow), url(&well)]).deadline(deadline).start().unwrap();
    ready(&store).await;
    let api = policy("api", "10000/s");
    let [a, b] = apart(&store, [&one, &two], &api).await;
    slow.set(Fault::Delay(Duration::from_millis(90)));
    well.set(Fault::Delay(Duration::from_millis(16)));
    sleep(200).await;
    let mut outages = 0;
    for _ in 0..8 {
        let checks = [Check::new(&api, a.as_str()), Check::new(&api, b.as_str())];
        let _ = store.decide(&checks).await;
        let health = store.health();
        outages = health.servers.iter().map(|server| server.outages).sum();
    }
    let health = store.health();
    assert_eq!(outages, 0, "{health:#?}");
}
