//! How closely instances that share a store keep to one limit.

use std::fmt;
use std::str::FromStr;

/// How closely instances that share a store keep to one limit. A store in memory is always exact.
///
/// The book's page on accuracy has the bounds, and what was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consistency {
    /// Every check asks the store.
    #[default]
    Exact,
    /// What is asked about often is leased from the store in batches, and spent without asking. Never more is granted
    /// than the policy grants; what is out with others is not to be had meanwhile.
    Leased,
    /// What is asked about often is counted here, and told to the store every so often. A little too much may be
    /// granted, which is made up for.
    Approximate,
}

impl Consistency {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Exact, Self::Leased, Self::Approximate];

    /// The name used in rule files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Leased => "leased",
            Self::Approximate => "approximate",
        }
    }
}

impl fmt::Display for Consistency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Consistency {
    type Err = ParseConsistencyError;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|consistency| consistency.name() == name);
        found.ok_or_else(|| ParseConsistencyError(name.to_owned()))
    }
}

/// There is no such consistency.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a consistency; use exact, leased or approximate")]
pub struct ParseConsistencyError(String);
