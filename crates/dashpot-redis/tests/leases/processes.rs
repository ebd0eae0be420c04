//! Leases of real processes, started from this very program, and of one that is killed.

use std::time::{Duration, Instant};

use dashpot::{Algorithm, Policy, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;

use super::bound::now;
use super::callers::Callers;
use super::common::{LEASABLE, SHORT, instance, leased, leasing, left, millis, sleep};
use super::common::{started, takes, until, weekly};
use crate::support::instance::{Instance, URL};

/// What the others start.
const INSTANCE: &str = "leases::processes::an_instance";
const RATE: u64 = 2000;

fn named(policy: &str, algorithm: Algorithm) -> Policy {
    match policy {
        "second" => leased(algorithm, RATE, Window::SECOND),
        // What is not out is full again at once.
        "instant" => leased(algorithm, RATE, Window::new(millis(20)).unwrap()),
        _ => weekly(algorithm, RATE),
    }
}

#[test]
#[ignore = "only what the others start"]
fn an_instance() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = runtime.block_on(started(leasing(RedisStore::builder(url), 2 * SHORT)));
    println!("\nanswer: 0");
    // It ends with who started it.
    for order in std::io::stdin().lines() {
        let order = order.unwrap();
        let [policy, algorithm, time] = order.split(' ').collect::<Vec<_>>().try_into().unwrap();
        let policy = named(policy, algorithm.parse().unwrap());
        let passed = runtime.block_on(async {
            let callers = Callers::start(std::slice::from_ref(&store), &policy, "hot");
            sleep(time.parse().unwrap()).await;
            let [said] = callers.stop().await;
            said.passed.len()
        });
        println!("\nanswer: {passed}");
    }
}

fn all_ask(four: &mut [Instance], policy: &str, algorithm: Algorithm, time: Duration) -> Vec<u64> {
    for instance in &mut *four {
        instance.order(&format!("{policy} {algorithm} {}", time.as_millis()));
    }
    four.iter_mut().map(Instance::answer).collect()
}

#[test]
fn four_processes_never_grant_too_much() {
    let server = RedisServer::start();
    let mut four = [(); 4].map(|()| Instance::start(&server, INSTANCE));
    for algorithm in LEASABLE {
        let (start, began) = (Instant::now(), now().as_nanos() / 1_000_000_000);
        let passed = all_ask(&mut four, "second", algorithm, millis(1500));
        let all = passed.iter().sum::<u64>();
        let most = match algorithm {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => {
                RATE + (RATE as f64 * start.elapsed().as_secs_f64()) as u64
            }
            _ => RATE * (now().as_nanos() / 1_000_000_000 - began + 1),
        };
        eprintln!("{algorithm}: {passed:?} of {most}");
        assert!(all <= most, "{algorithm}: {passed:?} of {most}");
        assert!(all >= RATE / 2, "{algorithm}: {passed:?}");
        assert!(passed.iter().all(|passed| *passed > 0), "{algorithm}: {passed:?}");
        let passed = all_ask(&mut four, "week", algorithm, millis(700));
        assert!(passed.iter().sum::<u64>() <= RATE, "{algorithm}: {passed:?} of {RATE}");
    }
    assert!(server.keys_without_ttl().is_empty(), "{:?}", server.keys_without_ttl());
}

#[test]
fn what_a_killed_process_held_is_never_granted_again() {
    let server = RedisServer::start();
    for algorithm in LEASABLE {
        let mut three = [(); 3].map(|()| Instance::start(&server, INSTANCE));
        let mut passed = all_ask(&mut three, "week", algorithm, millis(60)).iter().sum::<u64>();
        three[2].kill();
        passed += all_ask(&mut three[..2], "week", algorithm, 3 * SHORT).iter().sum::<u64>();
        eprintln!("{algorithm}: {passed} of {RATE}");
        assert!(passed <= RATE, "{algorithm}: {passed}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_capacity_of_a_killed_process_comes_back() {
    let server = RedisServer::start();
    let store = instance(&server, Duration::from_secs(4)).await;
    for algorithm in [Algorithm::TokenBucket, Algorithm::LeakyBucket] {
        let policy = named("instant", algorithm);
        let mut other = Instance::start(&server, INSTANCE);
        assert!(all_ask(std::slice::from_mut(&mut other), "instant", algorithm, SHORT)[0] > 0);
        other.kill();
        let took = until("it is whole", async || left(&store, &policy, "hot").await == RATE).await;
        eprintln!("{algorithm}: whole after {took:?}");
        assert!(takes(&store, &policy, "hot", RATE).await, "{algorithm}");
    }
}
