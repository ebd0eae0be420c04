//! Quotas, policies and traces for property tests, biased towards where mistakes hide.

mod policies;
mod quotas;
mod traces;

pub use policies::{definitions, policy};
pub use quotas::{count, quota, window};
pub use traces::{cost, mixed_trace, pause, start, trace};
