//! A script of calls to a store, to be [replayed](crate::replay()).

use std::time::Duration;

use dashpot::{Policy, Timestamp};

/// A script: when it starts, who takes part, and what happens.
///
/// Steps name policies and keys by number, counted round and round, so that a script stays
/// meaningful when a shrinker takes some of them away.
#[derive(Clone, Debug)]
pub struct Trace {
    /// When it starts.
    pub start: Timestamp,
    /// The policies, each as it is defined now and perhaps later; at least one.
    pub policies: Vec<Definitions>,
    /// The keys; at least one. Choose fresh ones if the store outlives the trace.
    pub keys: Vec<Vec<u8>>,
    /// What happens, in this order.
    pub steps: Vec<Step>,
}

/// A policy, and perhaps another definition with the same name, algorithm and window (unless any will do).
#[derive(Clone, Debug)]
pub struct Definitions {
    /// What counts at first.
    pub first: Policy,
    /// What [`Step::Redefine`] changes it to, and back from.
    pub other: Option<Policy>,
}

impl Definitions {
    /// The other definition if it is asked for and there is one, else the first.
    #[must_use]
    pub fn pick(&self, other: bool) -> &Policy {
        match &self.other {
            Some(policy) if other => policy,
            _ => &self.first,
        }
    }
}

impl From<Policy> for Definitions {
    fn from(first: Policy) -> Self {
        Self { first, other: None }
    }
}

/// One check, its policy and key by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// Which policy.
    pub policy: usize,
    /// Which key.
    pub key: usize,
    /// How many units.
    pub cost: u64,
    /// Asks under the definition that is *not* in force, as an instance does that has not heard
    /// of a change yet.
    pub outdated: bool,
}

impl Ask {
    /// Asks under the definition in force.
    #[must_use]
    pub const fn new(policy: usize, key: usize, cost: u64) -> Self {
        Self { policy, key, cost, outdated: false }
    }
}

/// One thing that happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Time passes.
    Advance(Duration),
    /// The clock is set back.
    Back(Duration),
    /// Several checks in one call.
    Check(Vec<Ask>),
    /// One check, to be settled later if it passes.
    Reserve(Ask),
    /// Settles one of the reservations still open, if there is any.
    Settle {
        /// Which of them.
        which: usize,
        /// How much was really used.
        used: u64,
    },
    /// Undoes one of the reservations still open, if there is any.
    Undo {
        /// Which of them.
        which: usize,
    },
    /// An operator's wish about one key.
    Manage {
        /// Under which policy.
        policy: usize,
        /// Which key.
        key: usize,
        /// What to do.
        operation: Operation,
    },
    /// Changes a policy to its other definition, or back.
    Redefine(usize),
}

/// [`KeyOperation`](dashpot::KeyOperation), with blocks that end some time from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Only look.
    Peek,
    /// Forget what was counted.
    Reset,
    /// Deny everything for so long; for no time at all is to end a block.
    BlockFor(Duration),
    /// End a block.
    Unblock,
}
