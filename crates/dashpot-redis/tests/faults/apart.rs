//! Checks whose keys are on several servers: one that fails holds up, or spoils, none of the others.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Policy, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};

use super::common::{
    DEADLINE, GENEROUS, PATIENT, ask, daily, millis, no_key_stays, run, started, until,
};

/// Two servers behind a network each, and a store on both.
struct Two {
    store: RedisStore,
    proxies: [Proxy; 2],
    servers: [RedisServer; 2],
}

impl Two {
    async fn start(deadline: Duration) -> Self {
        let servers = [RedisServer::start(), RedisServer::start()];
        let proxies = servers.each_ref().map(|server| Proxy::to(&server.address()));
        let urls = proxies.each_ref().map(|proxy| format!("redis://{}", proxy.address()));
        let store = started(RedisStore::builder_on(urls).deadline(deadline)).await;
        Self { store, proxies, servers }
    }

    /// Keys of which some are here and some are there.
    fn keys() -> [String; 8] {
        std::array::from_fn(|number| format!("key-{number}"))
    }
}

/// How long it takes to ask for all keys at once, the median and the longest of so many times.
async fn asking(two: &Two, policy: &Policy, times: usize) -> (Duration, Duration) {
    let keys = Two::keys();
    let checks: Vec<_> = keys.iter().map(|key| Check::new(policy, key)).collect();
    let mut took = Vec::new();
    for _ in 0..times {
        let start = Instant::now();
        let _ = two.store.decide(&checks).await;
        took.push(start.elapsed());
        tokio::time::sleep(millis(3)).await;
    }
    took.sort_unstable();
    (took[took.len() / 2], took[took.len() - 1])
}

#[test]
fn a_network_that_is_slow_to_all_of_them_is_waited_for_no_longer_than_the_deadline() {
    // As for single servers: a machine that stalls is given two more tries.
    let longest = (0..3).map(|_| {
        run(async {
            let two = Two::start(DEADLINE).await;
            // One answer comes in time, two after each other do not.
            two.proxies.iter().for_each(|proxy| proxy.set(Fault::Delay(millis(7))));
            let (_, longest) = asking(&two, daily(Algorithm::FixedWindow, 1_000_000), 30).await;
            assert!(longest < GENEROUS, "{longest:?}");
            longest
        })
    });
    let mut longest = longest.inspect(|longest| println!("{longest:?}"));
    assert!(longest.any(|longest| longest <= DEADLINE + millis(5)), "three times in a row");
}

#[test]
fn one_that_hangs_holds_nobody_up_for_long() {
    run(async {
        let two = Two::start(DEADLINE).await;
        let policy = daily(Algorithm::FixedWindow, 1_000_000);
        for broken in [0, 1] {
            two.proxies[broken].set(Fault::Drop);
            let (median, longest) = asking(&two, policy, 50).await;
            println!("median {median:?}, longest {longest:?}");
            assert!(median < DEADLINE && longest < GENEROUS, "{median:?} {longest:?}");
            two.proxies[broken].set(Fault::None);
            for key in Two::keys() {
                until_answered_for(&two.store, policy, &key).await;
            }
        }
        until("both are up", GENEROUS, || two.store.health().is_up()).await;
        assert!(two.store.health().servers.iter().all(|server| server.outages >= 1));
        for server in &two.servers {
            no_key_stays(server);
        }
    });
}

#[test]
fn what_a_server_gave_for_a_call_that_fails_elsewhere_it_gets_back() {
    run(async {
        for broken in [0, 1] {
            let two = Two::start(PATIENT).await;
            two.proxies[broken].set(Fault::Refuse);
            let keys = Two::keys();
            for policy in Algorithm::ALL.map(|algorithm| daily(algorithm, 1000)) {
                let checks: Vec<_> = keys.iter().map(|key| Check::new(policy, key)).collect();
                for _ in 0..10 {
                    two.store.decide(&checks).await.unwrap_err();
                }
                let mut answered = 0;
                for check in checks {
                    let Ok(peek) = two.store.decide(&[check.cost(0)]).await else { continue };
                    assert_eq!(peek.statuses()[0].remaining(), 1000, "{policy:?}");
                    answered += 1;
                }
                assert!(answered > 0);
            }
        }
    });
}

async fn until_answered_for(store: &RedisStore, policy: &Policy, key: &str) {
    let start = Instant::now();
    while ask(store, policy, key).await.is_err() {
        assert!(start.elapsed() < millis(1000), "no answer about {key}");
        tokio::time::sleep(millis(2)).await;
    }
}

#[test]
fn a_server_that_is_down_does_not_keep_keys_on_others_from_being_decided() {
    run(async {
        let two = Two::start(DEADLINE).await;
        let policy = daily(Algorithm::TokenBucket, 1000);
        let mut before = 0;
        for key in Two::keys() {
            before += u64::from(ask(&two.store, policy, &key).await.is_ok());
        }
        assert_eq!(before, 8);
        two.servers[1].kill();
        until("it is noticed", millis(2000), || !two.store.health().is_up()).await;
        let (mut answered, mut failed) = (0, 0);
        for _ in 0..20 {
            for key in Two::keys() {
                let start = Instant::now();
                match ask(&two.store, policy, &key).await {
                    Ok(_) => answered += 1,
                    Err(_) => failed += 1,
                }
                assert!(start.elapsed() < GENEROUS);
            }
        }
        println!("answered {answered}, failed {failed}");
        assert!(answered % 20 == 0 && answered > 0 && failed > 0, "{answered} {failed}");
        let health = two.store.health();
        assert_eq!(health.servers.iter().filter(|server| server.is_up).count(), 1);
        assert_eq!(health.servers[0].refused, 0);
    });
}
