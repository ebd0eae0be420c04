//! One limit for several processes: real ones, started from this very program.

use std::thread::sleep;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Key, KeyOperation, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisServer, limit};

use crate::support::calm::calmly;
use crate::support::instance::{Instance, URL};

/// What the others start.
const INSTANCE: &str = "processes::an_instance";
const LEASE: Duration = Duration::from_secs(2);
const LIMIT: u64 = 1000;
const PERMITS: u64 = 8;

#[test]
#[ignore = "only what the others start"]
fn an_instance() {
    let Ok(url) = std::env::var(URL) else { return };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let store = runtime.block_on(async {
        let store = RedisStore::builder(url).deadline(Duration::from_secs(10));
        let store = store.connect_timeout(Duration::from_secs(10)).permit_lease(LEASE);
        let store = store.start().unwrap();
        store.ready(Duration::from_secs(5)).await.unwrap();
        store
    });
    println!("\nanswer: 0");
    // It ends with who started it.
    for order in std::io::stdin().lines() {
        let answer = match order.unwrap().split_once(' ') {
            Some(("count", algorithm)) => {
                let algorithm = Algorithm::ALL.into_iter().find(|one| one.name() == algorithm);
                runtime.block_on(take_all(&store, algorithm.unwrap()))
            }
            Some(("hold", permits)) => {
                let (policy, permits) = (permits_policy(), permits.parse::<u64>().unwrap());
                let check = Check::new(&policy, "shared").cost(permits);
                u64::from(runtime.block_on(store.decide(&[check])).unwrap().is_allowed())
            }
            Some(("remaining", _)) => {
                let policy = permits_policy();
                let peek = store.manage(&policy, Key::from("shared"), KeyOperation::Peek);
                runtime.block_on(peek).unwrap().statuses()[0].remaining()
            }
            _ => store.instances().get(),
        };
        println!("\nanswer: {answer}");
    }
}

fn permits_policy() -> Policy {
    limit("permits", Algorithm::Concurrency, PERMITS, Window::DAY)
}

/// Several tasks take one after another until there are no more; answers how many they got.
async fn take_all(store: &RedisStore, algorithm: Algorithm) -> u64 {
    let tasks = [(); 6].map(|()| {
        let store = store.clone();
        tokio::spawn(async move {
            let policy = limit("shared", algorithm, LIMIT, Window::DAY);
            let (mut taken, mut denied) = (0, 0);
            while denied < 20 {
                match store.decide(&[Check::new(&policy, "everybody")]).await.unwrap() {
                    decision if decision.is_allowed() => taken += 1,
                    _ => denied += 1,
                }
            }
            taken
        })
    });
    let mut taken = 0;
    for task in tasks {
        taken += task.await.unwrap();
    }
    taken
}

#[test]
fn four_processes_share_one_limit_to_the_unit() {
    let server = RedisServer::start();
    let mut four = [(); 4].map(|()| Instance::start(&server, INSTANCE));
    let mut each = [0; 4];
    for algorithm in Algorithm::ALL {
        // All of them first, so that they work at the same time.
        for instance in &mut four {
            instance.order(&format!("count {}", algorithm.name()));
        }
        let taken = four.each_mut().map(Instance::answer);
        assert_eq!(taken.iter().sum::<u64>(), LIMIT, "{algorithm:?}: {taken:?}");
        for (all, taken) in each.iter_mut().zip(taken) {
            *all += taken;
        }
    }
    assert!(each.iter().all(|taken| *taken > 0), "nobody was left out: {each:?}");
    assert!(server.keys_without_ttl().is_empty());
}

#[test]
fn a_process_that_is_killed_is_not_counted_any_more_and_its_permits_come_back() {
    calmly(async || a_process_is_killed());
}

fn a_process_is_killed() {
    let server = RedisServer::start();
    let mut four = [(); 4].map(|()| Instance::start(&server, INSTANCE));
    for instance in &mut four {
        assert_eq!(instance.ask("hold 2"), 1);
    }
    assert_eq!(four[0].ask("hold 1"), 0, "all are out");
    until(Duration::from_secs(5), || four.iter_mut().all(|one| one.ask("instances") == 4));
    // Those who live renew theirs, lease after lease.
    let start = Instant::now();
    while start.elapsed() < 2 * LEASE {
        assert_eq!(four[0].ask("remaining -"), 0);
        assert_eq!(four[3].ask("hold 1"), 0);
        sleep(Duration::from_millis(50));
    }

    let [three @ .., fourth] = &mut four;
    fourth.kill();
    let killed = Instant::now();
    let (mut freed, mut forgotten) = (None, None);
    while freed.is_none() || forgotten.is_none() || killed.elapsed() < 3 * LEASE {
        assert!(killed.elapsed() < Duration::from_secs(10), "{freed:?}, {forgotten:?}");
        let remaining = three[1].ask("remaining -");
        assert!(remaining == 0 || remaining == 2, "{remaining} of those who live");
        if remaining == 2 {
            freed.get_or_insert(killed.elapsed());
        }
        if three.iter_mut().all(|one| one.ask("instances") == 3) {
            forgotten.get_or_insert(killed.elapsed());
        }
        sleep(Duration::from_millis(20));
    }
    eprintln!("permits came back after {freed:?}; it was forgotten after {forgotten:?}");
    let freed = freed.unwrap();
    assert!(LEASE / 4 < freed && freed < LEASE + Duration::from_secs(1), "{freed:?}");
    assert_eq!(three[0].ask("hold 2"), 1, "they are there to be taken");
    assert_eq!(three[2].ask("hold 1"), 0);
}

fn until(bound: Duration, mut it_is: impl FnMut() -> bool) {
    let start = Instant::now();
    while !it_is() {
        assert!(start.elapsed() < bound, "waited {bound:?} in vain");
        sleep(Duration::from_millis(20));
    }
}
