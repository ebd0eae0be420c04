//! Callers of one key at several instances, and what they are told.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dashpot::{Check, Policy, Store, Timestamp};
use dashpot_redis::RedisStore;
use tokio::task::JoinHandle;

use super::bound::{Passed, now};
use super::common::sleep;

/// Callers of one key, who ask for more than there is.
pub(crate) struct Callers {
    stop: Arc<AtomicBool>,
    tasks: Vec<(usize, JoinHandle<Said>)>,
}

/// What callers were told.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) passed: Vec<Passed>,
    pub(crate) checks: u64,
    /// When there was no answer.
    pub(crate) failed: Vec<Timestamp>,
}

impl Callers {
    /// Some at each of these stores: each asks for some at a time, and pauses.
    pub(crate) fn start(stores: &[RedisStore], policy: &Policy, key: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |number: usize| {
            let (store, policy, key) = (stores[number].clone(), policy.clone(), key.to_owned());
            (number, tokio::spawn(keep_asking(store, policy, key, stop.clone())))
        };
        let tasks = (0..stores.len()).flat_map(|number| [number; 3]).map(caller).collect();
        Self { stop, tasks }
    }

    /// Has them stop, and says what they were told at each store.
    pub(crate) async fn stop<const N: usize>(self) -> [Said; N] {
        self.stop.store(true, Ordering::Relaxed);
        let mut said = [(); N].map(|()| Said::default());
        for (number, task) in self.tasks {
            let Said { passed, checks, failed } = task.await.expect("no caller panics");
            said[number].passed.extend(passed);
            said[number].checks += checks;
            said[number].failed.extend(failed);
        }
        said
    }
}

async fn keep_asking(
    store: RedisStore,
    policy: Policy,
    key: String,
    stop: Arc<AtomicBool>,
) -> Said {
    let mut said = Said::default();
    while !stop.load(Ordering::Relaxed) {
        for _ in 0..8 {
            let began = now();
            let answer = store.decide(&[Check::new(&policy, &key)]).await;
            said.checks += 1;
            match answer {
                Ok(decision) if decision.is_allowed() => {
                    said.passed.push(Passed { began, ended: now() });
                }
                Ok(_) => {}
                Err(_) => said.failed.push(now()),
            }
        }
        sleep(1).await;
    }
    said
}

/// All that passed, wherever.
pub(crate) fn together(said: &[Said]) -> Vec<Passed> {
    said.iter().flat_map(|said| said.passed.iter().copied()).collect()
}
