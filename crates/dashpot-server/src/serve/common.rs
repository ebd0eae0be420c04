//! What every command that serves is told: by flags, by the environment, by the rule file, in this order.

use std::fs::{self, File, TryLockError};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Duration;

use dashpot::{MemoryStore, MemoryStoreBuilder, Policy, Quota, StateKeeper, Window};
use dashpot_redis::RedisStore;
use dashpot_rules::{LiveRules, LoadError, Reload, RuleSet, Watch};
use tracing::{error, warn};
use tracing_subscriber::filter::LevelFilter;

use crate::serve::log::Format;
use crate::serve::store::AnyStore;
use crate::{Exit, limit};

/// The rule file that is used if there is one and nobody says another.
pub(crate) const USUAL_FILE: &str = "dashpot.toml";

/// Flags that all have.
#[derive(Debug, clap::Args)]
pub(crate) struct Common {
    /// The rule file, or a directory of them; ./dashpot.toml if there is one
    #[arg(long, env = "DASHPOT_CONFIG")]
    config: Option<PathBuf>,

    /// Where to count, without a rule file: redis://, rediss://, redis-cluster:// or redis-sentinel://
    #[arg(long, env = "DASHPOT_STORE", hide_env_values = true, value_delimiter = ' ')]
    store: Vec<String>,

    /// The file in which counts in memory outlive a restart
    #[arg(long, env = "DASHPOT_STATE_FILE")]
    state_file: Option<PathBuf>,

    /// How often counts are saved there
    #[arg(long, env = "DASHPOT_STATE_EVERY", value_parser = limit::time, default_value = "5s")]
    state_every: Duration,

    /// How many threads serve; one for each processor but one if left out
    #[arg(long, env = "DASHPOT_THREADS")]
    threads: Option<NonZeroUsize>,

    /// The token that administrators show, at least 8 characters; without one, only this machine administers
    #[arg(
        long,
        env = "DASHPOT_ADMIN_TOKEN",
        hide_env_values = true,
        conflicts_with = "admin_token_file"
    )]
    admin_token: Option<String>,

    /// A file with that token, which others then do not see in the list of processes
    #[arg(long, env = "DASHPOT_ADMIN_TOKEN_FILE")]
    admin_token_file: Option<PathBuf>,

    /// How many connections there may be; more wait until others have left
    #[arg(long, env = "DASHPOT_MAX_CONNECTIONS", default_value_t = 16_384)]
    pub(crate) max_connections: usize,

    /// How long /readyz says so before the socket closes
    #[arg(long, env = "DASHPOT_DRAIN_DELAY", value_parser = limit::time_or_none, default_value = "1s")]
    pub(crate) drain_delay: Duration,

    /// How long connections may take to end
    #[arg(long, env = "DASHPOT_DRAIN_TIMEOUT", value_parser = limit::time_or_none, default_value = "10s")]
    pub(crate) drain_timeout: Duration,

    /// How long a reservation can be settled; its permits are given back then
    #[arg(long, env = "DASHPOT_RESERVATION_TTL", value_parser = limit::time, default_value = "10min")]
    pub(crate) reservation_ttl: Duration,

    /// How the log is written
    #[arg(long, env = "DASHPOT_LOG_FORMAT", value_enum, default_value = "text")]
    pub(crate) log_format: Format,

    /// What is logged: off, error, warn, info, debug or trace
    #[arg(long, env = "DASHPOT_LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: LevelFilter,
}

/// Why it does not serve.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) exit: Exit,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), exit: Exit::Usage }
    }
}

impl Common {
    /// The rule file, if there is one.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let usual = || Some(PathBuf::from(USUAL_FILE)).filter(|path| path.exists());
        self.config.clone().or_else(usual)
    }

    /// The rules, the file they are in, and who looks for changes there.
    pub(crate) fn rules(
        &self,
        report: impl FnMut(Result<Reload, LoadError>) + Send + 'static,
    ) -> Result<(LiveRules, Option<PathBuf>, Option<Watch>), Failure> {
        let Some(file) = self.file() else {
            let none = RuleSet::parse("").map_err(|errors| Failure::usage(errors.to_string()))?;
            return Ok((LiveRules::new(none), None, None));
        };
        if !self.store.is_empty() {
            let message = format!(
                "--store goes without a rule file, and {} is one; write there: [store] url = …",
                file.display()
            );
            return Err(Failure::usage(message));
        }
        let watched = LiveRules::watch(&file, report);
        let (live, watch) = watched.map_err(|error| Failure::usage(error.to_string()))?;
        Ok((live, Some(file), Some(watch)))
    }

    pub(crate) fn threads(&self) -> usize {
        // One processor is left to those who ask, who are often on the same machine, and to the thread that
        // accepts. With two processors and the callers on one, two threads were slower than one.
        let usual =
            || available_parallelism().map_or(1, |cores| cores.get().saturating_sub(1).max(1));
        self.threads.map_or_else(usual, NonZeroUsize::get)
    }

    pub(crate) fn admin_token(&self, rules: &RuleSet) -> Result<Option<String>, Failure> {
        let file = self.admin_token_file.as_ref().or(rules.serve().admin_token_file.as_ref());
        let Some(token) = said_or_read(self.admin_token.as_ref(), file)? else { return Ok(None) };
        // An empty one would be everybody's.
        if token.len() < 8 || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Failure::usage(
                "an admin token has at least 8 printable characters, no spaces",
            ));
        }
        Ok(Some(token))
    }

    /// A name for the place where it counts: the same for instances that count together, and no others.
    pub(crate) fn place(&self, rules: &RuleSet) -> String {
        let written = rules.store();
        let urls = self.urls(rules);
        if !urls.is_empty() {
            return format!("{urls:?} {}", written.prefix);
        }
        let file = self.state_file(rules);
        match file.map(|file| fs::canonicalize(file).unwrap_or_else(|_| file.clone())) {
            Some(file) => format!("{}", file.display()),
            None => format!("{}", fastrand::u128(..)),
        }
    }

    /// Lets a reservation be settled once, for as long as it can be.
    pub(crate) fn once(&self) -> Result<Policy, Failure> {
        let wrong =
            |error: &dyn std::error::Error| Failure::usage(format!("--reservation-ttl: {error}"));
        // Longer than it can be settled: it begins when it is.
        let window = Window::new(self.reservation_ttl).map_err(|error| wrong(&error))?;
        // No rule can be called so.
        Policy::new("(settled)", Quota::new(1, window)).map_err(|error| wrong(&error))
    }

    pub(crate) fn urls<'s>(&'s self, rules: &'s RuleSet) -> &'s [String] {
        if self.store.is_empty() { &rules.store().urls } else { &self.store }
    }

    fn state_file<'s>(&'s self, rules: &'s RuleSet) -> Option<&'s PathBuf> {
        self.state_file.as_ref().or(rules.memory().state_file.as_ref())
    }

    /// Where to count, and who saves it.
    pub(crate) fn store(&self, rules: &RuleSet) -> Result<(AnyStore, Option<Kept>), Failure> {
        let written = rules.store();
        let urls = self.urls(rules);
        if urls.is_empty() {
            return self.memory(rules);
        }
        if self.state_file.is_some() {
            warn!("counts are kept on Redis, so the state file is not used");
        }
        let store = RedisStore::builder_on(urls)
            .prefix(&written.prefix)
            .deadline(written.deadline)
            .lease(written.lease)
            .reconcile_every(written.reconcile)
            .start()
            .map_err(|wrong| Failure::usage(wrong.to_string()))?;
        Ok((AnyStore::Redis(store), None))
    }

    /// What counts while a store far away does not answer.
    pub(crate) fn stand_in(&self, rules: &RuleSet) -> Arc<MemoryStore> {
        Arc::new(in_memory(rules).build())
    }

    fn memory(&self, rules: &RuleSet) -> Result<(AnyStore, Option<Kept>), Failure> {
        let builder = in_memory(rules);
        let file = self.state_file(rules);
        let Some(file) = file else {
            return Ok((AnyStore::Memory(Arc::new(builder.build())), None));
        };
        let wrong = |error: &dyn std::error::Error| Failure::usage(told(error, file));
        let lock = lock(file)?;
        let store = builder.build_from(file).map_err(|error| wrong(&error))?;
        let store = Arc::new(store);
        let report = |error| error!("counts cannot be saved: {error}");
        let keeper = StateKeeper::start(store.clone(), file, self.state_every, report);
        let keeper = keeper.map_err(|error| wrong(&error))?;
        Ok((AnyStore::Memory(store), Some(Kept { keeper, _lock: lock })))
    }
}

/// A store in memory, as large as the rules say.
fn in_memory(rules: &RuleSet) -> MemoryStoreBuilder {
    let builder = MemoryStore::builder();
    match rules.memory().max_keys {
        Some(keys) => builder.max_keys(keys),
        None => builder,
    }
}

/// A secret that was said, or is the text of a file.
pub(crate) fn said_or_read(
    said: Option<&String>,
    file: Option<&PathBuf>,
) -> Result<Option<String>, Failure> {
    let secret = match (said, file) {
        (Some(said), _) => said.clone(),
        (None, Some(file)) => fs::read_to_string(file)
            .map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?,
        (None, None) => return Ok(None),
    };
    Ok(Some(secret.trim().to_owned()))
}

/// Counts that are saved to a file which nobody else uses meanwhile.
#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) keeper: StateKeeper,
    _lock: File,
}

/// Makes sure that no other process saves its counts there: each would overwrite the other's.
fn lock(state: &Path) -> Result<File, Failure> {
    let mut name = state.as_os_str().to_owned();
    name.push(".lock");
    let path = PathBuf::from(name);
    let opened = File::options().create(true).truncate(false).write(true).open(&path);
    let file = opened.map_err(|error| Failure::usage(told(&error, &path)))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process keeps its counts in {}", state.display());
            Err(Failure::usage(message))
        }
        Err(TryLockError::Error(error)) => Err(Failure::usage(told(&error, &path))),
    }
}

/// An error and what caused it.
fn told(error: &dyn std::error::Error, file: &Path) -> String {
    let mut text = error.to_string();
    if !text.contains(&file.display().to_string()) {
        text = format!("{}: {text}", file.display());
    }
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}
