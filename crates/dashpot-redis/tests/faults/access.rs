//! Passwords and permissions: who may not in is told why, and nothing gives the password away.

use std::time::Instant;

use dashpot::{Algorithm, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::common::{
    GENEROUS, PATIENT, allowed, ask, complaint, daily, left, millis, no_key_stays, plenty, policy,
    run, started, told, until, until_answered,
};

const SECRET: &str = "s3cr3t";

fn locked() -> RedisServer {
    RedisServer::with(&["--requirepass", SECRET])
}

/// As `who` ("user:password@"), with time enough.
fn store_as(server: &RedisServer, who: &str) -> RedisStore {
    let url = format!("redis://{who}{}", server.address());
    RedisStore::builder(url).deadline(PATIENT).start().unwrap()
}

/// All it says while it cannot get in, for this reason.
async fn complaints(store: &RedisStore, reason: &str) -> String {
    let said = complaint(store, &[reason]).await;
    let start = Instant::now();
    ask(store, plenty(), "alice").await.unwrap_err();
    assert!(start.elapsed() < GENEROUS, "it is known to be down: {:?}", start.elapsed());
    let health = store.health();
    assert!(!health.is_up());
    format!("{said} / {health:?} / {store:?}")
}

#[test]
fn without_a_password_it_is_told_that_one_is_needed() {
    run(async {
        let server = locked();
        let said = complaints(&store_as(&server, ""), "NOAUTH").await;
        assert!(!said.contains(SECRET), "{said}");
    });
}

#[test]
fn with_a_wrong_password_it_is_told_so_without_the_password() {
    run(async {
        let server = locked();
        for who in [":wr0ng@", "default:wr0ng@", "ann:wr0ng@"] {
            let said = complaints(&store_as(&server, who), "assword").await;
            assert!(!said.contains("wr0ng") && !said.contains(SECRET), "{said}");
        }
    });
}

#[test]
fn with_the_right_password_it_works() {
    run(async {
        let server = locked();
        let url = format!("redis://:{SECRET}@{}", server.address());
        let store = RedisStore::connect(url).await.unwrap();
        assert!(!format!("{store:?} {:?}", store.health()).contains(SECRET));
        until_answered(&store, millis(1000)).await;
        no_key_stays(&server);
    });
}

#[test]
fn a_user_with_the_keys_of_the_prefix_is_enough() {
    run(async {
        let server = RedisServer::start();
        let rule = ["ACL", "SETUSER", "ann", "on", ">pw", "~dashpot:*", "+@all"];
        assert!(server.command(&rule).is_ok());
        let store = store_as(&server, "ann:pw@");
        store.ready(PATIENT).await.unwrap();
        for algorithm in Algorithm::ALL {
            let policy = policy(algorithm.name(), algorithm, 3, Window::HOUR);
            for allowed in [true, true, true, false] {
                assert_eq!(ask(&store, policy, "alice").await.unwrap().is_allowed(), allowed);
            }
        }
        assert_eq!(store.list(None, 100).await.unwrap().len(), 6);
        assert_eq!(store.reset_all(None, 100).await.unwrap(), 6);
        assert_eq!(store.health().instances.get(), 1);
        no_key_stays(&server);
    });
}

#[test]
fn what_a_user_may_not_is_an_error_and_no_allowance() {
    run(async {
        let server = RedisServer::start();
        // Scripts, writes, the clock, or all keys but others'.
        let rules = [
            ["~dashpot:*", "+@all", "-@scripting"],
            ["~dashpot:*", "+@all", "-@write"],
            ["~dashpot:*", "+@all", "-time"],
            ["~dashpot:*", "-@all", "+ping"],
            ["~other:*", "+@all", "+ping"],
        ];
        for (rules, number) in rules.iter().zip(0..) {
            let user = format!("user-{number}");
            let rule = [&["ACL", "SETUSER", &user, "on", ">pw"], rules.as_slice()].concat();
            assert!(server.command(&rule).is_ok());
            let store = store_as(&server, &format!("{user}:pw@"));
            let said = complaint(&store, &["permission", "can't run this"]).await;
            assert!(!said.contains("pw"), "{said}");
            for _ in 0..20 {
                ask(&store, plenty(), "alice").await.unwrap_err();
            }
        }
        assert_eq!(server.keys(), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn a_password_that_changes_under_way_is_an_outage_until_it_changes_back() {
    run(async {
        let server = locked();
        let mut operator = server.connect().unwrap();
        let url = format!("redis://:{SECRET}@{}", server.address());
        let store = started(RedisStore::builder(url)).await;
        let policy = daily(Algorithm::FixedWindow, 10);
        allowed(&store, policy, "alice").await;

        assert!(operator.command(&["CONFIG", "SET", "requirepass", "0ther"]).unwrap().is_ok());
        operator.command(&["CLIENT", "KILL", "TYPE", "normal"]).unwrap();
        until("it is noticed", PATIENT, || !store.health().is_up()).await;
        for _ in 0..20 {
            let said = told(&ask(&store, policy, "alice").await.unwrap_err());
            assert!(!said.contains(SECRET) && !said.contains("0ther"), "{said}");
            tokio::time::sleep(millis(20)).await;
        }
        assert!(!store.health().is_up());

        assert!(operator.command(&["CONFIG", "SET", "requirepass", SECRET]).unwrap().is_ok());
        println!("recovers after {:?}", until_answered(&store, millis(1000)).await);
        assert_eq!(left(&store, policy, "alice").await, 9);
        no_key_stays(&server);
    });
}
