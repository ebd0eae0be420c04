//! What is given back, and what comes back by itself.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Consistency, Quota, Window};
use dashpot_testkit::RedisServer;

use super::common::{
    LEASABLE, LONG, drain, heat, instance, left, millis, policy, sleep, takes, until, weekly,
};

const LIMIT: u64 = 1000;

#[tokio::test(flavor = "multi_thread")]
async fn what_is_released_is_there_for_others_at_once_to_the_unit() {
    let server = RedisServer::start();
    let (one, two) = (instance(&server, LONG).await, instance(&server, LONG).await);
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let taken = heat(&one, &policy, "hot").await;
        assert!(left(&two, &policy, "hot").await < LIMIT - taken, "{policy}: some are out");
        one.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT - taken, "{policy}");
        // All of it is there for one check, to the last.
        assert!(!takes(&two, &policy, "hot", LIMIT - taken + 1).await, "{policy}");
        assert!(takes(&two, &policy, "hot", LIMIT - taken).await, "{policy}");
        assert_eq!(drain(&one, &policy, "hot", 9).await, 0, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_has_released_goes_on_as_before() {
    let server = RedisServer::start();
    let (one, two) = (instance(&server, LONG).await, instance(&server, LONG).await);
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = 0;
        for _ in 0..5 {
            taken += heat(&one, &policy, "hot").await;
            taken += heat(&two, &policy, "hot").await;
            one.release().await;
            // Twice is as good as once.
            one.release().await;
            two.release().await;
            assert_eq!(left(&one, &policy, "hot").await, LIMIT - taken, "{policy}");
            assert_eq!(one.health().leased_keys + two.health().leased_keys, 0);
        }
        taken += drain(&one, &policy, "hot", LIMIT).await;
        assert_eq!(taken, LIMIT, "{policy}");
    }
}

/// The units are lost, and never granted twice; nobody has to do anything.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_dropped_store_held_is_lost_and_no_more_is_granted() {
    let server = RedisServer::start();
    for algorithm in [Algorithm::TokenBucket, Algorithm::FixedWindow] {
        let policy = weekly(algorithm, LIMIT);
        let one = instance(&server, millis(1600)).await;
        let mut taken = heat(&one, &policy, "hot").await;
        drop(one);
        let other = instance(&server, millis(1600)).await;
        let start = Instant::now();
        while start.elapsed() < millis(1800) {
            taken += drain(&other, &policy, "hot", LIMIT).await;
        }
        assert!(taken <= LIMIT, "{policy}: {taken}");
        // It held at most half.
        assert!(taken >= LIMIT / 2, "{policy}: {taken}");
    }
}

/// A bucket is as large as it was once the lease of who died has ended, and not before.
#[tokio::test(flavor = "multi_thread")]
async fn the_capacity_that_a_dropped_store_held_comes_back_when_its_lease_ends() {
    let server = RedisServer::start();
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        // It is full again within a tenth of a second.
        let quota = Quota::new(1000, Window::new(millis(100)).unwrap());
        let policy = policy(algorithm.name(), algorithm, quota, Consistency::Leased);
        let lease = millis(1600);
        let one = instance(&server, lease).await;
        let other = instance(&server, lease).await;
        let before = Instant::now();
        heat(&one, &policy, "hot").await;
        drop(one);
        sleep(150).await;
        let seen = left(&other, &policy, "hot").await;
        if before.elapsed() < lease {
            assert!(seen < 1000, "{policy}: {seen} while some are out");
        }
        until("all are back", async || left(&other, &policy, "hot").await == 1000).await;
        assert!(before.elapsed() >= lease * 9 / 10, "{policy}: after {:?}", before.elapsed());
        assert!(before.elapsed() < lease + Duration::from_secs(3), "{policy}");
        assert!(takes(&other, &policy, "hot", 1000).await, "{policy}");
    }
}
