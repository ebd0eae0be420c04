//! A store that is dropped is gone, with all it had running.

use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, RedisServer};

use super::common::{
    DEADLINE, PATIENT, Rig, allowed, ask, millis, plenty, run, started, until, until_answered,
};

/// How many there are but the one who asks.
fn clients(server: &RedisServer) -> usize {
    server.command(&["CLIENT", "LIST"]).text().lines().count() - 1
}

#[test]
fn connections_go_with_the_last_clone() {
    run(async {
        let server = RedisServer::start();
        assert_eq!(clients(&server), 0);
        let stores = [
            started(RedisStore::builder(server.url()).deadline(PATIENT)).await,
            started(RedisStore::builder(server.url()).deadline(PATIENT)).await,
        ];
        assert!(clients(&server) >= 2);
        let clones = stores.clone();
        drop(stores);
        tokio::time::sleep(millis(300)).await;
        assert!(clients(&server) >= 2);
        for store in &clones {
            allowed(store, plenty(), "alice").await;
        }
        drop(clones);
        let took = until("connections to go", millis(1000), || clients(&server) == 0).await;
        println!("gone after {took:?}");
    });
}

#[test]
fn a_store_that_is_down_stops_trying_when_it_is_dropped() {
    run(async {
        let rig = Rig::proxied(DEADLINE).await;
        rig.proxy.set(Fault::Refuse);
        let _ = ask(&rig.store, plenty(), "alice").await;
        until("it is noticed", PATIENT, || !rig.store.health().is_up()).await;
        let Rig { store, proxy, server } = rig;
        drop(store);
        tokio::time::sleep(millis(400)).await;
        let before = proxy.connections();
        tokio::time::sleep(millis(700)).await;
        assert_eq!(proxy.connections(), before);
        drop(server);
    });
}

#[test]
fn a_call_under_way_is_given_up_with_its_caller() {
    run(async {
        let rig = Rig::proxied(PATIENT).await;
        rig.proxy.set(Fault::Hang);
        let store = rig.store.clone();
        let call = tokio::spawn(async move { ask(&store, plenty(), "alice").await.is_ok() });
        tokio::time::sleep(millis(50)).await;
        call.abort();
        assert!(call.await.unwrap_err().is_cancelled());
        rig.proxy.set(Fault::None);
        until_answered(&rig.store, millis(1000)).await;
        let Rig { store, proxy, server } = rig;
        drop(store);
        until("connections to go", millis(1000), || clients(&server) == 0).await;
        drop(proxy);
    });
}

#[test]
fn a_runtime_that_ends_before_the_store_does_no_harm() {
    let server = RedisServer::start();
    let store = run(async { started(RedisStore::builder(server.url())).await });
    let again = run(async { tokio::time::timeout(PATIENT, ask(&store, plenty(), "alice")).await });
    assert!(again.is_ok(), "it hangs");
    drop(store);
    run(async { until("connections to go", PATIENT, || clients(&server) == 0).await });
}
