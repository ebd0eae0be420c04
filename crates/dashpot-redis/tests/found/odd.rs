//! What nobody should ask, or answer.

use std::time::Duration;

use dashpot::{Algorithm, Check, Cost, Key, KeyOperation, Reservation, Store, Timestamp};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::{policy, ready, sleep, with};

#[test]
fn a_url_error_tells_no_password() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let urls = [
        "unix:///tmp/redis.sock?pass=s3cret",
        "redis+unix:///tmp/r.sock?pass=s3cret",
        "redis://ann:s3cret#@db.local",
        "redis://:s3cret/x@db.local:99999",
        "redis:ann:s3cret@h",
    ];
    for url in urls {
        if let Err(error) = RedisStore::builder(url).start() {
            assert!(!format!("{error} {error:?}").contains("s3cret"), "{url}: {error}");
        }
    }
}

#[test]
fn asking_outside_a_runtime_is_no_panic() {
    let server = RedisServer::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let store = {
        let _entered = runtime.enter();
        RedisStore::builder(server.url()).start().unwrap()
    };
    runtime.block_on(ready(&store));
    let api = policy("api", "10/s");
    let _ = dashpot_testkit::block_on(store.decide(&[Check::new(&api, "alice")]));
}

#[tokio::test]
async fn a_deadline_without_end_is_no_panic() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url()).deadline(Duration::MAX).start().unwrap();
    ready(&store).await;
    let api = policy("api", "10/s");
    let _ = store.decide(&[Check::new(&api, "alice")]).await;
}

/// Two keys that were charged at one moment are kept in the same words. Asked about in one call, one under the definition
/// they were charged under and one under another, the second was not carried over.
#[tokio::test(flavor = "multi_thread")]
async fn keys_that_stand_alike_are_told_apart_by_their_rates() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(5)).start().unwrap();
    ready(&store).await;
    let (new, old) = (policy("api", "9/10min"), policy("api", "3/10min"));

    let both = [Check::new(&new, "alice"), Check::new(&new, "bob")];
    assert!(store.decide(&both).await.unwrap().is_allowed());
    let both = [Check::new(&new, "alice"), Check::new(&old, "bob")];
    assert!(store.decide(&both).await.unwrap().is_allowed());

    let bob = store.manage(&old, Key::from("bob"), KeyOperation::Peek).await.unwrap();
    let wait = bob.statuses()[0].reset_after();
    // Two units of 200 s, and not one of 66⅔ s and one of 200 s.
    assert!(wait > Duration::from_secs(380) && wait <= Duration::from_secs(400), "{wait:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_foreign_value_does_not_stop_the_server() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url()).start().unwrap();
    ready(&store).await;
    let api = policy("api", "10/min");
    server.command(&["SET", "dashpot:{alice}:api:t60000000", "9000000000000000 5 1:0"]);
    let _ = store.decide(&[Check::new(&api, "alice")]).await;
    sleep(500).await;
    let alive = server.try_command(&["PING"]);
    assert!(alive.is_ok(), "{alive:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn foreign_values_are_errors_and_no_panics() {
    let server = RedisServer::start();
    let store = RedisStore::builder(server.url())
        .deadline(Duration::from_secs(1))
        .denial_memory(Duration::ZERO)
        .start()
        .unwrap();
    ready(&store).await;
    let policies = [
        (policy("p", "10/min"), "t60000000"),
        (with("p", "10/min", Algorithm::FixedWindow), "f60000000"),
        (with("p", "10/min", Algorithm::SlidingWindow), "s60000000"),
    ];
    let values = [
        "",
        " ",
        "!",
        "!!",
        "x",
        "0000000000000000",
        "9999999999999999 18446744073709551615 18446744073709551615:1",
        "0000000000000001 0 0:0",
        "0000000000000001 0 18446744073709551615:18446744073709551615",
        "9999999999999999999999999999999918446744073709551615",
        "999999999999999918446744073709551615 18446744073709551615",
        "000000000000000018446744073709551615 18446744073709551615",
        "!9999999999999999!",
        "!9999999999999999!x",
        "+000000000000001 +0 +1:+1",
        "0000000000000000000000000000000000-5",
    ];
    let mut panics = Vec::new();
    for (policy, tail) in &policies {
        for value in values {
            server.command(&["SET", &format!("dashpot:{{a}}:p:{tail}"), value]);
            let store = store.clone();
            let policy = policy.clone();
            let asked = tokio::spawn(async move {
                let check = Check::new(&policy, "a");
                for cost in [0, 1, 10, 11] {
                    let _ = store.decide(&[check.cost(cost)]).await;
                }
                let old = Reservation::new(
                    policy.clone(),
                    Key::from("a"),
                    Cost::new(5),
                    Timestamp::EPOCH,
                );
                let _ = store.settle(&old, Cost::new(1)).await;
                let _ = store.settle(&old, Cost::new(u64::MAX)).await;
                for wish in [
                    KeyOperation::Block(Timestamp::MAX),
                    KeyOperation::Unblock,
                    KeyOperation::Reset,
                ] {
                    let _ = store.manage(&policy, Key::from("a"), wish).await;
                }
            });
            if asked.await.is_err() {
                panics.push(format!("{tail} {value}"));
            }
        }
    }
    let (log, n) = (with("p", "10/min", Algorithm::SlidingLog), policy("p", "10 concurrent"));
    let sets: [&[&str]; 6] = [
        &["1e19", "0000000000000001"],
        &["5", "9999999999999999", "6", "0000000000000001"],
        &["inf", "0000000000000001"],
        &["-inf", "-", "3", "0000000000000001"],
        &["-1e19", "-", "1e18", "9999999999999999"],
        &["-1e300", "n", "-1e300", "!"],
    ];
    for (policy, tail) in [(log, "l60000000"), (n, "n")] {
        for set in sets {
            let name = format!("dashpot:{{a}}:p:{tail}");
            server.command(&["DEL", &name]);
            let mut command = vec!["ZADD", &name];
            command.extend(set);
            server.command(&command);
            let (store, policy) = (store.clone(), policy.clone());
            let asked = tokio::spawn(async move {
                let check = Check::new(&policy, "a");
                for cost in [0, 1, 10, 11] {
                    let _ = store.decide(&[check.cost(cost)]).await;
                }
                let old = Reservation::new(
                    policy.clone(),
                    Key::from("a"),
                    Cost::new(5),
                    Timestamp::EPOCH,
                );
                let _ = store.settle(&old, Cost::new(u64::MAX)).await;
            });
            if asked.await.is_err() {
                panics.push(format!("{tail} {set:?}"));
            }
        }
    }
    assert!(panics.is_empty(), "{panics:#?}");
}
