//! What a rule file means, ready to be asked.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::net::{AddrParseError, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use dashpot::Clock;
use smallvec::SmallVec;

use crate::adaptive::Adaptive;
use crate::lists::Lists;
use crate::live::Seen;
use crate::matching::{Index, normal, unresolved};
use crate::plan::Plan;
use crate::problem::{Problem, RuleErrors};
use crate::proxy::ProxySettings;
use crate::rule::{OnStoreError, Priority, Rule};
use crate::tally::Tally;
use crate::token::Tokens;
use crate::{Descriptor, Explanation, Fact, Headers, Identity, Source, compile, load};

/// What a rule file means: which rules there are, found by what a request is.
///
/// ```
/// use dashpot_rules::RuleSet;
///
/// let rules = RuleSet::parse(r#"
///     [[rule]]
///     name = "login"
///     match = { method = "POST", path = "/login" }
///     by = ["ip"]
///     limits = ["5/5min"]
///     algorithm = "sliding-log"
/// "#)?;
/// assert_eq!(rules.rules().len(), 1);
/// # Ok::<(), dashpot_rules::RuleErrors>(())
/// ```
pub struct RuleSet {
    pub(crate) rules: Vec<Rule>,
    pub(crate) priorities: Vec<Priority>,
    pub(crate) rule_index: Index,
    pub(crate) priority_index: Index,
    /// Whether some rule has a capacity.
    pub(crate) has_gates: bool,
    pub(crate) allow: Lists,
    pub(crate) block: Lists,
    /// Whether who is on them can be told only from the body.
    pub(crate) lists_need_body: bool,
    pub(crate) identity: Identity,
    pub(crate) tokens: Option<Tokens>,
    pub(crate) headers: Headers,
    pub(crate) store: StoreSettings,
    pub(crate) memory: MemorySettings,
    pub(crate) serve: ServeSettings,
    pub(crate) proxy: ProxySettings,
    pub(crate) advice: Vec<Problem>,
    /// The files it was read from, key files included.
    pub(crate) files: Vec<Seen>,
}

/// Where counts are kept: what `[store]` says.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreSettings {
    /// The servers; none is in memory.
    pub urls: Vec<String>,
    /// What the names of its keys begin with.
    pub prefix: String,
    /// How long to wait for an answer.
    pub deadline: Duration,
    /// What to do when there is none.
    pub on_error: OnStoreError,
    /// How long units are leased.
    pub lease: Duration,
    /// How often is told what was counted elsewhere.
    pub reconcile: Duration,
}

impl Default for StoreSettings {
    fn default() -> Self {
        Self {
            urls: Vec::new(),
            prefix: "dashpot".to_owned(),
            deadline: Duration::from_millis(20),
            on_error: OnStoreError::default(),
            lease: Duration::from_secs(2),
            reconcile: Duration::from_millis(100),
        }
    }
}

/// The store in memory: what `[memory]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemorySettings {
    /// The most keys to remember.
    pub max_keys: Option<usize>,
    /// The file in which counts outlive a restart.
    pub state_file: Option<PathBuf>,
}

/// Where to listen, if at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listen {
    /// Here.
    At(SocketAddr),
    /// Nowhere: written `off`.
    Off,
}

impl FromStr for Listen {
    type Err = AddrParseError;

    fn from_str(text: &str) -> Result<Self, AddrParseError> {
        if text == "off" { Ok(Self::Off) } else { text.parse().map(Self::At) }
    }
}

/// How the service listens: what `[serve]` says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServeSettings {
    /// Where.
    pub listen: Option<SocketAddr>,
    /// Where for gRPC.
    pub grpc_listen: Option<Listen>,
    /// Where for Redis's protocol.
    pub resp_listen: Option<Listen>,
    /// The file with the password that clients of Redis's say.
    pub resp_password_file: Option<PathBuf>,
    /// The file with the certificate, if HTTPS is served.
    pub tls_certificate: Option<PathBuf>,
    /// The file with its private key.
    pub tls_key: Option<PathBuf>,
    /// The file with the token that administrators show.
    pub admin_token_file: Option<PathBuf>,
}

impl RuleSet {
    /// Reads rules from a text. Files it names are looked for in the current directory.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(text: &str) -> Result<Self, RuleErrors> {
        Self::from_sources(vec![Source::new("rules", text)], Path::new("."))
    }

    /// Reads rules from several texts, as if they were one. Files they name are looked for in
    /// `directory`.
    ///
    /// # Errors
    /// Everything that is wrong with them.
    pub fn from_sources(sources: Vec<Source>, directory: &Path) -> Result<Self, RuleErrors> {
        compile::compile(sources, directory)
    }

    /// Reads rules from a file, or from all `*.toml` in a directory, in the order of their names; but
    /// for the file of keys, if it is there, too.
    ///
    /// # Errors
    /// If it cannot be read, or everything that is wrong with it.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, LoadError> {
        load::load(path.as_ref())
    }

    /// The rules, as they are written.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether nothing in it can refuse anybody: there are no rules, and nobody is on the block list.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.block.is_empty()
    }

    /// How a request becomes facts.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What verifies tokens, if anything.
    #[must_use]
    pub const fn tokens(&self) -> Option<&Tokens> {
        self.tokens.as_ref()
    }

    /// How a decision is told.
    #[must_use]
    pub const fn headers(&self) -> &Headers {
        &self.headers
    }

    /// Where counts are kept.
    #[must_use]
    pub const fn store(&self) -> &StoreSettings {
        &self.store
    }

    /// The store in memory.
    #[must_use]
    pub const fn memory(&self) -> &MemorySettings {
        &self.memory
    }

    /// How the service listens.
    #[must_use]
    pub const fn serve(&self) -> &ServeSettings {
        &self.serve
    }

    /// How the gateway listens and forwards.
    #[must_use]
    pub const fn proxy(&self) -> &ProxySettings {
        &self.proxy
    }

    /// What is probably not meant as it is written.
    #[must_use]
    pub fn advice(&self) -> &[Problem] {
        &self.advice
    }

    /// Which rules a request matches, found without its body.
    pub fn select(&self, request: &impl Descriptor) -> Selection<'_> {
        let (method, path) = (request.method(), normal(request.path()));
        let mut selection =
            Selection { set: self, rules: SmallVec::new(), priority: None, path: None };
        // Who serves it may resolve dots or not. A rule is about both, a privilege only about what both
        // agree on.
        let other_path = match &path {
            // As it is usual, and then there are no dots.
            Cow::Borrowed(_) => None,
            Cow::Owned(_) => unresolved(request.path()),
        };
        if !self.priorities.is_empty() {
            let mut numbers = self.priority_index.find(&path, request);
            if let Some(other) = &other_path {
                let others = self.priority_index.find(other, request);
                numbers.retain(|number| others.contains(number));
            }
            let priorities = numbers.iter().filter_map(|n| self.priorities.get(*n as usize));
            selection.priority =
                { priorities }.find(|priority| priority.condition.rest_holds(method, request));
        }
        // Who is never limited takes up room all the same.
        let only_gates = selection.priority.is_some_and(Priority::is_unlimited);
        if only_gates && !self.has_gates {
            return selection;
        }
        let is_preflight = is_preflight(method, request);
        let mut numbers = self.rule_index.find(&path, request);
        if let Some(other) = &other_path {
            numbers.extend(self.rule_index.find(other, request));
            numbers.sort_unstable();
            numbers.dedup();
        }
        for number in numbers {
            let Some(rule) = self.rules.get(number as usize) else { continue };
            // A browser asks before it sends; who wants that limited names the method.
            let exempt = is_preflight && rule.condition.methods.is_none();
            let is_left_out = only_gates && rule.capacity.is_none();
            if !exempt && !is_left_out && rule.condition.rest_holds(method, request) {
                selection.rules.push(rule);
            }
        }
        if let Cow::Owned(path) = path {
            selection.path = Some(path.into_boxed_str());
        }
        selection
    }

    /// What a request would be held to, and why.
    pub fn explain(&self, request: &impl Descriptor) -> Explanation {
        Explanation::of(self, request)
    }

    /// The priorities by name, and what came of the requests that had them.
    pub fn priorities(&self) -> impl Iterator<Item = (&str, &Tally)> {
        self.priorities.iter().map(|priority| (priority.name.as_str(), &*priority.tally))
    }

    /// The same rules, by this clock where they keep time themselves: `adaptive` and `capacity`. For tests.
    #[must_use]
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(clock);
        for rule in &mut self.rules {
            if let Some((settings, adaptive)) = &mut rule.adaptive {
                *adaptive = Arc::new(Adaptive::new(settings.clone(), clock.clone()));
            }
            if let Some(capacity) = &mut rule.capacity {
                capacity.with_clock(&clock);
            }
        }
        self
    }

    /// Carries over what was counted about rules and priorities of the same name, and how they stand.
    pub(crate) fn succeed(&mut self, before: &Self) {
        let known: HashMap<&str, &Rule> =
            before.rules.iter().map(|rule| (rule.name.as_str(), rule)).collect();
        for rule in &mut self.rules {
            if let Some(known) = known.get(rule.name.as_str()) {
                rule.succeed(known);
            }
        }
        for priority in &mut self.priorities {
            let is_it = |known: &&Priority| known.name == priority.name;
            if let Some(known) = before.priorities.iter().find(is_it) {
                priority.tally = known.tally.clone();
            }
        }
    }
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.rules).finish_non_exhaustive()
    }
}

/// Whether a browser asks if it may send a request of another origin.
fn is_preflight(method: &str, request: &impl Descriptor) -> bool {
    let has = |name: &str| request.fact(&Fact::Header(name.to_owned())).is_some();
    method == "OPTIONS" && has("origin") && has("access-control-request-method")
}

/// The rules a request matches.
#[derive(Clone, Debug)]
pub struct Selection<'r> {
    pub(crate) set: &'r RuleSet,
    pub(crate) rules: SmallVec<[&'r Rule; 4]>,
    pub(crate) priority: Option<&'r Priority>,
    /// The normal path, if it is another than the request's.
    pub(crate) path: Option<Box<str>>,
}

impl<'r> Selection<'r> {
    /// Whether a fact of the body is wanted to cut the keys.
    #[must_use]
    pub fn needs_body(&self) -> bool {
        self.set.lists_need_body || self.rules.iter().any(|rule| rule.needs_body)
    }

    /// Those of the rules that can be asked without the body.
    #[must_use]
    pub fn without_body(&self) -> Self {
        let mut selection = self.clone();
        // Who is never limited may be told in the body, too.
        selection.rules.retain(|rule| !rule.needs_body && !self.set.lists_need_body);
        selection
    }

    /// Cuts the keys.
    pub fn plan(&self, request: &impl Descriptor) -> Plan<'r> {
        Plan::new(self, request)
    }
}

/// Why rules could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// There is nothing in the directory.
    #[error("there is no *.toml in {}", .0.display())]
    Nothing(PathBuf),
    /// There were rules, and now there are none.
    #[error(
        "{} has no rules any more; the last ones stay. To limit nobody, write a rule with \
         limits = [\"unlimited\"]",
        .0.display()
    )]
    Emptied(PathBuf),
    /// It says something wrong.
    #[error(transparent)]
    Rules(#[from] RuleErrors),
}
