//! What a store keeps in Redis: nothing for ever, and nothing that is not its own.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Cost, Key, KeyOperation, Store, Timestamp, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;
use dashpot_testkit::redis::Reply;

use super::common::{
    PATIENT, Rig, ask, daily, denied, left, manage, millis, no_key_stays, policy, run, started,
    until,
};

/// Keys that look as if they were ours, and others.
const FOREIGN: [&str; 7] = [
    "foreign",
    "dashpot",
    "dashpots:{alice}:p:t",
    "other:{alice}:token-bucket:t",
    "x:dashpot:{alice}:p:t",
    "{alice}",
    "DASHPOT:{alice}:p:t",
];

fn put_foreign(server: &RedisServer) {
    for key in FOREIGN {
        assert!(server.command(&["SET", key, "mine"]).is_ok());
    }
    server.command(&["HSET", "a-hash", "a", "1"]);
    server.command(&["RPUSH", "a-list", "a", "b"]);
    server.command(&["SET", "a-guest", "soon gone", "EX", "1000"]);
}

/// All that is not ours, as it is.
fn foreign(server: &RedisServer) -> Vec<Reply> {
    let keys = FOREIGN.iter().chain(&["a-hash", "a-list", "a-guest"]);
    keys.map(|key| server.command(&["DUMP", key])).collect()
}

#[test]
fn what_others_keep_is_never_touched() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let store = &rig.store;
        put_foreign(&rig.server);
        let before = foreign(&rig.server);
        let policies = Algorithm::ALL.map(|algorithm| daily(algorithm, 10));
        for policy in policies {
            let check = Check::new(policy, "alice").cost(3);
            let decision = store.decide(&[check]).await.unwrap();
            let reservation = check.reservation(&decision).unwrap();
            store.settle(&reservation, Cost::ONE).await.unwrap();
            let until = decision.at().after(Duration::from_secs(60));
            for operation in [KeyOperation::Block(until), KeyOperation::Unblock, KeyOperation::Peek]
            {
                manage(store, policy, "alice", operation).await;
            }
            let checks = policies.map(|policy| Check::new(policy, "bob"));
            assert!(store.decide(&checks).await.unwrap().is_allowed());
        }
        let listed = store.list(None, 1000).await.unwrap();
        assert!(listed.iter().all(|kept| kept.key == b"alice" || kept.key == b"bob"), "{listed:?}");
        // After its permit came back nothing of alice's is left there.
        assert!((11..=12).contains(&listed.len()), "{listed:?}");
        no_key_stays(&rig.server);
        assert_eq!(store.reset_all(None, 1000).await.unwrap(), listed.len());
        for policy in policies {
            assert_eq!(left(store, policy, "alice").await, 10);
            assert_eq!(left(store, policy, "bob").await, 10);
        }
        assert_eq!(foreign(&rig.server), before);
        no_key_stays(&rig.server);
    });
}

#[test]
fn keys_are_gone_when_their_time_is_over() {
    run(async {
        let server = RedisServer::start();
        let lease = Duration::from_secs(1);
        let builder = RedisStore::builder(server.url()).deadline(PATIENT).permit_lease(lease);
        let store = started(builder).await;
        let window = Window::new(millis(300)).unwrap();
        for algorithm in Algorithm::ALL {
            let policy = policy(algorithm.name(), algorithm, 5, window);
            for _ in 0..8 {
                let _ = ask(&store, policy, "alice").await.unwrap();
            }
        }
        no_key_stays(&server);
        let own = |server: &RedisServer| {
            let keys = server.keys();
            keys.into_iter().filter(|key| key.starts_with(b"dashpot:{alice}")).count()
        };
        assert!(own(&server) >= 5, "{:?}", server.keys());
        // Permits are held as long as the store lives.
        let start = Instant::now();
        while own(&server) > 1 {
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", server.keys());
            tokio::time::sleep(millis(20)).await;
        }
        tokio::time::sleep(2 * lease).await;
        assert_eq!(own(&server), 1, "it lives: {:?}", server.keys());
        drop(store);
        let start = Instant::now();
        while own(&server) > 0 {
            assert!(start.elapsed() < Duration::from_secs(5), "{:?}", server.keys());
            tokio::time::sleep(millis(20)).await;
        }
    });
}

#[test]
fn a_block_of_a_key_that_was_never_seen_goes_when_it_ends() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        for algorithm in Algorithm::ALL {
            let policy = policy(algorithm.name(), algorithm, 5, Window::new(millis(300)).unwrap());
            let now = rig.store.manage(policy, Key::from("eve"), KeyOperation::Peek).await.unwrap();
            let until = now.at().after(millis(400));
            let block = KeyOperation::Block(until);
            manage(&rig.store, policy, "eve", block).await;
            denied(&rig.store, policy, "eve").await;
        }
        no_key_stays(&rig.server);
        let far = KeyOperation::Block(Timestamp::from_secs(u64::MAX / 2_000_000_000));
        manage(&rig.store, daily(Algorithm::FixedWindow, 5), "mallory", far).await;
        no_key_stays(&rig.server);
        let blocked = |server: &RedisServer| {
            server.keys().iter().any(|key| key.starts_with(b"dashpot:{eve}"))
        };
        until("blocks to end", Duration::from_secs(5), || !blocked(&rig.server)).await;
    });
}

#[test]
fn thousands_of_keys_all_have_an_end() {
    run(async {
        let rig = Rig::direct(PATIENT).await;
        let policies = Algorithm::ALL.map(|algorithm| daily(algorithm, 2));
        for number in 0..300 {
            let key = format!("client {number} {{}}:%\u{e9}");
            let checks = policies.map(|policy| Check::new(policy, key.as_str()));
            assert!(rig.store.decide(&checks).await.unwrap().is_allowed());
        }
        assert!(rig.server.keys().len() >= 1800);
        rig.is_clean();
        assert_eq!(rig.store.list(None, 10_000).await.unwrap().len(), 1800);
        assert_eq!(rig.store.list(Some("fixed-window"), 10_000).await.unwrap().len(), 300);
        assert_eq!(rig.store.list(None, 100).await.unwrap().len(), 100);
        assert_eq!(rig.store.reset_all(Some("fixed-window"), 10_000).await.unwrap(), 300);
        assert_eq!(rig.store.list(Some("fixed-window"), 10_000).await.unwrap().len(), 0);
        assert_eq!(rig.store.list(None, 10_000).await.unwrap().len(), 1500);
    });
}
