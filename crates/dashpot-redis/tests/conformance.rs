//! What every store owes its callers, on Redis.

use std::time::Duration;

use dashpot_redis::RedisStore;
use dashpot_testkit::conformance::Subject;
use dashpot_testkit::{RedisServer, conformance};

struct Redis {
    store: RedisStore,
    _server: RedisServer,
}

impl Subject for Redis {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }
}

/// A server and a store of one's own, on a runtime that outlives the test.
fn redis() -> Redis {
    let server = RedisServer::start();
    let _runtime = runtime().enter();
    let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(2)).start().unwrap();
    Redis { store, _server: server }
}

fn runtime() -> &'static tokio::runtime::Runtime {
    static RUNTIME: std::sync::OnceLock<tokio::runtime::Runtime> = std::sync::OnceLock::new();
    RUNTIME
        .get_or_init(|| tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap())
}

fn run<F: Future>(test: F) -> F::Output {
    runtime().block_on(test)
}

conformance!(redis(), run);
