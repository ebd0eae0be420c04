//! What all connections of the gateway share.

use std::sync::Arc;
use std::time::Duration;

use dashpot::{Key, MemoryStore};
use dashpot_http::RateLimitLayer;
use dashpot_rules::{LiveRules, MaxBody, Rule, Upstream};
use http::HeaderValue;

use crate::proxy::access_log::Log;
use crate::proxy::failure::Counters;
use crate::proxy::progress::Patience;
use crate::serve::store::AnyStore;

/// What the gateway is told.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) upstream: Upstream,
    pub(crate) connect_timeout: Duration,
    pub(crate) tunnel_timeout: Duration,
    pub(crate) patience: Patience,
    pub(crate) max_body: MaxBody,
}

/// What all connections of the gateway share.
pub(crate) struct Gateway {
    pub(crate) settings: Settings,
    /// The backend, for those who name no host.
    pub(crate) host: HeaderValue,
    pub(crate) rules: LiveRules,
    pub(crate) layer: RateLimitLayer<AnyStore>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) log: Option<Log>,
}

impl Gateway {
    pub(crate) fn new(
        settings: Settings,
        log: Option<Log>,
        rules: LiveRules,
        store: AnyStore,
        local: Arc<MemoryStore>,
        on_denied: impl Fn(&Rule, Key<'_>) + Send + Sync + 'static,
    ) -> Self {
        let layer = RateLimitLayer::builder(rules.clone(), store);
        let layer = layer.local(local).on_denied(on_denied).build();
        let host = HeaderValue::from_str(&settings.upstream.authority());
        // It is made of letters, digits and dots.
        let host = host.unwrap_or(HeaderValue::from_static("localhost"));
        Self { settings, host, rules, layer, counters: Arc::default(), log }
    }
}
