//! What a request would be held to, and why.

use std::fmt;

use dashpot::Key;

use crate::plan::Refusal;
use crate::secret::presentable;
use crate::{Descriptor, Fact, RuleSet};

/// What a request would be held to, and why: which rules match, which facts were believed, which
/// keys are cut. It prints itself for people. Secrets are shown as hashes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Explanation {
    /// The facts that rules asked for.
    pub facts: Vec<ExplainedFact>,
    /// The priority that counts, and what it means: `weight 10, class critical`.
    pub priority: Option<(String, String)>,
    /// The rules that match.
    pub rules: Vec<ExplainedRule>,
    /// Why no limit matters, if none does.
    pub verdict: Option<String>,
}

/// A fact, and why it is so.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedFact {
    /// The fact.
    pub fact: Fact,
    /// What it is, if anything is known or believed.
    pub value: Option<String>,
    /// Why.
    pub why: String,
}

/// A rule that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExplainedRule {
    /// Its name.
    pub name: String,
    /// What it matches.
    pub matches: String,
    /// The key it cuts, value by value; `None` if it does not apply.
    pub key: Option<Vec<String>>,
    /// The policies that are asked, as in `api-min: 60/min, token-bucket`.
    pub policies: Vec<String>,
    /// Whether it can deny.
    pub enforced: bool,
}

impl Explanation {
    pub(crate) fn of(set: &RuleSet, request: &impl Descriptor) -> Self {
        let selection = set.select(request);
        let path = selection.path.as_deref().unwrap_or_else(|| request.path());
        let plan = selection.plan(request);
        let verdict = match plan.refusal() {
            Some(Refusal::Blocked(fact)) => Some(format!("refused: {fact} is on the block list")),
            Some(Refusal::Absent(rule)) => {
                Some(format!("refused: rule `{}` insists on {}", rule.name, rule.by_summary()))
            }
            Some(Refusal::Limited(_) | Refusal::Unavailable(_)) => None, // Not before it is decided.
            None => match (set.allow.find(request, path), selection.priority) {
                (Some(fact), _) => Some(format!("allowed: {fact} is on the allow list")),
                (None, Some(first)) if first.is_unlimited() => {
                    Some(format!("allowed: priority `{}` is unlimited", first.name))
                }
                _ if selection.rules.is_empty() => Some("allowed: no rule matches".to_owned()),
                _ => None,
            },
        };
        let mut facts: Vec<&Fact> = selection.rules.iter().flat_map(|rule| rule.facts()).collect();
        if selection.rules.iter().any(|rule| rule.has_tiers()) {
            facts.push(&Fact::Tier);
        }
        facts.sort();
        facts.dedup();
        let explain = |fact: &Fact| ExplainedFact {
            fact: fact.clone(),
            value: request.fact(fact).map(|value| show(&presentable(fact, value))),
            why: request.why(fact),
        };
        let rules = selection.rules.iter().map(|rule| {
            let ask = plan.asks.iter().find(|ask| std::ptr::eq(ask.rule, *rule));
            ExplainedRule {
                name: rule.name.clone(),
                matches: rule.condition.summary(),
                key: match &rule.capacity {
                    Some(_) => Some(Vec::new()),
                    None => ask.map(|ask| key_values(plan.key(ask))),
                },
                policies: match (&rule.capacity, ask) {
                    (Some(capacity), _) => vec![capacity.summary()],
                    (None, Some(ask)) => ask.policies.iter().map(ToString::to_string).collect(),
                    (None, None) => Vec::new(),
                },
                enforced: ask
                    .map_or(rule.capacity.is_some() && rule.is_enforced(&[]), |ask| ask.enforced),
            }
        });
        Self {
            // A parameter belongs to a rule, and is seen in its key.
            facts: { facts.into_iter() }
                .filter(|fact| !matches!(fact, Fact::Param(_)))
                .map(explain)
                .collect(),
            priority: selection.priority.map(|first| (first.name.clone(), first.summary())),
            rules: rules.collect(),
            verdict,
        }
    }
}

fn show(value: &[u8]) -> String {
    value.escape_ascii().to_string()
}

/// What a key that a rule has cut is made of: `ip=203.0.113.7`, and so on. Secrets are hashes.
#[must_use]
pub fn key_values(key: Key<'_>) -> Vec<String> {
    let mut key = key.as_bytes();
    let mut parts = Vec::new();
    while let Some((part, rest)) = next_value(key) {
        parts.push(show(part));
        key = rest;
    }
    let pair = |pair: &[String]| match pair {
        [name, _] if name.is_empty() => "(absent)".to_owned(),
        [name, value] => format!("{name}={value}"),
        _ => String::new(),
    };
    parts.chunks(2).map(pair).collect()
}

/// The first value of a key: its length, seven bits to a byte, and as many bytes.
fn next_value(key: &[u8]) -> Option<(&[u8], &[u8])> {
    let digits = key.iter().position(|byte| byte & 0x80 == 0)? + 1;
    let (length, rest) = key.split_at_checked(digits)?;
    let length = length.iter().rev().fold(0_usize, |sum, byte| {
        sum.saturating_mul(128).saturating_add(usize::from(byte & 0x7f))
    });
    rest.split_at_checked(length)
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(verdict) = &self.verdict {
            writeln!(f, "{verdict}")?;
        }
        if let Some((name, what)) = &self.priority {
            writeln!(f, "priority `{name}`, {what}")?;
        }
        for fact in &self.facts {
            let value = fact.value.as_deref().unwrap_or("(absent)");
            writeln!(f, "fact {} = {value}: {}", fact.fact, fact.why)?;
        }
        for rule in &self.rules {
            let shadow = if rule.enforced { "" } else { ", only counted" };
            match &rule.key {
                None => writeln!(f, "rule `{}` ({}) is not asked", rule.name, rule.matches)?,
                Some(key) => {
                    let key = if key.is_empty() { "one for all".into() } else { key.join(" ") };
                    writeln!(f, "rule `{}` ({}){shadow}: key {key}", rule.name, rule.matches)?;
                    for policy in &rule.policies {
                        writeln!(f, "    {policy}")?;
                    }
                }
            }
        }
        Ok(())
    }
}
