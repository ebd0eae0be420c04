//! What operators do to keys of which units are out.

use std::time::{Duration, Instant};

use dashpot::{KeyOperation, Policy};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::bound::now;
use super::common::{
    LEASABLE, LONG, drain, heat, instances, left, manage, sleep, takes, until, weekly,
};

const LIMIT: u64 = 1000;
const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test(flavor = "multi_thread")]
async fn who_resets_a_key_begins_anew_and_nothing_comes_on_top() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        heat(&one, &policy, "hot").await;
        assert_eq!(manage(&one, &policy, "hot", KeyOperation::Reset).await, LIMIT, "{policy}");
        one.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT, "{policy}: nothing is out");
        let taken = drain(&one, &policy, "hot", LIMIT).await;
        assert_eq!(taken, LIMIT, "{policy}");
        assert!(!takes(&two, &policy, "hot", 1).await, "{policy}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_hold_of_a_key_that_was_reset_does_not_come_back() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        heat(&one, &policy, "hot").await;
        assert_eq!(manage(&two, &policy, "hot", KeyOperation::Reset).await, LIMIT, "{policy}");
        assert!(takes(&two, &policy, "hot", 200).await, "{policy}");
        one.release().await;
        assert_eq!(left(&two, &policy, "hot").await, LIMIT - 200, "{policy}");
    }
}

/// Those who hold units may spend them, and not more.
#[tokio::test(flavor = "multi_thread")]
async fn a_reset_by_one_grants_the_limit_and_what_others_hold() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let taken = heat(&one, &policy, "hot").await;
        let out = LIMIT - taken - left(&one, &policy, "hot").await;
        assert_eq!(manage(&two, &policy, "hot", KeyOperation::Reset).await, LIMIT, "{policy}");
        let most = LIMIT + out;
        let by_two = drain(&two, &policy, "hot", most).await;
        let by_one = drain(&one, &policy, "hot", most).await;
        eprintln!("{policy}: {by_one} and {by_two}, {out} were out");
        assert!(by_one + by_two <= most, "{policy}: {by_one} and {by_two} of {most}");
        assert!(by_one + by_two >= LIMIT * 9 / 10, "{policy}: {by_one} and {by_two}");
    }
}

/// How long units are still granted.
async fn until_denied(store: &RedisStore, policy: &Policy) -> Duration {
    let start = Instant::now();
    while takes(store, policy, "hot", 1).await {
        sleep(1).await;
    }
    start.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_block_is_obeyed_at_once_by_who_set_it_and_soon_by_others() {
    let server = RedisServer::start();
    let lease = Duration::from_secs(4);
    let [one, two] = instances(&server, lease).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, 1_000_000);
        heat(&one, &policy, "hot").await;
        heat(&two, &policy, "hot").await;
        manage(&one, &policy, "hot", KeyOperation::Block(now().after(HOUR))).await;
        for _ in 0..20 {
            assert!(!takes(&one, &policy, "hot", 1).await, "{policy} is blocked");
        }
        let obeyed = until_denied(&two, &policy).await;
        eprintln!("{policy}: others obey after {obeyed:?}");
        // Half of that, on a machine that has time.
        assert!(obeyed < lease, "{policy}: {obeyed:?}");
        for store in [&one, &two] {
            assert!(!takes(store, &policy, "hot", 1).await, "{policy} stays blocked");
        }
        manage(&two, &policy, "hot", KeyOperation::Unblock).await;
        assert!(takes(&two, &policy, "hot", 1).await, "{policy}");
        until("it is open", async || takes(&one, &policy, "hot", 1).await).await;
    }
}

/// What was counted stays, and what was out is not granted on top.
#[tokio::test(flavor = "multi_thread")]
async fn a_block_gives_nothing_away() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    for algorithm in LEASABLE {
        let policy = weekly(algorithm, LIMIT);
        let mut taken = heat(&one, &policy, "hot").await + heat(&two, &policy, "hot").await;
        manage(&one, &policy, "hot", KeyOperation::Block(now().after(HOUR))).await;
        assert!(!takes(&one, &policy, "hot", 1).await, "{policy} is blocked");
        manage(&one, &policy, "hot", KeyOperation::Unblock).await;
        for store in [&one, &two, &one, &two] {
            taken += drain(store, &policy, "hot", LIMIT).await;
            store.release().await;
        }
        eprintln!("{policy}: {taken}");
        assert!(taken <= LIMIT, "{policy}: {taken}");
        assert!(taken >= LIMIT / 2, "{policy}: {taken}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_can_be_reset_while_units_are_out() {
    let server = RedisServer::start();
    let [one, two] = instances(&server, LONG).await;
    let policies = LEASABLE.map(|algorithm| weekly(algorithm, LIMIT));
    for policy in &policies {
        heat(&one, policy, "hot").await;
    }
    one.reset_all(None, 1000).await.unwrap();
    two.release().await;
    for policy in &policies {
        let taken = drain(&two, policy, "hot", 2 * LIMIT).await;
        let taken = taken + drain(&one, policy, "hot", 2 * LIMIT).await;
        // What one still held may be spent: at most half of the limit.
        assert!((LIMIT..=LIMIT * 3 / 2).contains(&taken), "{policy}: {taken}");
    }
}
