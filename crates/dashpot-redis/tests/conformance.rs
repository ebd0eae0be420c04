//! What every store owes its callers, on Redis.

use std::time::Duration;

use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisServer, conformance};

use crate::support::subject::{On, run};

fn redis() -> On<RedisServer> {
    let server = RedisServer::start();
    let builder = RedisStore::builder(server.url()).deadline(Duration::from_secs(2));
    On::new(server, builder)
}

conformance!(redis(), run);
