//! Real Redis servers for tests, alone, as a cluster, or watched by sentinels.
//!
//! All of them listen on loopback only, keep nothing on disk but in a directory of their own, and
//! die with the test, however it ends. If `redis-server` is missing they panic: a test that is
//! skipped proves nothing.

mod cluster;
mod faked;
mod questions;
mod resp;
mod sentinels;
mod server;
mod slots;

pub use cluster::RedisCluster;
pub use faked::FakedRedis;
pub use resp::{Connection, Reply};
pub use sentinels::RedisSentinels;
pub use server::RedisServer;
pub use slots::{Move, slot};

use crate::process::until;
