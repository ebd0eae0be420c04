//! dashpot for HTTP: who asks, what the headers say, and a tower layer for axum, hyper and tonic.
//!
//! ```
//! use axum::{Router, routing::get};
//! use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
//!
//! # fn app() -> Result<Router, dashpot_rules::RuleErrors> {
//! let rules = RuleSet::parse(r#"
//!     [[rule]]
//!     name = "api"
//!     match = { path = "/api/*" }
//!     by = ["user | ip"]
//!     limits = ["60/min", "1000/day"]
//! "#)?;
//! let app = Router::new()
//!     .route("/api/books", get(|| async { "books" }))
//!     .layer(RateLimitLayer::from_rules(rules, MemoryStore::new()));
//! # Ok(app)
//! # }
//! ```
//!
//! A request runs downhill, once: its facts are found ([`HttpDescriptor`]), the rules say what to ask,
//! the store answers, and the answer is told ([`headers`], [`denial`]). If nothing has to be waited
//! for, neither a body nor a store, that takes no allocation but for the headers.
//!
//! # Who asks
//!
//! `ip` is who connected, unless that is a proxy the rules trust ([`client_address`]). The server has to
//! say who connected: axum by `into_make_service_with_connect_info::<SocketAddr>()`, tonic by itself
//! (feature `tonic`), others by a [`Peer`] in the request's extensions.
//!
//! An application that knows its users says so: it puts [`Facts`] into the request's extensions, in a
//! layer outside of this one.
//!
//! ```
//! # use dashpot_http::Facts;
//! # let mut request = http::Request::new(());
//! request.extensions_mut().insert(Facts::new().user("alice").tier("pro"));
//! ```
//!
//! # What it cost
//!
//! Rules may reserve and settle: by a response header (`settle`), by [`Used`] in the response's
//! extensions, or by its status (`charge_on`). Permits of `concurrency` are given back when the
//! response's body was sent, or the request is dropped.
//!
//! # Order of layers
//!
//! Outermost first: CORS (so that denials can be read), authentication (so that the user is known), this
//! one, and then what is expensive. A layer on a nested router sees the whole path.

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

#[cfg(all(doctest, feature = "axum"))]
#[doc = include_str!("../../../docs/middleware.md")]
struct InTheBook;

/// Under the layer, too.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/redis.md")]
struct OnRedis;

mod address;
mod any_body;
pub mod denial;
mod descriptor;
mod fields;
mod future;
pub mod headers;
mod judgement;
mod layer;
mod line;
mod request_body;
mod response_body;
mod retry_after;
mod service;
mod settle;
mod text;
mod wait;
mod watch;

pub use address::{
    AddressEvidence, AddressText, ClientAddress, address_text, client_address, is_trusted, mask,
};
pub use any_body::AnyBody;
pub use descriptor::{HttpDescriptor, Peer};
pub use future::ResponseFuture;
pub use judgement::InFlight;
pub use layer::{RateLimitLayer, RateLimitLayerBuilder};
pub use retry_after::RetryAfter;
pub use service::RateLimit;
pub use settle::Used;
pub use wait::Wait;

/// What most users of the layer need besides.
pub use dashpot::MemoryStore;
pub use dashpot_rules::{Facts, LiveRules, RuleSet};
