//! What dashpot's tests lean on; never a dependency of anything that ships.
//!
//! - [`oracle`]: what every decision should be, worked out slowly and exactly from the
//!   definitions, sharing no code with the algorithms.
//! - [`trace`], [`replay`](replay()): a script of calls, played to a store and to the oracle side by
//!   side.
//! - [`conformance`](mod@conformance): what any store owes its callers, one test per promise.
//! - [`bound`]: how much may pass in any interval, checked on a list of admissions.
//! - [`strategies`]: quotas, policies and traces for property tests.
//! - [`workload`]: deterministic streams of arrivals.
//! - [`redis`]: real Redis servers, alone, as a cluster, or watched by sentinels, to be killed,
//!   hung and restarted; one of them with a clock that the test sets.
//! - [`plot`]: pictures of the documentation.
//! - [`process`]: programs that die with the test, and what they need.
//! - [`Nginx`]: a real one.
//! - [`Proxy`]: a network that is slow, mute or broken on demand.

#![forbid(unsafe_code)]

mod bell;
mod block_on;
pub mod bound;
pub mod conformance;
mod limits;
mod nginx;
pub mod oracle;
pub mod plot;
pub mod process;
mod proxy;
pub mod redis;
mod replay;
pub mod strategies;
mod threads;
pub mod trace;
pub mod workload;

pub use bell::Bell;
pub use block_on::block_on;
pub use bound::{admitted_within_bound, bucket_must_admit};
pub use limits::limit;
pub use nginx::Nginx;
pub use oracle::{Expected, Oracle, OracleStore};
pub use proxy::{Fault, Proxy};
pub use redis::{FakedRedis, RedisCluster, RedisSentinels, RedisServer};
pub use replay::{Time, replay, waiting_is_exact};
pub use threads::on_all_threads;
pub use trace::Trace;
