//! Many callers at once, and what they see.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dashpot::{Check, Policy, Store};
use dashpot_redis::RedisStore;
use tokio::task::JoinHandle;

use super::common::told;

/// What a caller sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Allowed,
    Denied,
    /// And why.
    Failed(String),
}

/// One call, as its caller sees it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Which of the policies.
    pub(crate) policy: usize,
    pub(crate) began: Instant,
    pub(crate) took: Duration,
    pub(crate) seen: Seen,
}

impl Call {
    pub(crate) fn ended(&self) -> Instant {
        self.began + self.took
    }
}

/// Callers that ask again and again.
pub(crate) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<JoinHandle<Vec<Call>>>,
}

/// How callers ask.
#[derive(Clone, Copy)]
pub(crate) struct Pattern {
    pub(crate) callers: usize,
    /// Between two calls of a caller.
    pub(crate) pause: Duration,
    /// Whether they all ask for the same key.
    pub(crate) is_shared: bool,
}

impl Load {
    /// Each caller asks for one unit of each policy in turn.
    pub(crate) fn start(store: &RedisStore, policies: &[&'static Policy], how: Pattern) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |number: usize| {
            let (store, policies, stop) = (store.clone(), policies.to_vec(), stop.clone());
            let key = if how.is_shared { "shared".to_owned() } else { format!("caller-{number}") };
            tokio::spawn(async move {
                let mut calls = Vec::new();
                for policy in (0..policies.len()).cycle() {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    calls.push(call(&store, policies[policy], policy, &key).await);
                    tokio::time::sleep(how.pause).await;
                }
                calls
            })
        };
        let callers = (0..how.callers).map(caller).collect();
        Self { stop, callers }
    }

    /// All calls there were, once every caller is back.
    pub(crate) async fn stop(self) -> Vec<Call> {
        self.stop.store(true, Ordering::Relaxed);
        let mut calls = Vec::new();
        for caller in self.callers {
            let back = tokio::time::timeout(Duration::from_secs(3), caller).await;
            calls.extend(back.expect("no call hangs").expect("no caller panics"));
        }
        calls
    }
}

async fn call(store: &RedisStore, policy: &Policy, index: usize, key: &str) -> Call {
    let checks = [Check::new(policy, key)];
    let began = Instant::now();
    let answer = store.decide(&checks).await;
    let took = began.elapsed();
    let seen = match answer {
        Ok(decision) if decision.is_allowed() => Seen::Allowed,
        Ok(_) => Seen::Denied,
        Err(error) => Seen::Failed(told(&error)),
    };
    Call { policy: index, began, took, seen }
}

/// How long calls took.
#[derive(Clone, Copy, Debug, Default)]
#[expect(dead_code, reason = "the median is only printed")]
pub(crate) struct Spread {
    pub(crate) calls: usize,
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
    pub(crate) p999: Duration,
    pub(crate) max: Duration,
}

impl Spread {
    pub(crate) fn of<'c>(calls: impl IntoIterator<Item = &'c Call>) -> Self {
        let mut took: Vec<_> = calls.into_iter().map(|call| call.took).collect();
        took.sort_unstable();
        let Some(&max) = took.last() else { return Self::default() };
        // The smallest that so many of a thousand do not exceed.
        let per_mille = |part: usize| took[(took.len() * part).div_ceil(1000).max(1) - 1];
        let [p50, p99, p999] = [500, 990, 999].map(per_mille);
        Self { calls: took.len(), p50, p99, p999, max }
    }
}
