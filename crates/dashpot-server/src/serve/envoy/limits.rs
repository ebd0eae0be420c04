//! The limits of the YAML, ready to be found.

use std::sync::Arc;

use dashpot_rules::{Rule, Tally};
use rapidhash::fast::RandomState;

use super::message::{Entry, Unit};
use super::pattern::Pattern;

/// Fast, and seeded: what is looked up may be a caller's choice.
pub(super) type HashMap<K, V> = std::collections::HashMap<K, V, RandomState>;

/// The limits of all files.
#[derive(Debug, Default)]
pub(crate) struct Limits {
    pub(super) domains: HashMap<String, Level>,
    /// What came of each, by its name.
    pub(super) tallies: HashMap<String, Arc<Tally>>,
    /// What changes nothing, and may be meant to.
    pub(crate) advice: Vec<String>,
}

/// One level of descriptors, by key.
#[derive(Debug, Default)]
pub(super) struct Level(pub(super) HashMap<String, Branch>);

/// The descriptors of one key.
#[derive(Debug, Default)]
pub(super) struct Branch {
    pub(super) exact: HashMap<String, Node>,
    /// In the order of the file.
    pub(super) patterns: Vec<(Pattern, Node)>,
    pub(super) any: Option<Node>,
}

/// A descriptor.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) limit: Option<Limit>,
    pub(super) below: Level,
    /// What stands for the values that share a counter.
    pub(super) shared: Option<String>,
}

/// A limit as it was written.
#[derive(Debug)]
pub(crate) struct Limit {
    /// What is asked; `None` is `unlimited`.
    pub(crate) rule: Option<Rule>,
    pub(crate) count: u32,
    pub(crate) unit: Unit,
    pub(crate) name: String,
    pub(crate) replaces: Vec<String>,
}

/// A limit that was found, and what to count by instead of the values, where values share a counter.
#[derive(Debug)]
pub(crate) struct Found<'l> {
    pub(crate) limit: &'l Limit,
    pub(crate) shared: Vec<(usize, &'l str)>,
}

impl Limits {
    pub(crate) fn knows(&self, domain: &str) -> bool {
        self.domains.contains_key(domain)
    }

    /// The limit of a descriptor: of each level the most specific that matches; as many levels as entries.
    pub(crate) fn find(&self, domain: &str, entries: &[Entry]) -> Option<Found<'_>> {
        let mut level = self.domains.get(domain)?;
        // Mostly there are none, and then nothing is allocated.
        let mut shared = Vec::new();
        let mut found = None;
        for (number, entry) in entries.iter().enumerate() {
            let node = level.0.get(&entry.key)?.find(&entry.value)?;
            shared.extend(node.shared.as_deref().map(|pattern| (number, pattern)));
            found = node.limit.as_ref();
            level = &node.below;
        }
        Some(Found { limit: found?, shared })
    }

    /// All limits that count something.
    pub(crate) fn rules(&self) -> Vec<&Rule> {
        let mut rules = Vec::new();
        let mut domains: Vec<_> = self.domains.iter().collect();
        domains.sort_by_key(|(domain, _)| domain.as_str());
        for (_, level) in domains {
            level.gather(&mut rules);
        }
        rules
    }

    /// What came of each, by its name.
    pub(crate) fn tallies(&self) -> impl Iterator<Item = (&str, &Tally)> {
        self.tallies.iter().map(|(name, tally)| (name.as_str(), &**tally))
    }
}

impl Level {
    fn gather<'l>(&'l self, rules: &mut Vec<&'l Rule>) {
        let mut keys: Vec<_> = self.0.iter().collect();
        keys.sort_by_key(|(key, _)| key.as_str());
        for (_, branch) in keys {
            let mut exact: Vec<_> = branch.exact.iter().collect();
            exact.sort_by_key(|(value, _)| value.as_str());
            let exact = exact.into_iter().map(|(_, node)| node);
            let patterns = branch.patterns.iter().map(|(_, node)| node);
            for node in exact.chain(patterns).chain(&branch.any) {
                rules.extend(node.limit.as_ref().and_then(|limit| limit.rule.as_ref()));
                node.below.gather(rules);
            }
        }
    }
}

impl Branch {
    fn find(&self, value: &str) -> Option<&Node> {
        if let Some(node) = self.exact.get(value) {
            return Some(node);
        }
        let matching = self.patterns.iter().find(|(pattern, _)| pattern.matches(value));
        matching.map(|(_, node)| node).or(self.any.as_ref())
    }
}
