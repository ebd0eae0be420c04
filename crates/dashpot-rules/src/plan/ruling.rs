//! What came of a request.

use dashpot::{Decision, PolicyStatus, Reservation, Timestamp};

use crate::Fact;
use crate::rule::Rule;

/// Why a request is refused.
#[derive(Clone, Copy, Debug)]
pub enum Refusal<'r> {
    /// A limit is reached; this rule's is the one to wait for.
    Limited(&'r Rule),
    /// The caller is on the block list, by this fact.
    Blocked(&'r Fact),
    /// A fact is missing that this rule insists on.
    Absent(&'r Rule),
    /// The store cannot answer, and this rule does not let pass what was not counted.
    Unavailable(&'r Rule),
}

/// What came of one rule.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'d, 'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// Whether it is enforced, or only counts.
    pub enforced: bool,
    /// How its policies stand; nothing if it was not asked after all.
    pub statuses: &'d [PolicyStatus<'r>],
    /// The store's time when it was asked.
    pub at: Timestamp,
}

/// What came of a request.
#[derive(Debug, Default)]
#[must_use = "a ruling that nobody looks at limits nothing"]
pub struct Ruling<'r> {
    pub(super) refusal: Option<Refusal<'r>>,
    pub(super) decision: Option<Decision<'r>>,
    pub(super) pending: Vec<Pending<'r>>,
    /// What the store said about rules that only count, by their places.
    pub(super) rehearsed: Vec<(usize, Decision<'r>)>,
    /// Whether the store could not answer.
    pub(super) is_failed: bool,
}

/// Something that was charged and is to be settled.
#[derive(Debug)]
pub struct Pending<'r> {
    /// What was charged.
    pub reservation: Reservation,
    /// By which rule.
    pub rule: &'r Rule,
    /// Whether to the store that stood in.
    pub local: bool,
}

impl<'r> Ruling<'r> {
    /// Why the request is refused, if it is.
    #[must_use]
    pub const fn refusal(&self) -> Option<Refusal<'r>> {
        self.refusal
    }

    /// What the store said about the rules that are enforced, if it was asked.
    #[must_use]
    pub const fn decision(&self) -> Option<&Decision<'r>> {
        self.decision.as_ref()
    }

    /// Whether the store could not answer, and each rule's `on_store_error` was followed.
    #[must_use]
    pub const fn is_degraded(&self) -> bool {
        self.is_failed
    }

    /// Takes what is to be settled.
    pub fn take_pending(&mut self) -> Vec<Pending<'r>> {
        std::mem::take(&mut self.pending)
    }
}
