//! A real server and a client that writes what it is told, byte for byte.

// Each test file uses a part of this.
#![allow(dead_code, unreachable_pub, unused_imports)]

mod ask;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use dashpot::{ManualClock, MemoryStore, Timestamp};
use dashpot_http::RateLimitLayer;
use dashpot_rules::{LiveRules, RuleSet, Source};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

pub use ask::{Answer, Ask, ask, get, post};

/// Longer than anything takes; what takes longer is stuck.
pub const PATIENCE: Duration = Duration::from_secs(8);

/// When tests begin.
pub const START: u64 = 1_700_000_000;

/// Rules, which are right.
pub fn rules(text: &str) -> RuleSet {
    RuleSet::parse(text).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Rules that name files of this directory.
pub fn rules_in(directory: &Path, text: &str) -> RuleSet {
    let sources = vec![Source::new("rules", text)];
    RuleSet::from_sources(sources, directory).unwrap_or_else(|errors| panic!("{errors}"))
}

/// A store whose time stands still, and its clock.
pub fn store() -> (Arc<MemoryStore>, ManualClock) {
    let clock = ManualClock::new(Timestamp::from_secs(START));
    (Arc::new(MemoryStore::with_clock(clock.clone())), clock)
}

/// A layer whose store others know, too.
pub fn limit(
    rules: impl Into<LiveRules>,
    store: Arc<MemoryStore>,
) -> RateLimitLayer<Arc<MemoryStore>> {
    RateLimitLayer::from_rules(rules, store)
}

/// A server, until it is dropped.
pub struct Server {
    pub address: SocketAddr,
    served: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl Server {
    /// Serves this.
    pub async fn start(app: Router) -> Self {
        Self::start_at("127.0.0.1:0", app).await.unwrap()
    }

    /// Serves this at an address, if there is one.
    pub async fn start_at(address: &str, app: Router) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        let task = tokio::spawn(async move { axum::serve(listener, service).await.unwrap() });
        Ok(Self::at(address, task))
    }

    /// One that is served by somebody else.
    pub fn at(address: SocketAddr, task: JoinHandle<()>) -> Self {
        Self { address, served: Arc::default(), task }
    }

    /// Answers whatever passes these rules, and counts it. Time stands still.
    pub async fn limited(rules: RuleSet) -> Self {
        Self::limited_at("127.0.0.1:0", rules).await.unwrap()
    }

    /// The same at an address, if there is one.
    pub async fn limited_at(address: &str, rules: RuleSet) -> std::io::Result<Self> {
        let served = Arc::new(AtomicU64::new(0));
        let count = served.clone();
        let handler = async move || {
            count.fetch_add(1, Ordering::Relaxed);
            "served"
        };
        let app = Router::new().fallback(handler);
        let app = app.layer(limit(rules, store().0));
        let mut server = Self::start_at(address, app).await?;
        server.served = served;
        Ok(server)
    }

    /// How many requests got through, as [`limited`](Self::limited) counts them.
    pub fn served(&self) -> u64 {
        self.served.load(Ordering::Relaxed)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}
