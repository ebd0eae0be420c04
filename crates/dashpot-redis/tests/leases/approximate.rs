//! How much too much is granted at most under what is approximate, and that it is made up for.

use dashpot::{Algorithm, Check, Consistency, Quota, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::bound::within_bound;
use super::callers::{Callers, together};
use super::common::{
    LEASABLE, LONG, SHORT, drain, each, instances, left, policy, questions, sleep, takes,
};

const RATE: u64 = 1000;
/// What the rate brings in the 100 ms after which others are told.
const UNTOLD: u64 = RATE / 10;

async fn hammered<const N: usize>(algorithm: Algorithm) {
    let server = RedisServer::start();
    let stores = instances::<N>(&server, SHORT).await;
    let quota = Quota::new(RATE, Window::SECOND);
    let policy = policy("about", algorithm, quota, Consistency::Approximate);
    let callers = Callers::start(&stores, &policy, "hot");
    sleep(2200).await;
    let passed = together(&callers.stop::<N>().await);
    eprintln!("{policy}: {} by {N}, {} questions", passed.len(), questions(&server));
    within_bound(&policy, &passed, N as u64 * UNTOLD);
    assert!(passed.len() as u64 > RATE, "{} passed", passed.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn one_instance_grants_nothing_too_much() {
    each(async |algorithm| {
        hammered::<1>(algorithm).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_instances_grant_little_too_much() {
    each(async |algorithm| {
        hammered::<2>(algorithm).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn four_instances_grant_little_too_much() {
    each(async |algorithm| {
        hammered::<4>(algorithm).await;
    })
    .await;
}

async fn all_told(stores: &[RedisStore]) {
    for store in stores {
        store.release().await;
    }
}

/// Where hardly anything comes back, hardly anything is granted too much; and it is all charged.
#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_back_is_granted_once_and_all_of_it_is_told() {
    each(async |algorithm| {
        let server = RedisServer::start();
        let stores = instances::<3>(&server, LONG).await;
        let quota = Quota::new(500, Window::WEEK);
        let policy = policy("about", algorithm, quota, Consistency::Approximate);
        let callers = Callers::start(&stores, &policy, "hot");
        sleep(700).await;
        let mut passed = together(&callers.stop::<3>().await).len() as u64;
        for store in &stores {
            passed += drain(store, &policy, "hot", 500).await;
        }
        // A unit for each instance.
        assert!((500..=503).contains(&passed), "{policy}: {passed}");
        all_told(&stores).await;
        assert_eq!(left(&stores[0], &policy, "hot").await, 0, "{policy}");
        assert_eq!(drain(&stores[2], &policy, "hot", 9).await, 0, "{policy}");
    })
    .await;
}

/// What was counted here is there for all to see after a release, to the unit.
#[tokio::test(flavor = "multi_thread")]
async fn a_release_tells_what_was_counted() {
    let server = RedisServer::start();
    let stores = instances::<2>(&server, LONG).await;
    for algorithm in LEASABLE {
        let quota = Quota::new(10_000, Window::WEEK);
        let policy = policy("many", algorithm, quota, Consistency::Approximate);
        let mut taken = 0;
        for number in 0..400 {
            taken += u64::from(takes(&stores[number % 2], &policy, "hot", 1).await);
        }
        all_told(&stores).await;
        assert_eq!(left(&stores[0], &policy, "hot").await, 10_000 - taken, "{policy}");
    }
}

/// Nobody is refused where there is plenty, however fast it is asked for.
#[tokio::test(flavor = "multi_thread")]
async fn what_there_is_enough_of_is_granted() {
    let server = RedisServer::start();
    let [store] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let quota = Quota::new(100_000, Window::DAY);
        let policy = policy("plenty", algorithm, quota, Consistency::Approximate);
        for number in 0..200 {
            let decision = store.decide(&[Check::new(&policy, "hot")]).await.unwrap();
            assert!(decision.is_allowed(), "number {number}: {decision:?}");
        }
    }
}
