//! A decision as JSON.

use std::time::Duration;

use dashpot::{Decision, Outcome, PolicyStatus};
use serde::Serialize;

/// A decision as JSON; durations in seconds.
#[derive(Debug, Serialize)]
pub(crate) struct Answer<'a> {
    outcome: &'static str,
    delay: f64,
    policies: Vec<PolicyAnswer<'a>>,
}

#[derive(Debug, Serialize)]
struct PolicyAnswer<'a> {
    policy: &'a str,
    outcome: &'static str,
    limit: u64,
    remaining: u64,
    reset_after: f64,
    /// Absent if there is no wait after which it would pass.
    retry_after: Option<f64>,
}

impl<'a> Answer<'a> {
    /// The answer to a check that somebody made up on the spot: its policy goes by its key.
    pub(crate) fn new(decision: &Decision<'_>, key: &'a str) -> Self {
        let policies = decision.statuses().iter();
        Self {
            outcome: outcome(decision.outcome()),
            delay: decision.delay().as_secs_f64(),
            policies: policies.map(|status| PolicyAnswer::new(status, key)).collect(),
        }
    }
}

impl<'a> PolicyAnswer<'a> {
    fn new(status: &PolicyStatus<'_>, policy: &'a str) -> Self {
        Self {
            policy,
            outcome: outcome(status.outcome()),
            limit: status.limit(),
            remaining: status.remaining(),
            reset_after: status.reset_after().as_secs_f64(),
            retry_after: status.retry_after().as_ref().map(Duration::as_secs_f64),
        }
    }
}

/// The word for an outcome.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Allow => "allow",
        Outcome::Deny => "deny",
    }
}
