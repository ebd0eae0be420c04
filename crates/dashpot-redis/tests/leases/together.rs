//! One request under several rules, which differ in how they are kept: all is taken, or nothing.

use dashpot::{Algorithm, Check, Consistency, Cost, Policy, Quota, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{LEASABLE, LONG, heat, instance, left, policy, sleep, takes, until, weekly};

const PLENTY: u64 = 1000;

fn of(consistency: Consistency, algorithm: Algorithm, count: u64) -> Policy {
    let quota = Quota::new(count, Window::WEEK);
    policy(&format!("{consistency}-{algorithm}"), algorithm, quota, consistency)
}

/// Many ask at once; says how many passed.
async fn ask(store: &RedisStore, policies: &[Policy], times: u64) -> u64 {
    let tasks: Vec<_> = (0..4)
        .map(|_| {
            let (store, policies) = (store.clone(), policies.to_vec());
            tokio::spawn(async move {
                let checks: Vec<_> =
                    policies.iter().map(|policy| Check::new(policy, "hot")).collect();
                let mut passed = 0;
                for _ in 0..times / 4 {
                    passed += u64::from(store.decide(&checks).await.unwrap().is_allowed());
                    tokio::task::yield_now().await;
                }
                passed
            })
        })
        .collect();
    let mut passed = 0;
    for task in tasks {
        passed += task.await.unwrap();
    }
    passed
}

/// Of three policies of each consistency, one has little: as much passes, and no other pays for what did not.
async fn one_denies(scarce: Consistency) {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let count = |consistency| if consistency == scarce { 60 } else { PLENTY };
        let all = Consistency::ALL.map(|one| of(one, algorithm, count(one)));
        let heated = heat(&store, &all[1], "hot").await;
        let mut passed = ask(&store, &all, 200).await;
        store.release().await;
        // And one by one, until there is nothing left.
        let mut denied = 0;
        while denied < 30 {
            let one = ask(&store, &all, 4).await;
            denied = if one == 0 { denied + 1 } else { 0 };
            passed += one;
            sleep(2).await;
        }
        store.release().await;
        let expected = if scarce == Consistency::Leased { 60 - heated } else { 60 };
        // What is counted here may not have been told when Redis is asked about the others.
        let most = expected + u64::from(scarce == Consistency::Approximate);
        assert!((expected..=most).contains(&passed), "{algorithm}, scarce {scarce}: {passed}");
        for (policy, consistency) in all.iter().zip(Consistency::ALL) {
            let before = if consistency == Consistency::Leased { heated } else { 0 };
            let expected = (count(consistency) - before).saturating_sub(passed);
            assert_eq!(left(&store, policy, "hot").await, expected, "{policy}, scarce {scarce}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pays_when_the_exact_one_denies() {
    one_denies(Consistency::Exact).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pays_when_the_leased_one_denies() {
    one_denies(Consistency::Leased).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_pays_when_the_approximate_one_denies() {
    one_denies(Consistency::Approximate).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_twice_in_one_request_costs_both() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 400);
        let heated = heat(&store, &policy, "hot").await;
        let twice = [Check::new(&policy, "hot").cost(2), Check::new(&policy, "hot").cost(3)];
        let (mut passed, mut denied) = (0, 0);
        while denied < 30 {
            let decision = store.decide(&twice).await.unwrap();
            assert_eq!(decision.statuses()[0].remaining(), decision.statuses()[1].remaining());
            if decision.is_allowed() {
                (passed, denied) = (passed + 1, 0);
            } else {
                denied += 1;
                sleep(2).await;
            }
        }
        store.release().await;
        assert_eq!(passed, (400 - heated) / 5, "{policy}");
        assert_eq!(left(&store, &policy, "hot").await, (400 - heated) % 5, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peek_takes_nothing_and_is_always_allowed() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 100);
        let heated = heat(&store, &policy, "hot").await;
        for _ in 0..300 {
            let peek = store.decide(&[Check::new(&policy, "hot").cost(0)]).await.unwrap();
            assert!(peek.is_allowed(), "{policy}");
            assert!(peek.statuses()[0].remaining() <= 100 - heated, "{peek:?}");
            let other = Check::new(&policy, "hot").cost(Cost::PEEK.units());
            assert!(store.decide(&[other, other]).await.unwrap().is_allowed(), "{policy}");
        }
        store.release().await;
        assert_eq!(left(&store, &policy, "hot").await, 100 - heated, "{policy}");
        assert!(takes(&store, &policy, "hot", 100 - heated).await, "{policy}");
        let peek = store.decide(&[Check::new(&policy, "hot").cost(0)]).await.unwrap();
        assert!(peek.is_allowed() && peek.statuses()[0].remaining() == 0, "{peek:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn any_cost_is_counted_to_the_unit() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 5000);
        let mut taken = heat(&store, &policy, "hot").await;
        for cost in [1, 7, 40, 3, 100, 2].repeat(20) {
            taken += if takes(&store, &policy, "hot", cost).await { cost } else { 0 };
        }
        // More than can be out, and all there is: what this one holds is part of it.
        let most = 5000 - taken - 10;
        until("it is granted", async || takes(&store, &policy, "hot", most).await).await;
        assert!(!takes(&store, &policy, "hot", 11).await, "{policy}");
        until("it is granted", async || takes(&store, &policy, "hot", 10).await).await;
        store.release().await;
        assert_eq!(left(&store, &policy, "hot").await, 0, "{policy}");
    }
}

/// Who is told that so much remains may take it, if nobody else asks.
#[tokio::test(flavor = "multi_thread")]
async fn what_remains_can_be_taken_whatever_is_under_way() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        for round in 0..5 {
            let (policy, key) = (weekly(algorithm, 5000), format!("round-{round}"));
            let mut taken = heat(&store, &policy, &key).await;
            for cost in [1, 7, 40, 3, 100, 2].repeat(20) {
                taken += if takes(&store, &policy, &key, cost).await { cost } else { 0 };
            }
            let rest = Check::new(&policy, &key).cost(5000 - taken);
            let decision = store.decide(&[rest]).await.unwrap();
            assert!(decision.is_allowed(), "{} of it: {decision:?}", 5000 - taken);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_more_than_the_limit_is_never_granted_and_takes_nothing() {
    let server = RedisServer::start();
    let store = instance(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 300);
        let taken = heat(&store, &policy, "hot").await;
        for cost in [301, u64::MAX].repeat(10) {
            let denial = store.decide(&[Check::new(&policy, "hot").cost(cost)]).await.unwrap();
            assert!(!denial.is_allowed() && denial.is_never(), "{policy}: {denial:?}");
            let twice = Check::new(&policy, "hot").cost(cost - 1);
            let denial = store.decide(&[twice, Check::new(&policy, "hot").cost(2)]).await.unwrap();
            assert!(!denial.is_allowed() && denial.is_never(), "{policy}: {denial:?}");
        }
        store.release().await;
        assert_eq!(left(&store, &policy, "hot").await, 300 - taken, "{policy}");
    }
}
