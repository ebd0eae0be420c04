//! Calling APIs that limit *you*: waits when told to, paces before it has to, retries what is safe.
//!
//! ```
//! use dashpot_client::{Manners, Pace, PoliteLayer};
//! use std::time::Duration;
//! use tower_layer::Layer;
//!
//! # fn around<S>(client: S) -> Result<dashpot_client::Polite<S>, dashpot::ParseQuotaError> {
//! let manners = Manners::builder()
//!     .pace(Pace::at_most("10/s burst 20".parse()?).concurrent(8))    // to each server
//!     .patience(Duration::from_secs(30))
//!     .build();
//! let polite = PoliteLayer::new(manners).layer(client);               // any tower service that makes calls
//! # Ok(polite)
//! # }
//! ```
//!
//! With the feature `reqwest`, [`Manners`] is a middleware of `reqwest-middleware`:
//!
#![cfg_attr(feature = "reqwest", doc = "```")]
#![cfg_attr(not(feature = "reqwest"), doc = "```ignore")]
//! use dashpot_client::{Manners, Report};
//! use reqwest_middleware::ClientBuilder;
//!
//! # async fn call() -> Result<(), reqwest_middleware::Error> {
//! let client = ClientBuilder::new(reqwest::Client::new()).with(Manners::default()).build();
//! let response = client.get("http://127.0.0.1:8080/").send().await?;
//! if let Some(report) = response.extensions().get::<Report>() {
//!     println!("{report}");                  // sent 2 times; waited 12.3s: retry-after 12.1s, pace 200.0ms
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What a call goes through
//!
//! 1. **Its lane.** Calls that a server counts together share a [`Lane`]: by default, all calls to a server. They go in
//!    order, first come first served; who is dropped leaves the line, and who would have to wait beyond its
//!    [patience](MannersBuilder::patience) is told [at once](NotSent::TooLate) if that is known.
//! 2. **Its pace.** A [`Pace`] of one's own: a minimum interval, a token bucket, a leaky queue, so many at once.
//! 3. **What the server said.** After a 429 or a `Retry-After` nobody in the lane goes before that time, with some chance added, so
//!    that clients that were turned away together do not come back together; then one goes first. Quotas that answers tell of
//!    ([`Told`]) are kept count of: when nothing is left, calls wait instead of being turned away, and when little is left
//!    they are [spread](MannersBuilder::thrift).
//! 4. **Again, if that is worth it and does no harm**: an idempotent method, an idempotency key, or the program
//!    [says so](MannersBuilder::may_repeat). As long as the server said; else by exponential backoff with full jitter. Within
//!    the [attempts](MannersBuilder::attempts), the patience, and a [budget](MannersBuilder::retry_share): a server in
//!    trouble is not hit harder because of it.
//!
//! Why a call took as long as it did is in its [`Report`], and in `tracing` at the level `debug`.
//!
//! # Time
//!
//! It brings its own timer: any runtime will do, and [`MannersBuilder::clock`] takes a
//! [`ManualClock`](dashpot::ManualClock) for tests that do not wait.

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

mod budget;
mod chance;
mod error;
mod flight;
mod future;
mod lane;
mod lanes;
mod layer;
mod learned;
mod manners;
mod pace;
mod replay;
mod report;
#[cfg(feature = "reqwest")]
mod reqwest;
mod run;
mod safety;
mod service;
mod told;
mod traffic;
mod turn;

pub use error::{BoxError, CallError, NotSent};
pub use flight::Answer;
pub use future::ResponseFuture;
pub use lane::{Call, Lane};
pub use layer::PoliteLayer;
pub use manners::{Manners, MannersBuilder, Patience, Tokens};
pub use pace::Pace;
pub use replay::{Replay, ReplayError};
pub use report::{GaveUp, Report, Why};
pub use safety::Mishap;
pub use service::Polite;
pub use told::{Allowance, Refill, Told, Unit};

/// The documentation's examples are tested with the others.
#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../../../docs/client.md")]
struct Documentation;

/// And the README's, which are about all crates that a program may use.
#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../../../README.md")]
struct Readme;

#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../../../docs/from-governor.md")]
struct FromGovernor;

#[cfg(all(doctest, feature = "reqwest"))]
#[doc = include_str!("../../../docs/from-tower-governor.md")]
struct FromTowerGovernor;
