//! Rule files: which limits apply to a request, and by what it is counted.
//!
//! ```
//! use dashpot::MemoryStore;
//! use dashpot_rules::{Fact, Facts, RuleSet};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let rules = RuleSet::parse(r#"
//!     [[rule]]
//!     name = "api"
//!     match = { path = "/api/*" }
//!     by = ["user | ip"]                 # the first that is present
//!     limits = ["60/min", "1000/day"]    # both, all or nothing
//! "#)?;
//!
//! let (store, local) = (MemoryStore::new(), MemoryStore::new());
//! let request = Facts::new()
//!     .with(Fact::Path, "/api/books")
//!     .ip("203.0.113.7".parse()?);
//! let ruling = rules.select(&request).plan(&request).decide(&store, &local).await;
//! assert!(ruling.refusal().is_none());
//! # Ok(())
//! # }
//! ```
//!
//! A text is read with all its mistakes ([`RuleErrors`]: each with file, line, column, excerpt and
//! hint) and compiled to a [`RuleSet`]. A request's facts are a [`Descriptor`]; [`RuleSet::select`]
//! finds the rules that match, [`Selection::plan`] cuts their keys, [`Plan::decide`] asks a store.
//! [`LiveRules`] are read again when the file changes. `dashpot-http` does all this for HTTP.
//!
//! The book's `docs/rules.md` is the reference of the file.

// What ships does not panic, and cuts no number short.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]
#![forbid(unsafe_code)]

mod adaptive;
mod advice;
mod capacity;
mod compile;
mod config;
mod describe;
mod descriptor;
mod diff;
mod explain;
mod fact;
mod identity;
mod lists;
mod live;
mod load;
mod matching;
mod nearest;
mod plan;
mod problem;
mod proxy;
mod read;
mod rule;
mod schema;
mod secret;
mod set;
mod share;
mod source;
mod summary;
mod tally;
mod token;
mod watch;
mod weight;

pub use adaptive::Adaptive;
pub use capacity::{Entry, Gates};
pub use describe::{HeaderStyle, Headers, OnDeny};
pub use descriptor::{Descriptor, Facts};
pub use diff::diff;
pub use explain::{ExplainedFact, ExplainedRule, Explanation, key_values};
pub use fact::{Fact, ParseFactError};
pub use identity::{Identity, KeyHolder, Keys, Trust};
pub use live::{LiveRules, Reload};
pub use plan::{Asked, Pending, Plan, Refusal, Ruling};
pub use problem::{Problem, RuleErrors, Severity};
pub use proxy::{AccessLog, MaxBody, ParseProxyError, ProxySettings, Upstream};
pub use rule::{Absent, OnStoreError, Rule, Settle};
pub use schema::schema;
pub use set::{
    Listen, LoadError, MemorySettings, RuleSet, Selection, ServeSettings, StoreSettings,
};
pub use share::decide_by_share;
pub use source::{Place, Source};
pub use tally::Tally;
pub use token::{Claims, TokenError, TokenRefusal, TokenSettings, Tokens};
pub use watch::Watch;
