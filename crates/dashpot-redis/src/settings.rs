//! How a store is to behave.

use std::num::NonZeroU64;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) prefix: String,
    pub(crate) deadline: Duration,
    pub(crate) connect_timeout: Duration,
    pub(crate) permit_lease: Duration,
    pub(crate) denial_memory: Duration,
    pub(crate) lease: Duration,
    pub(crate) interval: Duration,
    pub(crate) least_instances: NonZeroU64,
}
