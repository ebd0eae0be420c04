//! A limit on the command line, and where it is kept.

use std::future::Future;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Decision, Key, KeyOperation, MemoryStore, Policy, PolicyError, Quota, Store,
    StoreError, Zone,
};
use dashpot_redis::RedisStore;
use tokio::runtime::{self, Runtime};

use crate::Exit;

/// How long a store may take. Nobody is served by this command, so it need not hurry.
const PATIENCE: Duration = Duration::from_secs(2);

/// A limit, who is asked about, and where that is kept.
#[derive(Debug, clap::Args)]
pub(crate) struct Limit {
    /// The limit: COUNT/WINDOW [burst N], `N concurrent` or `unlimited`
    #[arg(value_parser = quota, env = "DASHPOT_LIMIT")]
    limit: Quota,

    /// Who asks
    #[arg(long, env = "DASHPOT_KEY")]
    pub(crate) key: String,

    /// The policy's name, which what was counted belongs to
    #[arg(long, default_value = "check", env = "DASHPOT_POLICY")]
    policy: String,

    /// token-bucket, leaky-bucket, fixed-window, sliding-log, sliding-window or concurrency
    #[arg(long, env = "DASHPOT_ALGORITHM")]
    algorithm: Option<Algorithm>,

    /// Places in a leaky bucket's queue
    #[arg(long, env = "DASHPOT_QUEUE")]
    queue: Option<u64>,

    /// Places of the queue that proceed at once
    #[arg(long, requires = "queue", env = "DASHPOT_UNDELAYED")]
    undelayed: Option<u64>,

    /// Time zone of a fixed window's days, weeks and months
    #[arg(long, default_value_t = Zone::UTC, env = "DASHPOT_ZONE")]
    zone: Zone,

    /// Where it is counted: redis://, rediss://, redis-cluster:// or redis-sentinel://; several are
    /// independent servers. In memory, for as long as this command runs, if left out
    #[arg(long, env = "DASHPOT_STORE", hide_env_values = true)]
    pub(crate) store: Vec<String>,

    /// What the names of all keys on Redis begin with
    #[arg(long, default_value = "dashpot", env = "DASHPOT_PREFIX")]
    prefix: String,
}

impl Limit {
    fn build(&self) -> Result<Policy, PolicyError> {
        let mut policy = Policy::builder(&self.policy, self.limit).zone(self.zone.clone());
        if let Some(algorithm) = self.algorithm {
            policy = policy.algorithm(algorithm);
        }
        if let Some(places) = self.queue {
            policy = policy.queue(places);
        }
        if let Some(places) = self.undelayed {
            policy = policy.undelayed(places);
        }
        policy.build()
    }

    /// The policy and the store; or how the command ends, once it has said why.
    pub(crate) fn open(&self) -> Result<(Policy, Counts), Exit> {
        let policy = self.build().map_err(|wrong| usage(&wrong))?;
        if self.store.is_empty() {
            return Ok((policy, Counts::Here(MemoryStore::new())));
        }
        policy.fits_micros().map_err(|wrong| usage(&wrong))?;
        let runtime = runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| unreachable(&error))?;
        let entered = runtime.enter();
        let store = RedisStore::builder_on(&self.store)
            .prefix(&self.prefix)
            .deadline(PATIENCE)
            .visiting()
            .denial_memory(Duration::ZERO)
            .start()
            .map_err(|wrong| usage(&wrong))?;
        drop(entered);
        runtime.block_on(store.ready(PATIENCE)).map_err(|error| unreachable(&error))?;
        Ok((policy, Counts::There(store, runtime)))
    }
}

/// Where it is counted.
#[expect(clippy::large_enum_variant, reason = "there is one of them")]
pub(crate) enum Counts {
    Here(MemoryStore),
    There(RedisStore, Runtime),
}

impl Counts {
    pub(crate) fn decide<'p>(&self, check: Check<'p, '_>) -> Result<Decision<'p>, Exit> {
        match self {
            Self::Here(store) => Ok(store.decide_now(&[check])),
            Self::There(store, runtime) => answer(runtime, store.decide(&[check])),
        }
    }

    pub(crate) fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: &str,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, Exit> {
        let key = Key::from(key);
        match self {
            Self::Here(store) => Ok(store.manage_now(policy, key, operation)),
            Self::There(store, runtime) => answer(runtime, store.manage(policy, key, operation)),
        }
    }
}

fn answer<'p>(
    runtime: &Runtime,
    asked: impl Future<Output = Result<Decision<'p>, StoreError>>,
) -> Result<Decision<'p>, Exit> {
    runtime.block_on(asked).map_err(|error| unreachable(&error))
}

fn usage(wrong: &dyn std::error::Error) -> Exit {
    eprintln!("error: {wrong}");
    Exit::Usage
}

fn unreachable(error: &dyn std::error::Error) -> Exit {
    eprint!("error: {error}");
    let mut source = error.source();
    while let Some(cause) = source {
        eprint!(": {cause}");
        source = cause.source();
    }
    eprintln!();
    Exit::Store
}

/// Reads a limit; if it is wrong, shows where.
fn quota(text: &str) -> Result<Quota, String> {
    text.parse().map_err(|wrong: dashpot::ParseQuotaError| {
        let excerpt = wrong.excerpt().replace('\n', "\n  ");
        format!("{wrong}\n\n  {excerpt}")
    })
}

/// Reads a time, such as `10min`, as windows are written.
pub(crate) fn time(text: &str) -> Result<Duration, String> {
    let quota: Quota = format!("1/{text}").parse().map_err(|_| {
        "write a number and a unit: s, min, h, day, week, month or year, as in `10min`".to_owned()
    })?;
    let window = quota.window().filter(|_| quota.explicit_burst().is_none());
    window.map(|window| window.length()).ok_or_else(|| "write a time, as in `10min`".to_owned())
}

/// Reads a time that may be none: `0`, or as [`time`] does.
pub(crate) fn time_or_none(text: &str) -> Result<Duration, String> {
    if matches!(text, "0" | "0s") { Ok(Duration::ZERO) } else { time(text) }
}
