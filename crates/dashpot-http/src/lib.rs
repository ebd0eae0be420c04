//! dashpot for HTTP.

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

mod address;
mod any_body;
pub mod denial;
mod descriptor;
mod fields;
mod future;
pub mod headers;
mod judgement;
mod layer;
mod request_body;
mod response_body;
mod retry_after;
mod service;
mod settle;
mod text;
mod wait;

pub use address::{
    AddressEvidence, AddressText, ClientAddress, address_text, client_address, mask,
};
pub use any_body::AnyBody;
pub use descriptor::{HttpDescriptor, Peer};
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use retry_after::RetryAfter;
pub use service::RateLimit;
pub use settle::Used;
pub use wait::Wait;
