//! Exact rate limits.
#![doc = ""]
mod algorithm;
mod check;
mod clock;
mod decision;
mod key;
mod limiter;
mod memory;
mod policy;
mod quota;
mod store;
mod zone;

pub use check::{Check, Cost};
pub use clock::{Clock, ManualClock, SystemClock, Timestamp};
pub use decision::{Decision, Outcome, PolicyStatus, Retry, Standing};
pub use key::{Key, KeyBuf};
pub use limiter::{Limiter, Permit};
pub use memory::MemoryStore;
pub use policy::{
    Algorithm, ParseAlgorithmError, Policy, PolicyBuilder, PolicyError, SLIDING_LOG_MAX,
};
pub use quota::{ParseQuotaError, Quota, Window, WindowError};
pub use store::{KeyOperation, Reservation, Store, StoreError};
pub use zone::{UnknownZone, Zone};
