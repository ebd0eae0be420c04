//! A store on servers of its own, and a runtime that outlives it, for the suite every store must pass.

use std::sync::OnceLock;
use std::time::Duration;

use dashpot_redis::{RedisStore, RedisStoreBuilder};
use dashpot_testkit::conformance::Subject;
use tokio::runtime::{Builder, Runtime};

pub(crate) struct On<Servers> {
    store: RedisStore,
    _servers: Servers,
}

impl<Servers> On<Servers> {
    pub(crate) fn new(servers: Servers, builder: RedisStoreBuilder) -> Self {
        let _runtime = runtime().enter();
        Self { store: builder.start().unwrap(), _servers: servers }
    }
}

impl<Servers> Subject for On<Servers> {
    type Store = RedisStore;

    fn store(&self) -> &RedisStore {
        &self.store
    }

    async fn advance(&self, by: Duration) {
        tokio::time::sleep(by).await;
    }
}

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| Builder::new_multi_thread().enable_all().build().unwrap())
}

pub(crate) fn run<F: Future>(test: F) -> F::Output {
    runtime().block_on(test)
}
