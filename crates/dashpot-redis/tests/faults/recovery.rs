//! A store finds back by itself, and asks no more often than it must whether it can.

use std::time::Duration;

use dashpot::{Algorithm, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::common::{
    DEADLINE, PATIENT, Rig, allowed, ask, millis, plenty, policy, run, until_answered,
};
use super::load::{Load, Pattern};

const CALLERS: Pattern = Pattern { callers: 64, pause: millis(20), is_shared: false };

/// Connections are tried a few times a second, whether many callers wait for that or none. Never more
/// often; and if less, the machine may have stalled, but not three times in a row.
fn probes(fault: Fault) {
    let tries = (0..3).map(|_| {
        run(async {
            let [crowded, quiet] = [CALLERS.callers, 0].map(|callers| {
                tokio::spawn(async move {
                    let rig = Rig::proxied(DEADLINE).await;
                    probes_of(&rig, fault, Pattern { callers, ..CALLERS }).await
                })
            });
            let tried = [crowded.await.unwrap(), quiet.await.unwrap()];
            println!("{fault:?}: {tried:?} connections in 1.5 s");
            assert!(tried.iter().all(|&tried| tried <= 12), "{tried:?} connections in 1.5 s");
            tried
        })
    });
    let mut enough = tries.map(|tried| tried.iter().all(|&tried| tried >= 3));
    assert!(enough.any(|enough| enough), "three times in a row");
}

async fn probes_of(rig: &Rig, fault: Fault, pattern: Pattern) -> usize {
    let load = Load::start(&rig.store, &[plenty()], pattern);
    rig.proxy.set(fault);
    while rig.store.health().is_up() {
        let _ = ask(&rig.store, plenty(), "caller").await;
    }
    let before = rig.proxy.connections();
    tokio::time::sleep(millis(1500)).await;
    let tried = rig.proxy.connections() - before;
    rig.proxy.set(Fault::None);
    println!("recovers after {:?}", until_answered(&rig.store, millis(1000)).await);
    load.stop().await;
    rig.is_clean();
    tried
}

#[test]
fn refused_connections_are_tried_a_few_times_a_second() {
    probes(Fault::Refuse);
}

#[test]
fn connections_that_hang_are_tried_a_few_times_a_second() {
    probes(Fault::Hang);
}

#[test]
fn connections_that_swallow_everything_are_tried_a_few_times_a_second() {
    probes(Fault::Drop);
}

#[test]
fn a_server_that_was_never_there_is_found_when_it_comes() {
    run(async {
        let server = RedisServer::start();
        server.kill();
        let store = RedisStore::builder(server.url()).start().unwrap();
        assert!(store.ready(millis(300)).await.is_err());
        ask(&store, plenty(), "alice").await.unwrap_err();
        server.restart();
        println!("is found after {:?}", until_answered(&store, millis(1000)).await);
        assert!(store.health().is_up());
    });
}

#[test]
fn it_finds_back_again_and_again() {
    let took = |_| {
        run(async {
            let rig = Rig::proxied(DEADLINE).await;
            let load = Load::start(&rig.store, &[plenty()], CALLERS);
            let mut longest = Duration::ZERO;
            for fault in [Fault::Refuse, Fault::Hang, Fault::Drop, Fault::Delay(millis(200))] {
                rig.proxy.set(fault);
                tokio::time::sleep(millis(150)).await;
                rig.proxy.set(Fault::None);
                let recovery = until_answered(&rig.store, millis(5000)).await;
                println!("{fault:?}: {recovery:?}");
                longest = longest.max(recovery);
            }
            load.stop().await;
            rig.is_clean();
            longest
        })
    };
    // A machine that stalls is given two more tries.
    assert!((0..3).map(took).any(|took| took <= millis(1000)), "three times in a row");
}

#[test]
fn a_server_that_is_gone_with_nobody_asking_is_found_back_with_nobody_asking() {
    run(async {
        let rig = Rig::proxied(PATIENT).await;
        rig.proxy.set(Fault::Refuse);
        tokio::time::sleep(millis(300)).await;
        rig.proxy.set(Fault::None);
        tokio::time::sleep(millis(1000)).await;
        allowed(&rig.store, plenty(), "the-first-in-a-while").await;
    });
}

#[test]
fn no_answer_of_an_earlier_question_is_taken_for_a_later_one() {
    run(async {
        let rig = Rig::proxied(DEADLINE).await;
        let policies: Vec<_> = (1..=20)
            .map(|count| {
                let name = format!("of-{count}");
                policy(&name, Algorithm::FixedWindow, count * 1000, Window::DAY)
            })
            .collect();
        let mut answered = 0;
        for round in 0..15 {
            // Two answers come when nobody waits for them any more. Three would be an outage.
            rig.proxy.set(Fault::Delay(millis(30)));
            for policy in [policies[round], policies[round + 3]] {
                let _ = ask(&rig.store, policy, "alice").await;
            }
            rig.proxy.set(Fault::None);
            tokio::time::sleep(millis(40)).await;
            for (policy, count) in policies.iter().zip(1..) {
                let Ok(decision) = ask(&rig.store, policy, "alice").await else { continue };
                assert_eq!(decision.statuses()[0].limit(), count * 1000);
                assert!(decision.statuses()[0].remaining() < count * 1000);
                answered += 1;
            }
        }
        println!("{answered} answered, {} outages", rig.store.health().servers[0].outages);
        assert!(answered > 50, "{answered}");
    });
}

#[test]
fn a_store_can_be_connected_through_a_network_that_comes_to_its_senses() {
    run(async {
        let server = RedisServer::start();
        let proxy = Proxy::to(&server.address());
        proxy.set(Fault::Hang);
        let url = format!("redis://{}", proxy.address());
        let connecting = tokio::spawn(RedisStore::connect(url));
        tokio::time::sleep(millis(400)).await;
        proxy.set(Fault::None);
        let store = tokio::time::timeout(Duration::from_secs(2), connecting).await;
        allowed(&store.unwrap().unwrap().unwrap(), plenty(), "alice").await;
    });
}
