//! Where a store lives: databases, prefixes, and places that are none.

use dashpot::{Algorithm, KeyOperation};
use dashpot_redis::{RedisStore, UrlError};
use dashpot_testkit::RedisServer;

use super::common::{
    PATIENT, allowed, ask, daily, denied, left, manage, millis, no_key_stays, plenty, run, started,
    until_answered,
};

/// How many keys a database has.
fn size(server: &RedisServer, database: &str) -> i64 {
    let mut connection = server.connect().unwrap();
    connection.command(&["SELECT", database]).unwrap();
    connection.command(&["DBSIZE"]).unwrap().int()
}

#[test]
fn a_database_in_the_url_is_the_only_one_used() {
    run(async {
        let server = RedisServer::start();
        let url = format!("{}/3", server.url());
        let third = started(RedisStore::builder(url).deadline(PATIENT)).await;
        let policy = daily(Algorithm::FixedWindow, 2);
        for allowed in [true, true, false] {
            assert_eq!(ask(&third, policy, "alice").await.unwrap().is_allowed(), allowed);
        }
        assert_eq!(third.list(None, 10).await.unwrap().len(), 1);
        assert!(size(&server, "3") > 0);
        for database in ["0", "1", "2", "4", "15"] {
            assert_eq!(size(&server, database), 0, "database {database}");
        }
        let zeroth = started(RedisStore::builder(server.url()).deadline(PATIENT)).await;
        assert_eq!(left(&zeroth, policy, "alice").await, 2);
        assert_eq!(zeroth.list(None, 10).await.unwrap(), []);
        // Still so when it has to connect anew.
        server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        until_answered(&third, PATIENT).await;
        assert_eq!(left(&third, policy, "alice").await, 0);
    });
}

#[test]
fn stores_with_different_prefixes_share_nothing() {
    run(async {
        let server = RedisServer::start();
        let policy = daily(Algorithm::TokenBucket, 2);
        // Each could be taken for part of another, or for a pattern.
        let prefixes =
            ["dashpot", "dash", "dashpot:a", "d*", "d?shpot", "[d]ashpot", "\\dashpot", "a-b"];
        let mut stores = Vec::new();
        for prefix in prefixes {
            let builder = RedisStore::builder(server.url()).deadline(PATIENT).prefix(prefix);
            stores.push(started(builder).await);
        }
        for store in &stores {
            for allowed in [true, true, false] {
                assert_eq!(ask(store, policy, "alice").await.unwrap().is_allowed(), allowed);
            }
        }
        for store in &stores {
            assert_eq!(store.list(None, 100).await.unwrap().len(), 1);
            assert_eq!(store.health().instances.get(), 1);
        }
        for (store, prefix) in stores.iter().zip(prefixes) {
            assert_eq!(left(store, policy, "alice").await, 0, "{prefix}");
            assert_eq!(store.reset_all(None, 100).await.unwrap(), 1);
            manage(store, policy, "alice", KeyOperation::Reset).await;
            assert_eq!(left(store, policy, "alice").await, 2);
        }
        assert_eq!(server.keys_without_ttl(), Vec::<Vec<u8>>::new());
    });
}

#[test]
fn two_stores_of_one_prefix_share_everything() {
    run(async {
        let server = RedisServer::start();
        let policy = daily(Algorithm::SlidingLog, 2);
        let one = started(RedisStore::builder(server.url()).deadline(PATIENT)).await;
        let two = started(RedisStore::builder(server.url()).deadline(PATIENT)).await;
        allowed(&one, policy, "alice").await;
        allowed(&two, policy, "alice").await;
        denied(&one, policy, "alice").await;
        no_key_stays(&server);
    });
}

#[test]
fn urls_that_are_none_are_errors_that_name_them() {
    run(async {
        let bad = [
            ("http://x", "http://x"),
            ("localhost:6379", "localhost:6379"),
            ("", ""),
            ("redis://", "redis://"),
            ("redis://localhost:port", "localhost:port"),
            ("redis://localhost:99999", "localhost:99999"),
            ("redis://localhost/three", "localhost/three"),
            ("redis-sentinel://localhost", "localhost"),
            ("redis-cluster://", "redis-cluster://"),
        ];
        for (url, named) in bad {
            let Err(error) = RedisStore::builder(url).start() else {
                panic!("{url} is taken for a URL");
            };
            assert!(error.to_string().contains(named), "{url}: {error}");
        }
        let secret = RedisStore::builder("redis://ann:s3cr3t@localhost:port").start().unwrap_err();
        assert!(!format!("{secret} {secret:?}").contains("s3cr3t"), "{secret}");
        let none = RedisStore::builder_on(Vec::<String>::new()).start().unwrap_err();
        assert!(matches!(none, UrlError::None), "{none}");
        RedisStore::connect("http://x").await.unwrap_err();
    });
}

#[test]
fn prefixes_that_cannot_be_are_errors() {
    run(async {
        let long = "x".repeat(65);
        for prefix in ["", "a{b", "a}b", "a b", "\u{e9}", "a\n", &long] {
            let builder = RedisStore::builder("redis://localhost").prefix(prefix);
            let error = builder.start().unwrap_err();
            assert!(matches!(error, UrlError::Prefix), "{prefix:?}: {error}");
            assert!(error.to_string().contains("prefix"), "{error}");
        }
    });
}

#[test]
fn without_a_runtime_it_is_an_error() {
    let error = RedisStore::builder("redis://localhost").start().unwrap_err();
    assert!(matches!(error, UrlError::Runtime), "{error}");
    assert!(error.to_string().contains("tokio"), "{error}");
}

#[test]
fn a_host_that_does_not_exist_is_down_and_no_more() {
    run(async {
        let store = RedisStore::builder("redis://no-such-host.invalid:6379").start().unwrap();
        store.ready(millis(500)).await.unwrap_err();
        ask(&store, plenty(), "alice").await.unwrap_err();
        assert_eq!(store.health().servers[0].address, "no-such-host.invalid:6379");
    });
}
