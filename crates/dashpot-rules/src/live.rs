//! Rules that are read again when their file changes.

use std::fs;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use xxhash_rust::xxh3::xxh3_64;

use crate::set::LoadError;
use crate::{RuleSet, Watch, diff, load};

/// Rules that may be replaced while they are used. Clones are the same rules.
///
/// A request is judged by one set of rules from beginning to end. What was counted goes on under the
/// new rules where policy name, window and algorithm are the same.
#[derive(Clone, Debug)]
pub struct LiveRules(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rules: ArcSwap<RuleSet>,
    generation: AtomicU64,
    /// Held by whoever replaces them.
    replacing: Mutex<()>,
    /// The files they were last read from.
    read: Mutex<Vec<Seen>>,
}

impl LiveRules {
    /// These rules, until they are replaced.
    #[must_use]
    pub fn new(rules: RuleSet) -> Self {
        Self(Arc::new(Inner {
            read: Mutex::new(rules.files.clone()),
            rules: ArcSwap::from_pointee(rules),
            generation: AtomicU64::new(1),
            replacing: Mutex::new(()),
        }))
    }

    /// The rules as they are now.
    #[must_use]
    pub fn current(&self) -> Arc<RuleSet> {
        self.0.rules.load_full()
    }

    /// The same for a moment: faster, and not to be held while waiting.
    #[must_use]
    pub fn borrow(&self) -> impl Deref<Target = Arc<RuleSet>> + use<> {
        self.0.rules.load()
    }

    /// How many sets of rules there have been.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.0.generation.load(Ordering::Acquire)
    }

    /// Goes on with these rules, and says what is different.
    pub fn replace(&self, mut rules: RuleSet) -> Reload {
        let _one_at_a_time = self.0.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current();
        rules.succeed(&before);
        let changes = diff(&before, &rules);
        self.0.rules.store(Arc::new(rules));
        let generation = self.0.generation.fetch_add(1, Ordering::AcqRel) + 1;
        Reload { generation, changes }
    }

    /// Reads a file or directory now, and goes on with what it says.
    ///
    /// # Errors
    /// If it cannot be read, is wrong, or has no rules any more; then the last good rules stay.
    pub fn reload(&self, path: impl AsRef<Path>) -> Result<Reload, LoadError> {
        let path = path.as_ref();
        let rules = RuleSet::load(path)?;
        // That is how a file looks that was cut short.
        if rules.rules.is_empty() && !self.current().rules.is_empty() {
            return Err(LoadError::Emptied(path.to_owned()));
        }
        let files = rules.files.clone();
        let reloaded = self.replace(rules);
        *self.0.read.lock().unwrap_or_else(PoisonError::into_inner) = files;
        Ok(reloaded)
    }

    /// The files they were last read from, by whomever.
    fn read(&self) -> Vec<Seen> {
        self.0.read.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Loads rules from a file or directory, and again whenever something in it changes.
    ///
    /// Files are looked at twice a second, by their content: that works on every file system and
    /// with every way of replacing a file, a swapped link to a directory of them included. What is
    /// found is believed when it stays the same for one more look, so nobody runs on half a file. If
    /// it is wrong, or has no rules any more, `report` is told and the last good rules stay.
    ///
    /// # Errors
    /// If they cannot be loaded now.
    pub fn watch(
        path: impl Into<PathBuf>,
        report: impl FnMut(Result<Reload, LoadError>) + Send + 'static,
    ) -> Result<(Self, Watch), LoadError> {
        Self::watch_every(path, Duration::from_millis(500), report)
    }

    /// [`watch`](Self::watch), at another pace.
    ///
    /// # Errors
    /// If they cannot be loaded now.
    pub fn watch_every(
        path: impl Into<PathBuf>,
        every: Duration,
        mut report: impl FnMut(Result<Reload, LoadError>) + Send + 'static,
    ) -> Result<(Self, Watch), LoadError> {
        let path = path.into();
        let rules = RuleSet::load(&path)?;
        let settled = rules.files.clone();
        let live = Self::new(rules);
        let (watched, looked_at) = (live.clone(), live.clone());
        let mut is_failing = false;
        let look_at = path.clone();
        // Files that are as they were are a change, too, if somebody has read them meanwhile when they were not.
        let look = move |(settled, _): &(Vec<Seen>, Vec<Seen>)| {
            (Seen::all(&look_at, settled), looked_at.read())
        };
        let changed = move |(now, read): (Vec<Seen>, Vec<Seen>)| {
            // Somebody who did not wait for this has read them already.
            if !is_failing && now == watched.current().files {
                return (now, read);
            }
            let reloaded = watched.reload(&path);
            is_failing = reloaded.is_err();
            let mut settled = now;
            match &reloaded {
                Ok(_) => settled.clone_from(&watched.current().files),
                // Said once, until something is different. What they name may be put right without a change
                // of theirs.
                Err(LoadError::Rules(errors)) => {
                    let is_new = |named: &Seen| !settled.iter().any(|seen| seen.path == named.path);
                    let new = errors.named.iter().filter(|named| is_new(named)).cloned();
                    settled.extend(new.collect::<Vec<_>>());
                    settled = Seen::in_order(settled);
                }
                Err(_) => {}
            }
            report(reloaded);
            (settled, watched.read())
        };
        let known = (settled.clone(), settled);
        let watch = Watch::start("dashpot-rules", every, known, look, changed);
        let watch = watch.map_err(|error| LoadError::Read { path: PathBuf::new(), error })?;
        Ok((live, watch))
    }
}

impl From<RuleSet> for LiveRules {
    fn from(rules: RuleSet) -> Self {
        Self::new(rules)
    }
}

/// New rules are in use.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reload {
    /// How many sets of rules there have been.
    pub generation: u64,
    /// What is different, in words.
    pub changes: Vec<String>,
}

/// A file, and a hash of what it said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) path: PathBuf,
    content: Option<u64>,
}

impl Seen {
    pub(crate) fn new(path: PathBuf, content: &[u8]) -> Self {
        Self { path, content: Some(xxh3_64(content)) }
    }

    pub(crate) const fn missing(path: PathBuf) -> Self {
        Self { path, content: None }
    }

    /// How all files look now: those of the rules, and those that were named when they were read.
    fn all(path: &Path, before: &[Self]) -> Vec<Self> {
        let rules = load::files(path).map(|(files, _)| files).unwrap_or_default();
        let named = before.iter().map(|seen| &seen.path).filter(|path| !rules.contains(path));
        let look = |path: &PathBuf| {
            let content = fs::read(path).ok().map(|content| xxh3_64(&content));
            Self { path: path.clone(), content }
        };
        Self::in_order(rules.iter().chain(named).map(look).collect())
    }

    /// Each file once: rules may name what is beside them.
    pub(crate) fn in_order(mut all: Vec<Self>) -> Vec<Self> {
        all.sort_by(|one, other| one.path.cmp(&other.path));
        all.dedup_by(|one, other| one.path == other.path);
        all
    }
}
