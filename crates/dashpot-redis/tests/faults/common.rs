//! A server, a network and a store of one's own.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dashpot::{Algorithm, Check, Decision, Key, KeyOperation, Policy, Store, StoreError, Window};
use dashpot_redis::{RedisStore, RedisStoreBuilder};
use dashpot_testkit::{Proxy, RedisServer, limit};

/// What a decision may take unless told otherwise.
pub(crate) const DEADLINE: Duration = Duration::from_millis(20);

/// Where time is not what is tested.
pub(crate) const PATIENT: Duration = Duration::from_secs(2);

/// What no call takes, however busy the machine is.
pub(crate) const GENEROUS: Duration = Duration::from_secs(1);

pub(crate) const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// On a runtime with two workers, none of which is blocked if the test is. Nothing may take for ever.
pub(crate) fn run<F: Future>(test: F) -> F::Output {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let bounded = async { tokio::time::timeout(Duration::from_secs(40), test).await };
    runtime.block_on(bounded).expect("a test that ends")
}

/// A server, a proxy in front of it, and a store.
pub(crate) struct Rig {
    pub(crate) store: RedisStore,
    pub(crate) proxy: Proxy,
    pub(crate) server: RedisServer,
}

impl Rig {
    /// The store asks the server itself.
    pub(crate) async fn direct(deadline: Duration) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::to(&server.address());
        let store = started(RedisStore::builder(server.url()).deadline(deadline)).await;
        Self { store, proxy, server }
    }

    /// The store asks the proxy.
    pub(crate) async fn proxied(deadline: Duration) -> Self {
        let server = RedisServer::start();
        let proxy = Proxy::to(&server.address());
        let url = format!("redis://{}", proxy.address());
        let store = started(RedisStore::builder(url).deadline(deadline)).await;
        Self { store, proxy, server }
    }

    /// What holds after every test.
    pub(crate) fn is_clean(&self) {
        no_key_stays(&self.server);
    }
}

pub(crate) async fn started(builder: RedisStoreBuilder) -> RedisStore {
    let store = builder.start().unwrap();
    store.ready(Duration::from_secs(5)).await.unwrap();
    store
}

/// The store's keys all expire, and it has some.
pub(crate) fn no_key_stays(server: &RedisServer) {
    assert!(server.keys().iter().any(|key| key.starts_with(b"dashpot:")), "nothing was kept");
    let eternal = server.keys_without_ttl();
    let ours: Vec<_> = eternal.iter().filter(|key| key.starts_with(b"dashpot:")).collect();
    assert!(ours.is_empty(), "these never expire: {ours:?}");
}

/// One that lives as long as the test: tasks hold on to it.
pub(crate) fn policy(
    name: &str,
    algorithm: Algorithm,
    count: u64,
    window: Window,
) -> &'static Policy {
    Box::leak(Box::new(limit(name, algorithm, count, window)))
}

/// So many a day, whatever the algorithm; or in a little more than a day, if one is about to end.
pub(crate) fn daily(algorithm: Algorithm, count: u64) -> &'static Policy {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    let lasts = |hours: &u64| now % (hours * 3600) + 120 < hours * 3600;
    let hours = (24..).find(lasts).unwrap();
    let window = Window::new(Duration::from_secs(hours * 3600)).unwrap();
    policy(algorithm.name(), algorithm, count, window)
}

/// More than any test asks for.
pub(crate) fn plenty() -> &'static Policy {
    policy("plenty", Algorithm::FixedWindow, 1_000_000_000, Window::DAY)
}

/// Asks for one unit.
pub(crate) async fn ask<'p>(
    store: &RedisStore,
    policy: &'p Policy,
    key: &str,
) -> Result<Decision<'p>, StoreError> {
    store.decide(&[Check::new(policy, key)]).await
}

/// The same, and it is allowed.
pub(crate) async fn allowed(store: &RedisStore, policy: &Policy, key: &str) {
    let decision = ask(store, policy, key).await;
    assert!(decision.unwrap().is_allowed(), "{policy:?} for {key}");
}

/// The same, and it is denied.
pub(crate) async fn denied(store: &RedisStore, policy: &Policy, key: &str) {
    let decision = ask(store, policy, key).await;
    assert!(!decision.unwrap().is_allowed(), "{policy:?} for {key}");
}

/// Does something to a key.
pub(crate) async fn manage(store: &RedisStore, policy: &Policy, key: &str, wish: KeyOperation) {
    let _ = store.manage(policy, Key::from(key), wish).await.unwrap();
}

/// What is left of a key, as a peek says.
pub(crate) async fn left(store: &RedisStore, policy: &Policy, key: &str) -> u64 {
    let decision = store.decide(&[Check::new(policy, key).cost(0)]).await.unwrap();
    decision.statuses()[0].remaining()
}

/// How long it takes until there is an answer.
pub(crate) async fn until_answered(store: &RedisStore, within: Duration) -> Duration {
    let (start, policy) = (Instant::now(), plenty());
    while let Err(error) = ask(store, policy, "until").await {
        assert!(start.elapsed() < within, "no answer within {within:?}: {}", told(&error));
        tokio::time::sleep(millis(2)).await;
    }
    start.elapsed()
}

/// Waits until something holds.
pub(crate) async fn until(
    what: &str,
    within: Duration,
    mut holds: impl FnMut() -> bool,
) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < within, "waited {within:?} in vain: {what}");
        tokio::time::sleep(millis(2)).await;
    }
    start.elapsed()
}

/// All that an error tells, its sources and its innards included.
pub(crate) fn told(error: &(dyn Error + 'static)) -> String {
    let chain = std::iter::successors(Some(error), |&error| error.source());
    let chain: Vec<_> = chain.map(ToString::to_string).collect();
    format!("{} / {error:?}", chain.join(": "))
}

/// What it says once it says why it cannot be used, in these words.
pub(crate) async fn complaint(store: &RedisStore, words: &[&str]) -> String {
    let start = Instant::now();
    loop {
        let unready = store.ready(millis(300)).await.err();
        let failed = ask(store, plenty(), "alice").await.expect_err("it cannot be used");
        let said = [unready.map(|error| told(&error)), Some(told(&failed))];
        let said = said.into_iter().flatten().collect::<Vec<_>>().join(" / ");
        if words.iter().any(|word| said.contains(word)) {
            return said;
        }
        assert!(start.elapsed() < Duration::from_secs(3), "{said}");
    }
}

/// How often a command was called.
pub(crate) fn calls_of(server: &RedisServer, command: &str) -> u64 {
    let all = server.command(&["INFO", "commandstats"]).text();
    let start = format!("cmdstat_{command}:calls=");
    let line = all.lines().find_map(|line| line.strip_prefix(&start));
    line.map_or(0, |line| line.split(',').next().unwrap().parse().unwrap())
}
