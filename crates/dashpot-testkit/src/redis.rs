//! Real Redis servers for tests, alone, as a cluster, or watched by sentinels.
//!
//! All of them listen on loopback only, keep nothing on disk but in a directory of their own, and
//! die with the test, however it ends. If `redis-server` is missing they panic: a test that is
//! skipped proves nothing.

mod cluster;
mod faked;
mod process;
mod questions;
mod resp;
mod sentinels;
mod server;
mod slots;

pub use cluster::RedisCluster;
pub use faked::FakedRedis;
pub(crate) use process::free_port;
pub use resp::{Connection, Reply};
pub use sentinels::RedisSentinels;
pub use server::RedisServer;
pub use slots::{Move, slot};

use std::thread;
use std::time::{Duration, Instant};

/// Asks again and again until there is an answer.
fn until<T>(what: &str, bound: Duration, mut answer: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = answer() {
            return answer;
        }
        assert!(start.elapsed() < bound, "waited {bound:?} in vain: {what}");
        thread::sleep(Duration::from_millis(3));
    }
}
