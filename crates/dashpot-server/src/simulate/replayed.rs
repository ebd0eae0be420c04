//! What came of a log and rules, for people and machines.

use std::fmt::Write;

use dashpot_simulate::Series;
use serde::Serialize;

use crate::seconds::Seconds;
use crate::table::human;

/// What came of it.
#[derive(Debug, Serialize)]
pub(super) struct Replayed {
    /// How many requests there were.
    pub(super) requests: u64,
    /// Lines that are no request.
    pub(super) left_out: u64,
    /// The first of them, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) first_left_out: Option<String>,
    /// From when on, to when.
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) denied: u64,
    /// How many would have waited in a queue, and the longest of those waits.
    pub(super) delayed: u64,
    pub(super) longest_delay: Seconds,
    pub(super) rules: Vec<OfRule>,
    /// Who would have been denied most.
    pub(super) top: Vec<OfKey>,
    #[serde(skip)]
    pub(super) series: Series,
}

#[derive(Debug, Serialize)]
pub(super) struct OfRule {
    pub(super) rule: String,
    pub(super) allowed: u64,
    pub(super) denied: u64,
    pub(super) shadow_denied: u64,
}

#[derive(Debug, Serialize)]
pub(super) struct OfKey {
    pub(super) rule: String,
    pub(super) key: Vec<String>,
    pub(super) denied: u64,
}

impl Replayed {
    /// For people.
    pub(super) fn table(&self) -> String {
        let (from, to) = (self.from.as_deref().unwrap_or("-"), self.to.as_deref().unwrap_or("-"));
        let mut text = format!("{} requests, from {from} to {to}\n", self.requests);
        let part = self.denied as f64 * 100.0 / (self.requests as f64).max(1.0);
        let _ = writeln!(text, "{} would have been denied, {part:.2} %", self.denied);
        if self.delayed > 0 {
            let longest = human(self.longest_delay.0);
            let _ = writeln!(text, "{} would have waited, up to {longest}", self.delayed);
        }
        if let Some(first) = &self.first_left_out {
            let _ = writeln!(text, "{} lines are left out; {first}", self.left_out);
        }
        text += "\n allowed   denied   shadow  rule\n";
        for rule in &self.rules {
            let _ = writeln!(
                text,
                "{:>8}{:>9}{:>9}  {}",
                rule.allowed, rule.denied, rule.shadow_denied, rule.rule
            );
        }
        if !self.top.is_empty() {
            text += "\n  denied  rule                  key\n";
        }
        for one in &self.top {
            // A log has what strangers wrote.
            let key: Vec<_> =
                one.key.iter().map(|value| value.escape_debug().to_string()).collect();
            let _ = writeln!(text, "{:>8}  {:<20}  {}", one.denied, one.rule, key.join(" "));
        }
        text
    }
}
