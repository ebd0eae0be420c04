//! How much of a limit is used, and by whom.

use std::time::Duration;

use dashpot::{Algorithm, Consistency, Policy, Quota, Window};
use dashpot_testkit::RedisServer;

use super::bound::{now, within_bound};
use super::callers::{Callers, together};
use super::common::{LONG, SHORT, instances, millis, policy, sleep};

/// Equally busy instances, each of which asks for more than there is: what they get in a second and a half.
async fn busy<const N: usize>(policy: &Policy, lease: Duration) -> [u64; N] {
    let server = RedisServer::start();
    let stores = instances::<N>(&server, lease).await;
    let callers = Callers::start(&stores, policy, "hot");
    // Buckets are full at first, and windows have begun: that is over by then.
    sleep(1200).await;
    let start = now();
    sleep(1500).await;
    let end = now();
    let said = callers.stop::<N>().await;
    within_bound(policy, &together(&said), 0);
    said.each_ref().map(|said| {
        let meanwhile = said.passed.iter().filter(|one| start <= one.began && one.ended <= end);
        meanwhile.count() as u64
    })
}

/// Most of what there is is granted, and nobody is left out. A machine that stalls is given two more tries.
async fn is_shared(algorithm: Algorithm, quota: Quota) {
    let policy = policy(algorithm.name(), algorithm, quota, Consistency::Leased);
    let window = policy.quota().window().unwrap().length();
    let count = policy.quota().count().unwrap() * 1500 / window.as_millis() as u64;
    for _ in 0..3 {
        let each = busy::<3>(&policy, SHORT * 5).await;
        let all = each.iter().sum::<u64>();
        eprintln!("{policy}: {each:?} of {count}");
        if all * 10 >= count * 7 && each.iter().all(|one| one * 20 >= all) {
            return;
        }
    }
    panic!("{policy}: three times in a row");
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_token_bucket_is_granted_and_nobody_is_left_out() {
    is_shared(Algorithm::TokenBucket, Quota::per_second(1000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_bucket_with_a_small_burst_is_granted_and_nobody_is_left_out() {
    is_shared(Algorithm::TokenBucket, Quota::per_second(1000).burst(100)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_leaky_bucket_is_granted_and_nobody_is_left_out() {
    is_shared(Algorithm::LeakyBucket, Quota::per_second(1000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_fixed_window_is_granted_and_nobody_is_left_out() {
    let quota = Quota::new(250, Window::new(millis(250)).unwrap());
    is_shared(Algorithm::FixedWindow, quota).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn most_of_a_sliding_window_is_granted_and_nobody_is_left_out() {
    is_shared(Algorithm::SlidingWindow, Quota::per_second(1000)).await;
}

/// What one that asks for little holds is not missing for long, however long leases are.
#[tokio::test(flavor = "multi_thread")]
async fn long_leases_leave_as_much() {
    let policy =
        policy("long", Algorithm::TokenBucket, Quota::per_second(1000), Consistency::Leased);
    let each = busy::<2>(&policy, LONG).await;
    assert!(each.iter().sum::<u64>() >= 750, "{each:?} of 1500");
}
