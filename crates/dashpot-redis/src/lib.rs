//! dashpot across machines: the same exact limits on Redis or Valkey.
//!
//! ```no_run
//! use dashpot::{Check, Policy, Store};
//! use dashpot_redis::RedisStore;
//!
//! # async fn ask() -> Result<(), Box<dyn std::error::Error>> {
//! let store = RedisStore::connect("redis://127.0.0.1:6379").await?;
//! let api = Policy::new("api", "100/min".parse()?)?;
//! if store.decide(&[Check::new(&api, "alice")]).await?.is_allowed() {
//!     // serve
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Promises
//!
//! **Exact.** One script call decides all checks of a request, all or nothing, by Redis's own clock and in
//! whole numbers. Decision by decision it is what the store in memory would say at that moment; waits are
//! rounded up to the microsecond, which is what Redis's clock shows.
//!
//! **Bounded.** Every decision is there, or given up, within its
//! [deadline](RedisStoreBuilder::deadline). A server that does not answer is not waited for any more until
//! it does; it is tried four times a second. An error is an error: what to do then is said by rules
//! (`on_store_error`), or by who asks.
//!
//! **Never too generous.** A call that was not answered may have been charged, never the other way round.
//! Where checks cannot be decided in one call (a cluster, several servers), they are reserved one after
//! another, and given back if one denies.
//!
//! **Tidy.** Every key expires when it does not matter any more. Nothing beyond the
//! [prefix](RedisStoreBuilder::prefix) is touched.
//!
//! **No panic** is reachable through the public interface, whatever a server answers.
//!
//! A store lives on a tokio runtime, where it keeps its connections; clones share everything, and the last
//! one takes them along.

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

mod apart;
mod builder;
mod cluster;
mod counters;
mod denials;
mod failure;
mod health;
mod instances;
mod key;
mod lease;
mod link;
mod listing;
mod permits;
mod question;
mod recall;
mod renewal;
mod script;
mod sentinel;
mod settings;
mod store;
mod target;
mod topology;

pub use builder::{ConnectError, RedisStoreBuilder};
pub use health::{Health, ServerHealth};
pub use listing::KeptKey;
pub use store::RedisStore;
pub use target::UrlError;
