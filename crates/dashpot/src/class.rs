//! Who goes first when not all can.

use std::fmt;

/// How important something is. What is less important is turned away first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Can wait for another day: reports, exports, crawlers.
    Background,
    /// Everything else.
    #[default]
    Normal,
    /// What the others are there for: payments, logins.
    Critical,
}

impl Class {
    /// All of them, the least important first.
    pub const ALL: [Self; 3] = [Self::Background, Self::Normal, Self::Critical];

    /// Its name, as rules have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Normal => "normal",
            Self::Critical => "critical",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
