//! A decision as JSON.

use std::borrow::Cow;
use std::time::Duration;

use dashpot::{Decision, Outcome, PolicyStatus};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::seconds::Seconds;

/// How a question was answered. Durations are seconds.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Answer<'a> {
    /// Whether it may be done.
    pub(crate) outcome: OutcomeWord,
    /// How long to wait before doing it: a queue's delay.
    pub(crate) delay: Seconds,
    /// How each limit stands.
    pub(crate) policies: Vec<PolicyAnswer<'a>>,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<Reason>,
    /// The rule that denied it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<Cow<'a, str>>,
    /// Whether the store did not answer, and this was decided without it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(crate) degraded: bool,
    /// What to settle with, if it was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reservation: Option<String>,
}

/// How one limit stands.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(crate) struct PolicyAnswer<'a> {
    /// Its name; a limit made up on the spot goes by its key.
    policy: Cow<'a, str>,
    /// What it says.
    pub(crate) outcome: OutcomeWord,
    /// What it allows.
    limit: u64,
    /// What is left of that.
    pub(crate) remaining: u64,
    /// Until all of it is back.
    pub(crate) reset_after: Seconds,
    /// Until the same would be allowed; nothing if it was, or no wait would do.
    pub(crate) retry_after: Option<Seconds>,
}

/// What a limit says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OutcomeWord {
    Allow,
    Deny,
}

/// Why something is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Reason {
    /// A limit is reached.
    Limited,
    /// It is on a block list.
    Blocked,
    /// It lacks a fact that a rule insists on.
    Absent,
    /// The store does not answer, and nothing is let pass without it.
    Unavailable,
}

impl<'a> Answer<'a> {
    /// An answer without limits.
    pub(crate) const fn bare(outcome: OutcomeWord) -> Self {
        Self {
            outcome,
            delay: Seconds(Duration::ZERO),
            policies: Vec::new(),
            reason: None,
            rule: None,
            degraded: false,
            reservation: None,
        }
    }

    /// What a store decided, each status by the name it goes by.
    pub(crate) fn of(decision: &Decision<'_>, names: impl IntoIterator<Item = &'a str>) -> Self {
        let statuses = decision.statuses().iter().zip(names);
        Self {
            delay: Seconds(decision.delay()),
            policies: statuses.map(|(status, name)| PolicyAnswer::new(status, name)).collect(),
            reason: (!decision.is_allowed()).then_some(Reason::Limited),
            degraded: decision.is_degraded(),
            ..Self::bare(decision.outcome().into())
        }
    }
}

impl<'a> PolicyAnswer<'a> {
    pub(crate) fn new(status: &PolicyStatus<'_>, policy: &'a str) -> Self {
        Self {
            policy: policy.into(),
            outcome: status.outcome().into(),
            limit: status.limit(),
            remaining: status.remaining(),
            reset_after: Seconds(status.reset_after()),
            retry_after: status.retry_after().map(Seconds),
        }
    }
}

impl OutcomeWord {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl From<Outcome> for OutcomeWord {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Allow => Self::Allow,
            Outcome::Deny => Self::Deny,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for it")]
const fn is_false(truth: &bool) -> bool {
    !*truth
}
