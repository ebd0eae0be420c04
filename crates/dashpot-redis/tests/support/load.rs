//! Callers who ask again and again while something happens to the servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dashpot::{Check, Policy, Store};
use dashpot_redis::RedisStore;
use tokio::task::JoinHandle;

/// What a caller asks under: policies, each with a key.
pub(crate) type Asks = Vec<(Policy, String)>;

/// One call, and what came of it.
#[derive(Debug)]
pub(crate) struct Call {
    /// The number of the caller.
    pub(crate) caller: usize,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
    /// Whether it was allowed; or why nobody could tell.
    pub(crate) allowed: Result<bool, String>,
}

/// Callers at work.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Vec<Call>>>,
}

impl Load {
    /// One caller for each of these, who asks about a thousand times a second.
    pub(crate) fn start(store: &RedisStore, callers: &[Asks]) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let start = |(caller, asks): (usize, &Asks)| {
            tokio::spawn(keep_asking(store.clone(), caller, asks.clone(), stop.clone()))
        };
        let callers = callers.iter().enumerate().map(start).collect();
        Self { stop, callers }
    }

    /// Has them stop, and says what they saw.
    pub(crate) async fn stop(self) -> Vec<Call> {
        self.stop.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        for caller in self.callers {
            calls.extend(caller.await.expect("no caller panics"));
        }
        calls
    }
}

async fn keep_asking(
    store: RedisStore,
    caller: usize,
    asks: Asks,
    stop: Arc<AtomicBool>,
) -> Vec<Call> {
    let checks: Vec<_> = asks.iter().map(|(policy, key)| Check::new(policy, key)).collect();
    let mut calls = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let started = Instant::now();
        let answer = store.decide(&checks).await;
        let took = started.elapsed();
        let allowed = answer.map(|decision| decision.is_allowed());
        let allowed = allowed.map_err(|error| format!("{error:?}"));
        calls.push(Call { caller, started, took, allowed });
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    calls
}

/// How many of these were allowed.
pub(crate) fn admitted<'c>(calls: impl IntoIterator<Item = &'c Call>) -> u64 {
    calls.into_iter().filter(|call| call.allowed == Ok(true)).count() as u64
}

/// The first of these that got no answer.
pub(crate) fn unanswered<'c>(calls: impl IntoIterator<Item = &'c Call>) -> Option<&'c Call> {
    calls.into_iter().find(|call| call.allowed.is_err())
}

/// The longest that anybody waited.
pub(crate) fn slowest(calls: &[Call]) -> Duration {
    calls.iter().map(|call| call.took).max().unwrap_or_default()
}
