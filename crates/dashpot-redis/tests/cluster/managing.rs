//! Listing and forgetting what is on all nodes.

use std::time::Duration;

use dashpot::{Algorithm, Check, Key, KeyOperation, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisCluster, limit};

use super::PATIENT;

const CALLERS: usize = 40;

async fn store(cluster: &RedisCluster, prefix: &str) -> RedisStore {
    let store = RedisStore::builder(cluster.url()).prefix(prefix);
    let store = store.deadline(PATIENT).connect_timeout(PATIENT).start().unwrap();
    store.ready(Duration::from_secs(5)).await.unwrap();
    store
}

fn caller(number: usize) -> String {
    format!("caller {number} {{}}")
}

async fn left(store: &RedisStore, policy: &Policy) -> u64 {
    let mut left = 0;
    for number in 0..CALLERS {
        let caller = caller(number);
        let peek = store.manage(policy, Key::from(&caller), KeyOperation::Peek).await.unwrap();
        left += peek.statuses()[0].remaining();
    }
    left
}

#[tokio::test(flavor = "multi_thread")]
async fn what_all_nodes_keep_is_listed_and_forgotten_within_the_prefix() {
    let cluster = RedisCluster::start();
    // As patterns, some of these would mean others as well.
    let prefixes = ["a", "ab", "a*", "[ab]", "?"];
    let policies = [
        limit("one", Algorithm::TokenBucket, 5, Window::DAY),
        limit("two:2", Algorithm::FixedWindow, 5, Window::DAY),
    ];
    let mut stores = Vec::new();
    for prefix in prefixes {
        let store = store(&cluster, prefix).await;
        for number in 0..CALLERS {
            let caller = caller(number);
            let checks = policies.each_ref().map(|policy| Check::new(policy, &caller).cost(2));
            assert!(store.decide(&checks).await.unwrap().is_allowed());
        }
        stores.push(store);
    }
    let node = cluster.primary_of(dashpot_testkit::redis::slot(b"a:{foreign}:one:x"));
    assert!(node.command(&["SET", "a:{foreign}", "theirs"]).is_ok());

    for (store, prefix) in stores.iter().zip(prefixes) {
        let mut listed = store.list(None, 1000).await.unwrap();
        listed.sort_by(|one, two| (&one.policy, &one.key).cmp(&(&two.policy, &two.key)));
        let names: Vec<_> = listed.iter().map(|it| (it.policy.as_str(), it.key.clone())).collect();
        let mut expected: Vec<_> = ["one", "two:2"]
            .into_iter()
            .flat_map(|policy| (0..CALLERS).map(move |it| (policy, caller(it).into_bytes())))
            .collect();
        expected.sort();
        assert_eq!(names, expected, "{prefix}");
        assert!(listed.iter().all(|key| !key.expires_in.is_zero()));
        assert_eq!(store.list(Some("two:2"), 1000).await.unwrap().len(), CALLERS);
        assert_eq!(store.list(Some("two"), 1000).await.unwrap(), []);
        assert_eq!(store.list(None, 7).await.unwrap().len(), 7);
    }

    let wild = stores.iter().zip(prefixes).find(|(_, prefix)| *prefix == "a*").unwrap().0;
    assert_eq!(wild.reset_all(Some("one"), 1000).await.unwrap(), CALLERS);
    for (store, prefix) in stores.iter().zip(prefixes) {
        let full = if prefix == "a*" { 5 } else { 3 };
        assert_eq!(left(store, &policies[0]).await, full * CALLERS as u64, "{prefix}");
        assert_eq!(left(store, &policies[1]).await, 3 * CALLERS as u64, "{prefix}");
    }
    assert_eq!(stores[0].reset_all(None, 10).await.unwrap(), 10);
    assert_eq!(stores[0].reset_all(None, 1000).await.unwrap(), 2 * CALLERS - 10);
    assert_eq!(stores[0].list(None, 1000).await.unwrap(), []);
    assert_eq!(left(&stores[1], &policies[0]).await, 3 * CALLERS as u64);
    assert_eq!(node.command(&["GET", "a:{foreign}"]).text(), "theirs");
}
