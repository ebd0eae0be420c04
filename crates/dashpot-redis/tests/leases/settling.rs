//! What was taken of a lease and then used otherwise.

use dashpot::{Check, Cost, Policy, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{LEASABLE, LONG, drain, heat, instances, left, takes, weekly};

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
