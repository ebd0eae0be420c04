//! On several servers that know nothing of each other.

use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Policy, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisServer, conformance, limit};

use crate::support::apart;
use crate::support::calm::calmly;
use crate::support::load::{Asks, Load, admitted, slowest, unanswered};
use crate::support::subject::{On, run};

const PATIENT: Duration = Duration::from_secs(10);
const KEYS: usize = 3000;

fn three() -> On<[RedisServer; 3]> {
    let servers = start();
    let urls = servers.each_ref().map(RedisServer::url);
    let builder = RedisStore::builder_on(urls).deadline(PATIENT).connect_timeout(PATIENT);
    On::new(servers, builder)
}

conformance!(together: three(), run);

fn start<const N: usize>() -> [RedisServer; N] {
    [(); N].map(|()| RedisServer::start())
}

async fn store_on<'s>(
    servers: impl IntoIterator<Item = &'s RedisServer>,
    deadline: Duration,
) -> RedisStore {
    let store = RedisStore::builder_on(servers.into_iter().map(RedisServer::url));
    let connect_timeout = if deadline == PATIENT { PATIENT } else { Duration::from_millis(250) };
    let store = store.deadline(deadline).connect_timeout(connect_timeout);
    let store = store.denial_memory(Duration::ZERO).start().unwrap();
    store.ready(Duration::from_secs(5)).await.unwrap();
    store
}

/// Which server has which key, of this policy, by its number.
fn placed<'s>(
    servers: impl IntoIterator<Item = &'s RedisServer>,
    policy: &Policy,
) -> BTreeMap<Vec<u8>, usize> {
    let ours = format!(":{}:", policy.name()).into_bytes();
    let mut placed = BTreeMap::new();
    for (number, server) in servers.into_iter().enumerate() {
        for key in server.keys() {
            if key.windows(ours.len()).any(|part| part == ours) {
                assert_eq!(placed.insert(key, number), None, "nothing is in two places");
            }
        }
    }
    placed
}

/// Everybody asks for one.
async fn all_ask(store: &RedisStore, policy: &Policy) {
    let task = |task: usize| {
        let (store, policy) = (store.clone(), policy.clone());
        tokio::spawn(async move {
            for number in (task..KEYS).step_by(30) {
                let caller = format!("user-{number}");
                let decision = store.decide(&[Check::new(&policy, &caller)]).await.unwrap();
                assert!(decision.is_allowed());
            }
        })
    };
    let tasks: Vec<_> = (0..30).map(task).collect();
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_where_everybody_looks_for_it_and_few_move_to_a_new_server() {
    let servers: [RedisServer; 4] = start();
    let three = &servers[..3];
    let policy = limit("placed", Algorithm::FixedWindow, 5, Window::DAY);
    all_ask(&store_on(three, PATIENT).await, &policy).await;
    let before = placed(three, &policy);
    assert_eq!(before.len(), KEYS);
    let share = |placed: &BTreeMap<_, usize>, number| {
        placed.values().filter(|&&at| at == number).count() * 100 / KEYS
    };
    let shares = [0, 1, 2].map(|number| share(&before, number));
    assert!(shares.iter().all(|share| (29..=38).contains(share)), "{shares:?}");

    // Another instance, told in another order.
    all_ask(&store_on(three.iter().rev(), PATIENT).await, &policy).await;
    assert_eq!(placed(three, &policy), before);

    for server in &servers {
        assert!(server.keys_without_ttl().is_empty());
        server.command(&["FLUSHALL"]);
    }
    all_ask(&store_on(&servers, PATIENT).await, &policy).await;
    let after = placed(&servers, &policy);
    let moved: Vec<_> = after.iter().filter(|(key, at)| before[*key] != **at).collect();
    assert!(moved.iter().all(|(_, at)| **at == 3), "between servers that stayed");
    let percent = moved.len() * 100 / KEYS;
    eprintln!("shares {shares:?}, {percent} % moved to a fourth");
    assert!((21..=29).contains(&percent), "{percent} %");
}

#[test]
fn a_server_that_dies_is_missed_by_its_callers_only_and_nobody_takes_its_place() {
    calmly(a_server_dies);
}

async fn a_server_dies() {
    const DEADLINE: Duration = Duration::from_millis(300);
    const LIMIT: u64 = 300;
    let servers: [RedisServer; 3] = start();
    let store = store_on(&servers, DEADLINE).await;
    let policy = |number: usize| limit("load", Algorithm::ALL[number % 6], LIMIT, Window::DAY);
    let asks = |number: usize| -> Asks { vec![(policy(number), format!("user-{number}"))] };
    let callers: Vec<_> = (0..36).map(asks).collect();

    let load = Load::start(&store, &callers);
    sleep(Duration::from_millis(200));
    let placed_first = placed(&servers, &policy(0));
    assert_eq!(placed_first.len(), callers.len());
    servers[1].kill();
    let died = Instant::now();
    sleep(Duration::from_millis(1500));
    let spared = servers.iter().enumerate().filter(|(number, _)| *number != 1);
    let found: usize = spared.map(|(_, server)| placed([server], &policy(0)).len()).sum();
    servers[1].restart();
    let restarted = Instant::now();
    sleep(Duration::from_millis(1300));
    let calls = load.stop().await;

    let at_hit = |caller: usize| {
        let tag = format!("{{user-{caller}}}").into_bytes();
        let is_its = |key: &Vec<u8>| key.windows(tag.len()).any(|part| part == tag);
        placed_first.iter().any(|(key, at)| *at == 1 && is_its(key))
    };
    let (hit, spared): (Vec<_>, Vec<_>) = calls.iter().partition(|call| at_hit(call.caller));
    assert!(!hit.is_empty() && !spared.is_empty());
    assert_eq!(unanswered(spared.iter().copied()).map(|call| &call.allowed), None);
    assert!(slowest(&calls) < DEADLINE + Duration::from_millis(200), "{:?}", slowest(&calls));
    let settled = died + Duration::from_millis(50)..restarted - Duration::from_millis(100);
    let mut dead = hit.iter().filter(|call| settled.contains(&call.started));
    assert!(dead.all(|call| call.allowed.is_err()), "nobody answers in its place");
    assert_eq!(found, placed_first.values().filter(|at| **at != 1).count());
    let back = hit.iter().filter(|call| call.started > restarted + Duration::from_secs(1));
    let back: Vec<_> = back.copied().collect();
    assert!(back.len() > 50 && unanswered(back).is_none(), "it is used again");
    for caller in 0..callers.len() {
        let most = if at_hit(caller) { 2 * LIMIT } else { LIMIT };
        assert!(admitted(calls.iter().filter(|call| call.caller == caller)) <= most);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn checks_on_different_servers_are_decided_all_or_nothing() {
    let servers: [RedisServer; 3] = start();
    let store = store_on(&servers, PATIENT).await;
    apart::nobody_pays_for_a_denial(&store, "crowd").await;

    // Two callers that are on different servers.
    let policy = limit("first", Algorithm::TokenBucket, 1, Window::DAY);
    let mut named: [Option<String>; 3] = Default::default();
    for number in 0..60 {
        let caller = format!("someone-{number}");
        assert!(store.decide(&[Check::new(&policy, &caller)]).await.unwrap().is_allowed());
        for (server, name) in servers.iter().zip(&mut named) {
            let of_caller = format!("{{{caller}}}").into_bytes();
            if server.keys().iter().any(|key| key.windows(of_caller.len()).any(|p| p == of_caller))
            {
                *name = Some(caller.clone());
            }
        }
    }
    store.reset_all(Some("first"), 100).await.unwrap();
    let [one, two, three] = named.map(|name| name.expect("all servers have some"));
    apart::every_denier_is_named(&store, [&one, &two]).await;
    store.reset_all(None, 1000).await.unwrap();
    apart::what_is_not_used_comes_back(&store, [&one, &three]).await;
    apart::a_crowd_of_denials_costs_nothing(&store, &two).await;
}
