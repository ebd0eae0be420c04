//! Where keys are.

use std::collections::BTreeSet;

use dashpot::{Algorithm, Check, Store, Window};
use dashpot_testkit::limit;
use dashpot_testkit::redis::slot;

use super::{PATIENT, cluster_and_store};

const KEYS: usize = 10_000;
const TASKS: usize = 50;

#[tokio::test(flavor = "multi_thread")]
async fn callers_and_global_limits_are_spread_over_all_nodes() {
    let (cluster, store) = cluster_and_store(PATIENT).await;
    let policy = limit("spread", Algorithm::SlidingWindow, 5, Window::DAY);
    let tasks: Vec<_> = (0..TASKS)
        .map(|task| {
            let (store, policy) = (store.clone(), policy.clone());
            tokio::spawn(async move {
                for number in (task..KEYS).step_by(TASKS) {
                    let caller = format!("user-{number}");
                    assert!(
                        store.decide(&[Check::new(&policy, &caller)]).await.unwrap().is_allowed()
                    );
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let shares = cluster.nodes()[..3].iter().map(|node| node.keys().len());
    let shares: Vec<_> = shares.map(|keys| keys * 100 / KEYS).collect();
    eprintln!("shares in percent: {shares:?}");
    assert!(shares.iter().all(|share| (25..=45).contains(share)), "{shares:?}");

    let held = |share: &dashpot_testkit::RedisServer| share.keys().into_iter().collect();
    let before: Vec<BTreeSet<_>> = cluster.nodes()[..3].iter().map(held).collect();
    for algorithm in Algorithm::ALL {
        for number in 0..50 {
            let policy = limit(&format!("global-{number}"), algorithm, 5, Window::DAY);
            assert!(store.decide(&[Check::new(&policy, "")]).await.unwrap().is_allowed());
        }
    }
    let after: Vec<BTreeSet<_>> = cluster.nodes()[..3].iter().map(held).collect();
    let new: Vec<Vec<_>> = after
        .iter()
        .zip(&before)
        .map(|(after, before)| after.difference(before).collect())
        .collect();
    let slots: BTreeSet<_> = new.iter().flatten().map(|key| slot(key)).collect();
    assert!(slots.len() >= 45, "{} slots", slots.len());
    assert!(new.iter().all(|new| new.len() > 30), "all but on one node");
    assert_eq!(cluster.keys_without_ttl(), Vec::<Vec<u8>>::new());
}
