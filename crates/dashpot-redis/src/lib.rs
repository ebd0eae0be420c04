//! dashpot across machines: the same exact limits on Redis or Valkey.

// What ships does not panic, and cuts no number short.
#![warn(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used
)]

mod builder;
mod cluster;
mod counters;
mod denials;
mod failure;
mod health;
mod instances;
mod key;
mod link;
mod listing;
mod permits;
mod question;
mod recall;
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
