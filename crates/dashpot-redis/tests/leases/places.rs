//! Leases on several servers, and on a cluster.

use dashpot::{Algorithm, Check, Policy, Store, Window};
use dashpot_redis::{RedisStore, RedisStoreBuilder};
use dashpot_testkit::{RedisCluster, RedisServer};

use super::bound::within_bound;
use super::callers::{Callers, together};
use super::common::{
    LEASABLE, LONG, SHORT, drain, heat, leased, leasing, left, sleep, started, weekly,
};

const LIMIT: u64 = 400;

async fn two(builder: impl Fn() -> RedisStoreBuilder) -> [RedisStore; 2] {
    [started(builder()).await, started(builder()).await]
}

fn keys() -> Vec<String> {
    (0..6).map(|number| format!("caller-{number}")).collect()
}

/// Hot keys wherever they are: in all, each grants its limit to the unit.
async fn each_key_grants_its_limit(stores: &[RedisStore; 2]) {
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let keys = keys();
        let callers: Vec<_> = keys.iter().map(|key| Callers::start(stores, &policy, key)).collect();
        sleep(400).await;
        for (key, callers) in keys.iter().zip(callers) {
            let said = callers.stop::<2>().await;
            assert!(said.iter().all(|said| said.failed.is_empty()), "{policy} for {key}");
            let mut passed = together(&said).len() as u64;
            for store in stores {
                store.release().await;
            }
            assert_eq!(left(&stores[0], &policy, key).await, LIMIT - passed, "{policy} for {key}");
            passed += drain(&stores[1], &policy, key, LIMIT).await;
            assert_eq!(passed, LIMIT, "{policy} for {key}");
        }
    }
    assert!(stores.iter().all(|store| store.health().lease_calls > 0), "some were leased");
}

/// Leases that begin and end.
async fn is_never_overdrawn(stores: &[RedisStore; 2]) {
    let policy = leased(Algorithm::TokenBucket, 1000, Window::SECOND);
    let keys = keys();
    let callers: Vec<_> = keys.iter().map(|key| Callers::start(stores, &policy, key)).collect();
    sleep(1500).await;
    for callers in callers {
        within_bound(&policy, &together(&callers.stop::<2>().await), 0);
    }
}

/// Two leased keys in one request, wherever they are: a denial by one takes nothing of the other.
async fn two_keys_are_taken_together(stores: &[RedisStore; 2]) {
    let store = &stores[0];
    for algorithm in LEASABLE {
        let (first, second) = (weekly(algorithm, LIMIT), weekly(algorithm, 2 * LIMIT));
        let pairs = [("caller-0", "caller-1"), ("caller-2", "caller-5"), ("caller-3", "caller-4")];
        for (one, two) in pairs.map(|(one, two)| (format!("{one}-pair"), format!("{two}-pair"))) {
            let of_one = heat(store, &first, &one).await;
            let of_two = heat(store, &second, &two).await;
            let passed = take_pairs(store, (&first, &one), (&second, &two)).await;
            store.release().await;
            assert_eq!(passed, LIMIT - of_one, "{first} for {one} and {two}");
            assert_eq!(left(&stores[1], &first, &one).await, 0);
            assert_eq!(left(&stores[1], &second, &two).await, 2 * LIMIT - of_two - passed);
        }
    }
}

async fn take_pairs(store: &RedisStore, one: (&Policy, &str), two: (&Policy, &str)) -> u64 {
    let checks = [one, two].map(|(policy, key)| Check::new(policy, key));
    let (mut passed, mut denied) = (0, 0);
    while denied < 100 {
        if store.decide(&checks).await.unwrap().is_allowed() {
            passed += 1;
        } else {
            denied += 1;
            sleep(1).await;
        }
    }
    passed
}

#[tokio::test(flavor = "multi_thread")]
async fn on_several_servers_each_key_grants_its_limit() {
    let servers = [(); 2].map(|()| RedisServer::start());
    let on = || RedisStore::builder_on(servers.each_ref().map(RedisServer::url));
    let stores = two(|| leasing(on(), LONG)).await;
    each_key_grants_its_limit(&stores).await;
    two_keys_are_taken_together(&stores).await;
    for server in &servers {
        assert!(
            server.keys().iter().any(|key| key.starts_with(b"dashpot:{caller-")),
            "it has some"
        );
        assert!(server.keys_without_ttl().is_empty(), "{:?}", server.keys_without_ttl());
    }
    is_never_overdrawn(&two(|| leasing(on(), SHORT).prefix("short")).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn on_a_cluster_each_key_grants_its_limit() {
    let cluster = RedisCluster::start();
    let on = || RedisStore::builder(cluster.url());
    let stores = two(|| leasing(on(), LONG)).await;
    each_key_grants_its_limit(&stores).await;
    two_keys_are_taken_together(&stores).await;
    assert!(cluster.keys_without_ttl().is_empty(), "{:?}", cluster.keys_without_ttl());
    is_never_overdrawn(&two(|| leasing(on(), SHORT).prefix("short")).await).await;
}
