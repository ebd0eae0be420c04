//! Several checks in one call.

use dashpot::{Algorithm, Check, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::redis::slot;
use dashpot_testkit::{RedisCluster, limit};

use super::{PATIENT, callers_in, cluster_and_store};
use crate::support::apart;

/// How many scripts the nodes were asked to run.
fn scripts_run(cluster: &RedisCluster) -> u64 {
    let on = |node: &dashpot_testkit::RedisServer| {
        let statistics = node.command(&["INFO", "commandstats"]).text();
        let calls = statistics.lines().filter_map(|line| {
            let calls = line.strip_prefix("cmdstat_evalsha:calls=")?;
            calls.split(',').next()?.parse::<u64>().ok()
        });
        calls.sum::<u64>()
    };
    cluster.nodes().iter().map(on).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn all_limits_of_one_caller_are_decided_in_one_call() {
    let (cluster, store) = cluster_and_store(PATIENT).await;
    let policies = Algorithm::ALL
        .map(|algorithm| limit(&format!("by-{}", algorithm.name()), algorithm, 1000, Window::DAY));
    let ask = |caller: String| {
        let (store, policies) = (store.clone(), policies.clone());
        async move {
            let checks = policies.each_ref().map(|policy| Check::new(policy, &caller));
            assert!(store.decide(&checks).await.unwrap().is_allowed());
        }
    };
    // Whatever goes on beside it.
    for number in 0..10 {
        ask(format!("warm-{number}")).await;
    }
    let before = scripts_run(&cluster);
    for number in 0..300 {
        ask(format!("user {number} {{of many}}")).await;
    }
    let calls = scripts_run(&cluster) - before;
    assert!((300..330).contains(&calls), "{calls} calls for 300 decisions");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_has_just_been_started_answers_the_first_call() {
    let cluster = RedisCluster::start();
    let store = RedisStore::builder(cluster.url()).deadline(PATIENT).start().unwrap();
    let policy = limit("first", Algorithm::TokenBucket, 5, Window::DAY);
    let decision = store.decide(&[Check::new(&policy, "caller")]).await;
    assert!(decision.unwrap().is_allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_in_different_slots_are_decided_all_or_nothing() {
    let (cluster, store) = cluster_and_store(PATIENT).await;
    apart::nobody_pays_for_a_denial(&store, "crowd").await;
    apart::a_crowd_of_denials_costs_nothing(&store, "crowd-user").await;

    let callers = callers_in(|_| true, 4);
    let [one, two, three, four] = [0, 1, 2, 3].map(|number| callers[number].as_str());
    let slots = callers.iter().map(|caller| slot(caller.as_bytes()));
    assert_eq!(slots.collect::<std::collections::BTreeSet<_>>().len(), 4);
    apart::every_denier_is_named(&store, [one, two]).await;
    apart::what_is_not_used_comes_back(&store, [three, four]).await;
    apart::what_is_not_used_comes_back(&store, [three, ""]).await;
    assert!(cluster.keys_without_ttl().is_empty());
}
