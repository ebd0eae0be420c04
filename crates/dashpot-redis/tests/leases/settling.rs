//! What was taken of a lease and then used otherwise.

use std::time::Instant;

use dashpot::{Algorithm, Check, Cost, Policy, Reservation, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{
    LEASABLE, LONG, drain, heat, instance, instances, leased, left, sleep, takes, weekly,
};

const LIMIT: u64 = 1000;

async fn take_and_settle(store: &RedisStore, policy: &Policy, cost: u64, used: u64) {
    let check = Check::new(policy, "hot").cost(cost);
    let decision = store.decide(&[check]).await.unwrap();
    let reservation = check.reservation(&decision).expect("there is enough");
    store.settle(&reservation, Cost::new(used)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_given_back_is_there_to_the_unit() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = heat(&one, &policy, "hot").await;
        for used in [0, 1, 2, 3].repeat(25) {
            take_and_settle(&one, &policy, 3, used).await;
            taken += used;
        }
        one.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT - taken, "{policy}");
        taken += drain(&two, &policy, "hot", LIMIT).await;
        assert_eq!(taken, LIMIT, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_used_beyond_is_charged_to_the_unit() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = heat(&one, &policy, "hot").await;
        for used in [2, 5, 9].repeat(10) {
            take_and_settle(&one, &policy, 1, used).await;
            taken += used;
        }
        one.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT - taken, "{policy}");
    }
}

/// Debt is paid off before anything is granted again, also by those who hold units.
#[tokio::test(flavor = "multi_thread")]
async fn debt_is_charged_while_units_are_out() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        heat(&one, &policy, "hot").await;
        heat(&two, &policy, "hot").await;
        take_and_settle(&one, &policy, 1, 3 * LIMIT).await;
        one.release().await;
        two.release().await;
        assert_eq!(left(&two, &policy, "hot").await, 0, "{policy}");
        for store in [&one, &two] {
            assert_eq!(drain(store, &policy, "hot", 9).await, 0, "{policy}");
        }
    }
}

/// One instance takes, another settles: it makes no difference who does.
#[tokio::test(flavor = "multi_thread")]
async fn others_may_settle() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = heat(&one, &policy, "hot").await + heat(&two, &policy, "hot").await;
        let check = Check::new(&policy, "hot").cost(6);
        let decision = one.decide(&[check]).await.unwrap();
        let reservation = check.reservation(&decision).expect("there is enough");
        two.settle(&reservation, Cost::new(2)).await.unwrap();
        taken += 2;
        one.release().await;
        two.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT - taken, "{policy}");
        assert!(takes(&one, &policy, "hot", LIMIT - taken).await, "{policy}");
    }
}

async fn reserve(store: &RedisStore, policy: &Policy, cost: u64) -> Option<Reservation> {
    let check = Check::new(policy, "hot").cost(cost);
    check.reservation(&store.decide(&[check]).await.unwrap())
}

/// Of a window all comes back; of a bucket no more than that.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_undone_comes_back_and_no_more_than_that() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = heat(&one, &policy, "hot").await;
        for _ in 0..20 {
            let undone = reserve(&one, &policy, 3).await.expect("there is enough");
            one.undo(&undone).await.unwrap();
        }
        one.release().await;
        let left = left(&two, &policy, "hot").await;
        match policy.rate() {
            None => assert_eq!(left, LIMIT - taken, "{policy}"),
            Some(_) => {
                assert!((LIMIT - taken - 60..=LIMIT - taken).contains(&left), "{policy}: {left}")
            }
        }
        taken += drain(&two, &policy, "hot", LIMIT).await;
        assert!(taken <= LIMIT, "{policy}: {taken}");
    }
}

/// What has drained while it was held is in use: it does not come back once more, be it leased or not.
#[tokio::test(flavor = "multi_thread")]
async fn what_has_drained_is_not_undone() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let policy = leased(algorithm, 100, Window::SECOND);
        heat(&store, &policy, "hot").await;
        sleep(300).await;
        let mut held = Vec::new();
        for _ in 0..40 {
            held.extend(reserve(&store, &policy, 1).await);
        }
        assert!(held.len() >= 20, "{policy}: {}", held.len());
        sleep(1500).await;
        // All of it is there again, and taken.
        let (begun, mut taken) = (Instant::now(), 0);
        while takes(&store, &policy, "hot", 1).await {
            taken += 1;
            if let Some(undone) = held.pop() {
                store.undo(&undone).await.unwrap();
            }
        }
        // Who was denied is denied for some milliseconds without a look.
        for _ in 0..60 {
            sleep(1).await;
            taken += u64::from(takes(&store, &policy, "hot", 1).await);
        }
        let bound = 101 + u64::try_from(begun.elapsed().as_millis()).unwrap() / 10;
        println!("{policy}: {taken} of {bound}");
        assert!(taken <= bound, "{policy}: {taken} of {bound}");
    }
}
