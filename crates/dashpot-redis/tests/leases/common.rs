//! Instances and policies.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Consistency, Key, KeyOperation, Policy, Quota, Store, Window};
use dashpot_redis::{RedisStore, RedisStoreBuilder};
use dashpot_testkit::RedisServer;

/// Those that can be leased.
pub(crate) const LEASABLE: [Algorithm; 4] = [
    Algorithm::TokenBucket,
    Algorithm::LeakyBucket,
    Algorithm::FixedWindow,
    Algorithm::SlidingWindow,
];

/// The same with each of those, all at once.
pub(crate) async fn each(test: impl AsyncFn(Algorithm)) {
    let [one, two, three, four] = LEASABLE;
    tokio::join!(test(one), test(two), test(three), test(four));
}

/// Where time is not what is tested.
pub(crate) const PATIENT: Duration = Duration::from_secs(5);

/// Short, so that many begin and end.
pub(crate) const SHORT: Duration = Duration::from_millis(400);

/// What nobody in a test outlives.
pub(crate) const LONG: Duration = Duration::from_secs(60);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub(crate) async fn sleep(time: u64) {
    tokio::time::sleep(millis(time)).await;
}

/// A store whose leases last so long. They are never shorter than eight deadlines.
pub(crate) fn leasing(builder: RedisStoreBuilder, lease: Duration) -> RedisStoreBuilder {
    builder.deadline(lease / 8).connect_timeout(PATIENT).lease(lease)
}

pub(crate) async fn started(builder: RedisStoreBuilder) -> RedisStore {
    let store = builder.start().unwrap();
    store.ready(PATIENT).await.unwrap();
    store
}

/// An instance of its own.
pub(crate) async fn instance(server: &RedisServer, lease: Duration) -> RedisStore {
    started(leasing(RedisStore::builder(server.url()), lease)).await
}

/// Several of them, who know of each other.
pub(crate) async fn instances<const N: usize>(
    server: &RedisServer,
    lease: Duration,
) -> [RedisStore; N] {
    let mut stores = Vec::new();
    for _ in 0..N {
        stores.push(instance(server, lease).await);
    }
    for store in &stores {
        until("all are known", async || store.instances().get() == N as u64).await;
    }
    stores.try_into().unwrap_or_else(|_| unreachable!("there are so many"))
}

pub(crate) fn policy(
    name: &str,
    algorithm: Algorithm,
    quota: Quota,
    consistency: Consistency,
) -> Policy {
    let policy = Policy::builder(name, quota).algorithm(algorithm);
    policy.consistency(consistency).build().unwrap()
}

/// So many in a window, leased.
pub(crate) fn leased(algorithm: Algorithm, count: u64, window: Window) -> Policy {
    policy(algorithm.name(), algorithm, Quota::new(count, window), Consistency::Leased)
}

/// The same in a week, of which nothing comes back while a test runs.
pub(crate) fn weekly(algorithm: Algorithm, count: u64) -> Policy {
    leased(algorithm, count, Window::WEEK)
}

pub(crate) async fn takes(store: &RedisStore, policy: &Policy, key: &str, cost: u64) -> bool {
    store.decide(&[Check::new(policy, key).cost(cost)]).await.unwrap().is_allowed()
}

/// What Redis says is left: what is out on lease is not.
pub(crate) async fn left(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    manage(store, policy, key, KeyOperation::Peek).await
}

/// Does something to a key, and says what is left of it.
pub(crate) async fn manage(
    store: &RedisStore,
    policy: &Policy,
    key: &str,
    wish: KeyOperation,
) -> u64 {
    store.manage(policy, Key::from(key), wish).await.unwrap().statuses()[0].remaining()
}

/// Asks for one after another until some are leased, and says how many were taken.
pub(crate) async fn heat(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    let (start, mut taken) = (Instant::now(), 0);
    let (before, calls) = (left(store, policy, key).await, store.health().lease_calls);
    while store.health().lease_calls == calls || left(store, policy, key).await >= before - taken {
        assert!(start.elapsed() < PATIENT, "{policy} is never leased: {:?}", store.health());
        for _ in 0..4 {
            taken += u64::from(takes(store, policy, key, 1).await);
        }
    }
    taken
}

/// Takes one after another until there are no more, for so long that what is out comes back; at most this many.
pub(crate) async fn drain(store: &RedisStore, policy: &Policy, key: &str, most: u64) -> u64 {
    let (mut taken, mut denied) = (0, 0);
    while denied < 60 && taken <= most {
        if takes(store, policy, key, 1).await {
            (taken, denied) = (taken + 1, 0);
        } else {
            denied += 1;
            sleep(5).await;
        }
    }
    taken
}

/// Waits until something is so.
pub(crate) async fn until(what: &str, is_so: impl AsyncFn() -> bool) -> Duration {
    let start = Instant::now();
    while !is_so().await {
        assert!(start.elapsed() < Duration::from_secs(10), "waited in vain: {what}");
        sleep(5).await;
    }
    start.elapsed()
}

/// How often scripts were called.
pub(crate) fn questions(server: &RedisServer) -> u64 {
    let all = server.command(&["INFO", "commandstats"]).text();
    let line = all.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}
