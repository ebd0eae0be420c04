//! From files as they are written to limits that can be found.

use std::sync::Arc;

use dashpot::{Algorithm, Policy};
use dashpot_rules::{OnStoreError, Rule, Tally};
use serde_saphyr::Spanned;

use super::limits::{HashMap, Limit, Limits, Node};
use super::message::Unit;
use super::pattern::Pattern;
use super::problem::{Problem, Problems};
use super::yaml::{self, Descriptor, RateLimit};

/// The most levels there may be, and entries of a descriptor.
pub(crate) const LEVELS_MAX: usize = 32;

/// The longest name of a policy, in bytes; longer ones are cut, and told apart by a hash.
const NAME_MAX: usize = 128;

/// What the YAML does not say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Terms {
    pub(crate) algorithm: Algorithm,
    pub(crate) on_store_error: OnStoreError,
    /// Whether it is counted on Redis, which cannot keep every limit exactly.
    pub(crate) on_redis: bool,
}

impl Terms {
    /// The policy of so many in a unit.
    pub(crate) fn policy(self, name: &str, count: u32, unit: Unit) -> Result<Policy, String> {
        let policy = unit.policy(name, count, self.algorithm).map_err(|wrong| wrong.to_string())?;
        if self.on_redis {
            policy.fits_micros().map_err(|wrong| wrong.to_string())?;
        }
        Ok(policy)
    }
}

/// A file: its name and what is in it.
pub(super) type Source = (String, String);

/// Makes limits of files; or says everything that is wrong with them. What came of limits of the same name before goes on.
pub(super) fn compile<'b>(
    sources: &'b [Source],
    terms: Terms,
    before: &'b HashMap<String, Arc<Tally>>,
) -> Result<Limits, Problems> {
    let mut compiler = Compiler {
        terms,
        before,
        limits: Limits::default(),
        problems: Vec::new(),
        file: String::new(),
        text: "",
    };
    for (name, text) in sources {
        compiler.file.clone_from(name);
        compiler.text = text;
        match yaml::read(name, text) {
            Ok(file) => compiler.file(&file),
            Err(problem) => compiler.problems.push(problem),
        }
    }
    if compiler.problems.is_empty() {
        Ok(compiler.limits)
    } else {
        Err(Problems(compiler.problems))
    }
}

struct Compiler<'b> {
    terms: Terms,
    before: &'b HashMap<String, Arc<Tally>>,
    limits: Limits,
    problems: Vec<Problem>,
    /// The one that is read, and what is in it.
    file: String,
    text: &'b str,
}

impl Compiler<'_> {
    fn wrong<T>(&mut self, at: &Spanned<T>, message: impl Into<String>) {
        let place = yaml::place(&at.referenced);
        self.problems.push(Problem::new(&self.file, Some(place), message));
    }

    /// Points at the key, which is what is to go.
    fn unsupported<T>(&mut self, at: &Spanned<T>, key: &str, message: &str) {
        let place = yaml::key_before(self.text, yaml::place(&at.referenced), key);
        self.problems.push(Problem::new(&self.file, Some(place), format!("`{key}` {message}")));
    }

    fn file(&mut self, file: &yaml::File) {
        let Some(domain) = file.domain.as_ref().filter(|domain| !domain.value.is_empty()) else {
            let message = "a file is about a `domain`, and this one names none";
            match &file.domain {
                Some(empty) => self.wrong(empty, message),
                None => self.problems.push(Problem::new(&self.file, Some((1, 1)), message)),
            }
            return;
        };
        let name = domain.value.clone();
        // Files may be about the same one.
        let mut level = self.limits.domains.remove(&name).unwrap_or_default();
        self.level(&mut level, file.descriptors.as_deref().unwrap_or_default(), &name, 1);
        self.limits.domains.insert(name, level);
    }

    /// Adds descriptors to a level. `path` is the name of what they are in.
    fn level(
        &mut self,
        level: &mut super::limits::Level,
        descriptors: &[Spanned<Descriptor>],
        path: &str,
        depth: usize,
    ) {
        for descriptor in descriptors {
            if depth > LEVELS_MAX {
                self.wrong(descriptor, format!("at most {LEVELS_MAX} levels of descriptors"));
                return;
            }
            let Some(key) = descriptor.value.key.as_ref().filter(|key| !key.value.is_empty())
            else {
                match &descriptor.value.key {
                    Some(empty) => self.wrong(empty, "a descriptor's `key` is not empty"),
                    None => self.wrong(descriptor, "a descriptor has a `key`"),
                }
                continue;
            };
            let value = descriptor.value.value.as_ref().map_or("", |value| &value.value);
            let name = match value {
                "" => format!("{path}.{}", key.value),
                value => format!("{path}.{}_{value}", key.value),
            };
            let branch = level.0.entry(key.value.clone()).or_default();
            let pattern = Pattern::read(value);
            let is_known = match (value, &pattern) {
                ("", _) => branch.any.is_some(),
                (_, Some(pattern)) => branch.patterns.iter().any(|(known, _)| known == pattern),
                (value, None) => branch.exact.contains_key(value),
            };
            if is_known {
                self.wrong(descriptor, format!("`{name}` is there twice"));
                continue;
            }
            let node = self.node(&descriptor.value, value, &name, depth);
            let branch = level.0.entry(key.value.clone()).or_default();
            match (value, pattern) {
                ("", _) => branch.any = Some(node),
                (_, Some(pattern)) => branch.patterns.push((pattern, node)),
                (value, None) => drop(branch.exact.insert(value.to_owned(), node)),
            }
        }
    }

    fn node(&mut self, written: &Descriptor, value: &str, name: &str, depth: usize) -> Node {
        let mut node = Node::default();
        let is_set = |flag: &&Spanned<bool>| flag.value;
        if let Some(at) = written.quota_mode.as_ref().filter(is_set) {
            let message = "is not supported: remove it, and the limit denies by itself";
            self.unsupported(at, "quota_mode", message);
        }
        if let Some(at) = &written.metadata {
            let message = "is not supported: Envoy is told of headers and nothing else; remove it";
            self.unsupported(at, "metadata", message);
        }
        let metrics = [
            ("detailed_metric", &written.detailed_metric),
            ("value_to_metric", &written.value_to_metric),
        ];
        for (key, at) in metrics {
            // Said of the first; the others are like it.
            let is_said = |said: &String| said.contains(key);
            if let Some(at) = at.as_ref().filter(is_set)
                && !self.limits.advice.iter().any(is_said)
            {
                let message = format!(
                    "`{key}` changes nothing: metrics are by descriptor as it is written, and never carry values; \
                     GET /v1/keys/top tells which are denied most"
                );
                let place = yaml::place(&at.referenced);
                let advice = Problem::new(&self.file, Some(place), message);
                self.limits.advice.push(advice.to_string());
            }
        }
        if let Some(at) = written.share_threshold.as_ref().filter(is_set) {
            if value.contains('*') {
                node.shared = Some(value.to_owned());
            } else {
                self.wrong(at, "`share_threshold` is for a `value` with a `*` in it");
            }
        }
        if let Some(limit) = &written.rate_limit {
            node.limit = self.limit(limit, written.shadow_mode.unwrap_or(false), name);
        }
        let below = written.descriptors.as_deref().unwrap_or_default();
        self.level(&mut node.below, below, name, depth + 1);
        node
    }

    fn limit(&mut self, at: &Spanned<RateLimit>, shadow: bool, path: &str) -> Option<Limit> {
        let written = &at.value;
        let name = written.name.clone().unwrap_or_default();
        let mut replaces = Vec::new();
        for replaced in written.replaces.as_deref().unwrap_or_default() {
            match replaced.value.name.as_deref().unwrap_or_default() {
                "" => self.wrong(replaced, "`replaces` names the limit it is about: `- name: …`"),
                own if own == name => {
                    self.wrong(replaced, format!("`{name}` cannot replace itself"));
                }
                other => replaces.push(other.to_owned()),
            }
        }
        let count = written.requests_per_unit.unwrap_or_default();
        if written.unlimited == Some(true) {
            // As there: a unit that is none is not looked at.
            let is_unit = |unit: &&Spanned<String>| Unit::named(&unit.value).is_some();
            if let Some(unit) = written.unit.as_ref().filter(is_unit) {
                self.wrong(unit, "what is `unlimited` has no `unit`");
            }
            return Some(Limit { rule: None, count, unit: Unit::Unknown, name, replaces });
        }
        let Some(unit) = &written.unit else {
            self.wrong(at, "a limit has a `unit`: second, minute, hour, day, week, month or year");
            return None;
        };
        let Some(known) = Unit::named(&unit.value) else {
            let message = format!(
                "`{}` is no unit; there are second, minute, hour, day, week, month and year",
                unit.value
            );
            self.wrong(unit, message);
            return None;
        };
        let called = policy_name(path);
        let policy = match self.terms.policy(&called, count, known) {
            Ok(policy) => policy,
            Err(wrong) => {
                self.wrong(at, wrong);
                return None;
            }
        };
        let tally = self.tally(&called);
        let rule = Rule::detached(called, policy, shadow, self.terms.on_store_error, tally);
        Some(Limit { rule: Some(rule), count, unit: known, name, replaces })
    }

    /// What came of a limit before, to be gone on with.
    fn tally(&mut self, name: &str) -> Arc<Tally> {
        let known = self.limits.tallies.get(name).or_else(|| self.before.get(name));
        let tally = known.cloned().unwrap_or_default();
        self.limits.tallies.insert(name.to_owned(), tally.clone());
        tally
    }
}

/// What a policy can be called, and a metric can say: something short that can be printed.
fn policy_name(path: &str) -> String {
    if path.len() <= NAME_MAX && !path.chars().any(char::is_control) {
        return path.to_owned();
    }
    let mut name: String =
        path.chars().map(|one| if one.is_control() { '?' } else { one }).collect();
    let mut end = NAME_MAX;
    while !name.is_char_boundary(end.min(name.len())) {
        end -= 1;
    }
    name.truncate(end);
    format!("{name}~{:016x}", xxhash_rust::xxh3::xxh3_64(path.as_bytes()))
}
