//! What a store tells of itself is what its callers see.

use std::time::{Duration, Instant};

use dashpot_redis::{RedisStore, ServerHealth};
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::common::{
    DEADLINE, Rig, allowed, ask, millis, plenty, run, started, told, until_answered,
};

fn of(store: &RedisStore) -> ServerHealth {
    let start = Instant::now();
    loop {
        let health = store.health();
        assert_eq!(health.servers.len(), 1);
        let server = health.servers[0].clone();
        assert_eq!(health.is_up(), server.is_up);
        // It may just be on its way up or down.
        if server.reason.is_none() == server.is_up {
            return server;
        }
        assert!(start.elapsed() < millis(500), "{server:?}");
    }
}

#[test]
fn a_store_that_is_well_says_so() {
    run(async {
        let rig = Rig::direct(Duration::from_secs(2)).await;
        for _ in 0..100 {
            allowed(&rig.store, plenty(), "alice").await;
        }
        let health = of(&rig.store);
        assert_eq!(health.address, rig.server.address());
        assert!(health.is_up);
        assert_eq!([health.late, health.failed, health.refused, health.outages], [0; 4]);
        assert_eq!(health.down_for, Duration::ZERO);
        assert_eq!(rig.store.health().instances.get(), 1);
        rig.is_clean();
    });
}

#[test]
fn calls_that_are_late_or_refused_are_counted_one_by_one() {
    run(async {
        let rig = Rig::proxied(DEADLINE).await;
        until_answered(&rig.store, millis(1000)).await;
        let before = of(&rig.store);
        rig.proxy.set(Fault::Drop);
        let (mut failures, mut waited) = (0, 0);
        while failures < 50 {
            let start = Instant::now();
            if ask(&rig.store, plenty(), "alice").await.is_err() {
                failures += 1;
                waited += u64::from(start.elapsed() >= DEADLINE);
            }
        }
        let since = Instant::now();
        let down = of(&rig.store);
        assert!(!down.is_up);
        assert_eq!(down.outages, before.outages + 1);
        let told =
            [down.late - before.late, down.failed - before.failed, down.refused - before.refused];
        // Once a second the store asks something for itself.
        assert!((50..=53).contains(&told.iter().sum::<u64>()), "{told:?}");
        assert!((1..=waited + 3).contains(&told[0]), "{told:?}, and {waited} waited");
        assert!(told[2] > 0, "{told:?}");

        tokio::time::sleep(millis(300)).await;
        let longer = of(&rig.store);
        let grown = longer.down_for - down.down_for;
        assert!(grown >= millis(300) && grown <= since.elapsed(), "{grown:?}");

        rig.proxy.set(Fault::None);
        until_answered(&rig.store, millis(1000)).await;
        let up = of(&rig.store);
        assert!(up.is_up && up.outages == longer.outages && up.down_for >= longer.down_for);
        tokio::time::sleep(millis(50)).await;
        assert_eq!(of(&rig.store).down_for, up.down_for, "it is up");
        rig.is_clean();
    });
}

#[test]
fn calls_whose_connection_breaks_are_counted_as_failed() {
    run(async {
        let rig = Rig::proxied(Duration::from_secs(2)).await;
        rig.proxy.set(Fault::Hang);
        let calls: Vec<_> = (0..20)
            .map(|_| {
                let store = rig.store.clone();
                tokio::spawn(async move { ask(&store, plenty(), "alice").await.is_err() })
            })
            .collect();
        tokio::time::sleep(millis(50)).await;
        rig.proxy.cut();
        for call in calls {
            assert!(call.await.unwrap(), "nobody can have answered");
        }
        let health = of(&rig.store);
        assert!((20..=23).contains(&(health.late + health.failed + health.refused)), "{health:?}");
        assert!(health.failed > 0 && health.outages == 1, "{health:?}");
    });
}

#[test]
fn neither_reasons_nor_errors_nor_addresses_give_a_password_away() {
    run(async {
        let server = RedisServer::with(&["--requirepass", "s3cr3t"]);
        let proxy = Proxy::to(&server.address());
        let url = format!("redis://:s3cr3t@{}", proxy.address());
        let builder = RedisStore::builder(url);
        let store = started(builder.clone()).await;
        for fault in [Fault::Refuse, Fault::Hang, Fault::Drop] {
            proxy.set(fault);
            let mut texts = vec![format!("{store:?}"), format!("{builder:?}")];
            for _ in 0..12 {
                if let Err(error) = ask(&store, plenty(), "alice").await {
                    texts.push(told(&error));
                }
                texts.push(format!("{:?}", store.health()));
                tokio::time::sleep(millis(20)).await;
            }
            assert!(!of(&store).is_up);
            let leak = texts.iter().find(|text| text.contains("s3cr3t"));
            assert!(leak.is_none(), "{leak:?}");
            proxy.set(Fault::None);
            until_answered(&store, millis(1000)).await;
        }
    });
}

#[test]
fn stores_that_share_a_server_know_of_each_other() {
    run(async {
        let rig = Rig::direct(Duration::from_secs(2)).await;
        let other = started(RedisStore::builder(rig.server.url())).await;
        assert_eq!(other.health().instances.get(), 2);
        let stranger = started(RedisStore::builder(rig.server.url()).prefix("other")).await;
        assert_eq!(stranger.health().instances.get(), 1);
        rig.server.command(&["PING"]);
    });
}
