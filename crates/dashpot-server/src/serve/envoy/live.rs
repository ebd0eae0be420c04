//! The YAML in use, which may be replaced while it is used.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use dashpot::Algorithm;
use dashpot_rules::{RuleSet, Watch};
use parking_lot::Mutex;

use super::compile::{Source, Terms, compile};
use super::limits::Limits;
use super::problem::{Problem, Problems};

/// How often files are looked at.
const LOOK: Duration = Duration::from_millis(500);

/// Limits that may be replaced while they are used.
#[derive(Debug)]
pub(crate) struct LiveLimits {
    current: ArcSwap<Limits>,
    pub(crate) terms: Terms,
    /// Whether each descriptor is counted for itself, and what is denied as well.
    pub(crate) counts_denied: bool,
    /// A directory of files, or one file; none if there is no YAML.
    place: Option<PathBuf>,
    /// The files as they were last read.
    seen: Arc<Mutex<Result<Vec<Source>, Problems>>>,
}

impl LiveLimits {
    /// None at all.
    pub(crate) fn none(rules: &RuleSet) -> Result<Self, Problems> {
        let terms = Terms {
            algorithm: Algorithm::FixedWindow,
            on_store_error: rules.store().on_error,
            on_redis: false,
        };
        Self::load(None, terms, false)
    }

    /// Reads what is there.
    pub(crate) fn load(
        place: Option<PathBuf>,
        terms: Terms,
        counts_denied: bool,
    ) -> Result<Self, Problems> {
        let seen = Arc::new(Mutex::new(Ok(Vec::new())));
        let live = Self { current: ArcSwap::default(), terms, counts_denied, place, seen };
        live.reload()?;
        Ok(live)
    }

    pub(crate) fn current(&self) -> Arc<Limits> {
        self.current.load_full()
    }

    /// The same for a moment: faster, and not to be held while waiting.
    pub(crate) fn borrow(&self) -> arc_swap::Guard<Arc<Limits>> {
        self.current.load()
    }

    pub(crate) fn place(&self) -> Option<&Path> {
        self.place.as_deref()
    }

    /// Reads everything again; if it is wrong, the last good limits stay.
    pub(crate) fn reload(&self) -> Result<(), Problems> {
        let Some(place) = &self.place else { return Ok(()) };
        let sources = read(place);
        self.seen.lock().clone_from(&sources);
        let before = self.current();
        let limits = compile(&sources?, self.terms, &before.tallies)?;
        self.current.store(Arc::new(limits));
        Ok(())
    }

    /// Tells when files change, until the watch is dropped.
    pub(crate) fn watch(&self, changed: impl Fn() + Send + 'static) -> io::Result<Option<Watch>> {
        let Some(place) = self.place.clone() else { return Ok(None) };
        let look = move |_: &Result<Vec<Source>, Problems>| read(&place);
        // What it was served by so far: it may have changed since.
        let known = self.seen.lock().clone();
        let seen = self.seen.clone();
        let tell = move |now| {
            // Somebody who did not wait for this has read it already.
            let is_new = *seen.lock() != now;
            if is_new {
                changed();
            }
            now
        };
        Watch::start("dashpot-envoy", LOOK, known, look, tell).map(Some)
    }
}

/// All files, in the order of their names.
fn read(place: &Path) -> Result<Vec<Source>, Problems> {
    let wrong = |path: &Path, error: &dyn std::fmt::Display| {
        Problems(vec![Problem::new(&path.display().to_string(), None, error.to_string())])
    };
    let mut files = Vec::new();
    if place.is_dir() {
        for found in fs::read_dir(place).map_err(|error| wrong(place, &error))? {
            let path = found.map_err(|error| wrong(place, &error))?.path();
            let is_yaml = path.extension().is_some_and(|end| end == "yaml" || end == "yml");
            // Directories may be called so, and what begins with a dot is somebody else's. Whatever else is called so is to be
            // read: if it cannot be, limits would be missing.
            let is_hidden =
                path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if is_yaml && !is_hidden && !path.is_dir() {
                files.push(path);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(wrong(place, &"there is no *.yaml in it"));
        }
    } else {
        files.push(place.to_owned());
    }
    let mut sources = Vec::new();
    for path in files {
        let found = fs::metadata(&path).map_err(|error| wrong(&path, &error))?;
        if !found.is_file() {
            return Err(wrong(&path, &"it is no file"));
        }
        let text = fs::read_to_string(&path).map_err(|error| wrong(&path, &error))?;
        sources.push((path.display().to_string(), text));
    }
    Ok(sources)
}
