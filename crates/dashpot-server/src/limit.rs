//! A limit on the command line, and where it is kept.

use std::future::Future;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use dashpot::{
    Algorithm, Check, Decision, Key, KeyOperation, MemoryStore, Policy, PolicyError, Quota, Store,
    StoreError, Timestamp, Zone,
};
use dashpot_redis::RedisStore;
use serde_json::Value;
use tokio::runtime::{self, Runtime};

use crate::Exit;
use crate::answer::{Answer, Reason};
use crate::server::{AnyServer, Server};

/// What limits are called that somebody made up on the spot. What was counted belongs to key, algorithm
/// and window.
pub(crate) const NAME: &str = "check";

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
    #[arg(long, default_value = NAME, env = "DASHPOT_POLICY", conflicts_with = "server")]
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
    #[arg(long, env = "DASHPOT_STORE", hide_env_values = true, value_delimiter = ' ')]
    pub(crate) store: Vec<String>,

    /// What the names of all keys on Redis begin with
    #[arg(long, default_value = "dashpot", env = "DASHPOT_PREFIX")]
    prefix: String,

    #[command(flatten)]
    pub(crate) server: AnyServer,
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
        if let Some(server) = self.server.open()? {
            if !self.store.is_empty() {
                eprintln!("error: --server knows where it counts; leave --store out");
                return Err(Exit::Usage);
            }
            return Ok((policy, Counts::Server(server)));
        }
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

    /// As the service reads it, with one thing more.
    fn question(&self, (name, value): (&str, Value)) -> Value {
        let zone = Some(&self.zone).filter(|zone| **zone != Zone::UTC);
        let said = [
            ("key", Some(self.key.as_str().into())),
            ("limit", Some(self.limit.to_string().into())),
            ("algorithm", self.algorithm.map(|algorithm| algorithm.name().into())),
            ("queue", self.queue.map(Into::into)),
            ("undelayed", self.undelayed.map(Into::into)),
            ("zone", zone.map(|zone| zone.to_string().into())),
            (name, Some(value).filter(|value| !value.is_null())),
        ];
        let said = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
        Value::Object(said.collect())
    }
}

/// Where it is counted.
#[expect(clippy::large_enum_variant, reason = "there is one of them")]
pub(crate) enum Counts {
    Here(MemoryStore),
    There(RedisStore, Runtime),
    Server(Server),
}

impl Counts {
    /// Asks for so much.
    pub(crate) fn decide<'l>(
        &self,
        limit: &'l Limit,
        policy: &Policy,
        cost: u64,
    ) -> Result<Answer<'l>, Exit> {
        let check = Check::new(policy, &limit.key).cost(cost);
        let decision = match self {
            Self::Here(store) => store.decide_now(&[check]),
            Self::There(store, runtime) => answer(runtime, store.decide(&[check]))?,
            Self::Server(server) => {
                let question = limit.question(("cost", cost.into()));
                let answer: Answer<'_> = server.ask("/v1/check", &question)?;
                if answer.reason == Some(Reason::Unavailable) {
                    eprintln!("error: the server's store does not answer");
                    return Err(Exit::Store);
                }
                return Ok(answer);
            }
        };
        Ok(Answer::of(&decision, [limit.key.as_str()]))
    }

    /// Carries out an operator's wish.
    pub(crate) fn manage<'l>(
        &self,
        limit: &'l Limit,
        policy: &Policy,
        wish: &Wish,
    ) -> Result<Answer<'l>, Exit> {
        let key = Key::from(limit.key.as_str());
        let operation = wish.operation();
        let decision = match self {
            Self::Here(store) => store.manage_now(policy, key, operation),
            Self::There(store, runtime) => answer(runtime, store.manage(policy, key, operation))?,
            Self::Server(server) => {
                let time = match wish {
                    Wish::Block(time) => format!("{}ns", time.as_nanos()).into(),
                    _ => Value::Null,
                };
                let path = format!("/v1/keys/{}", wish.name());
                return server.ask(&path, &limit.question(("for", time)));
            }
        };
        Ok(Answer::of(&decision, [limit.key.as_str()]))
    }
}

/// What an operator wants of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    Peek,
    Reset,
    Block(Duration),
    Unblock,
}

impl Wish {
    const fn name(self) -> &'static str {
        match self {
            Self::Peek => "peek",
            Self::Reset => "reset",
            Self::Block(_) => "block",
            Self::Unblock => "unblock",
        }
    }

    /// The same, as of now.
    pub(crate) fn operation(self) -> KeyOperation {
        match self {
            Self::Peek => KeyOperation::Peek,
            Self::Reset => KeyOperation::Reset,
            Self::Unblock => KeyOperation::Unblock,
            Self::Block(time) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                KeyOperation::Block(Timestamp::EPOCH.after(now).after(time))
            }
        }
    }
}

fn answer<'p>(
    runtime: &Runtime,
    asked: impl Future<Output = Result<Decision<'p>, StoreError>>,
) -> Result<Decision<'p>, Exit> {
    runtime.block_on(asked).map_err(|error| unreachable(&error))
}

pub(crate) fn usage(wrong: &dyn std::error::Error) -> Exit {
    eprintln!("error: {wrong}");
    Exit::Usage
}

pub(crate) fn unreachable(error: &dyn std::error::Error) -> Exit {
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
pub(crate) fn quota(text: &str) -> Result<Quota, String> {
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

/// The rule file that says the same as flags do: these limits, by these facts.
pub(crate) fn as_file(limits: &[Quota], by: &[String]) -> String {
    let list = |texts: Vec<String>| format!("[{}]", texts.join(", "));
    // What is a text in JSON is one in TOML.
    let quoted = |text: &str| Value::from(text.trim()).to_string();
    let by = match by.is_empty() {
        true => list(vec!["\"ip\"".to_owned()]),
        false => list(by.iter().map(|fact| quoted(fact)).collect()),
    };
    let limits = list(limits.iter().map(|limit| quoted(&limit.to_string())).collect());
    format!("[[rule]]\nname = \"limit\"\nby = {by}\nlimits = {limits}\n")
}
