//! The layer: rules and a store, around a service.

use std::fmt;
use std::sync::Arc;

use dashpot::{Key, MemoryStore, Store};
use dashpot_rules::{LiveRules, Rule};
use parking_lot::Mutex;
use tower_layer::Layer;

use crate::RateLimit;
use crate::line::Lines;

/// Limits a service by rules. Clones share the rules and the store, and so do all services made by
/// them.
///
/// ```
/// use axum::{Router, routing::get};
/// use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
///
/// # fn main() -> Result<(), dashpot_rules::RuleErrors> {
/// let rules = RuleSet::parse(r#"
///     [[rule]]
///     name = "everybody"
///     by = ["ip"]
///     limits = ["100/min"]
/// "#)?;
/// let app: Router = Router::new()
///     .route("/", get(|| async { "hello" }))
///     .layer(RateLimitLayer::from_rules(rules, MemoryStore::new()));
/// # Ok(())
/// # }
/// ```
///
/// Serve it with `into_make_service_with_connect_info::<SocketAddr>()`, or nobody knows who connected
/// and all callers count as one. A service that is neither axum's nor tonic's puts a
/// [`Peer`](crate::Peer) into the extensions of its requests.
#[derive(Debug)]
pub struct RateLimitLayer<St = MemoryStore> {
    shared: Arc<Shared<St>>,
}

/// Who hears of denials.
type Hear = Box<dyn Fn(&Rule, Key<'_>) + Send + Sync>;

/// What all services of a layer share.
pub(crate) struct Shared<St> {
    pub(crate) rules: LiveRules,
    pub(crate) store: St,
    /// Stands in for a store that cannot answer.
    pub(crate) local: Arc<MemoryStore>,
    /// Those who wait for their turn.
    pub(crate) lines: Mutex<Lines>,
    pub(crate) on_denied: Option<Hear>,
}

impl<St: fmt::Debug> fmt::Debug for Shared<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shared = f.debug_struct("Shared");
        shared.field("rules", &self.rules).field("store", &self.store).finish_non_exhaustive()
    }
}

impl<St: Store + 'static> RateLimitLayer<St> {
    /// Limits by these rules: a [`RuleSet`](dashpot_rules::RuleSet), or [`LiveRules`] that are
    /// replaced while they are used. Others may use the store as well: an `Arc` of one is one.
    #[must_use]
    pub fn from_rules(rules: impl Into<LiveRules>, store: St) -> Self {
        Self::builder(rules, store).build()
    }

    /// The same, with more to say.
    #[must_use]
    pub fn builder(rules: impl Into<LiveRules>, store: St) -> RateLimitLayerBuilder<St> {
        RateLimitLayerBuilder { rules: rules.into(), store, local: None, on_denied: None }
    }

    /// How many requests wait for their turn in queues.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.shared.lines.lock().len()
    }
}

/// A [`RateLimitLayer`] in the making.
pub struct RateLimitLayerBuilder<St = MemoryStore> {
    rules: LiveRules,
    store: St,
    local: Option<Arc<MemoryStore>>,
    on_denied: Option<Hear>,
}

impl<St: Store + 'static> RateLimitLayerBuilder<St> {
    /// What counts while the store does not answer, for rules whose `on_store_error` is `local`. One of its own, if left out.
    #[must_use]
    pub fn local(mut self, local: Arc<MemoryStore>) -> Self {
        self.local = Some(local);
        self
    }

    /// Is told of every limit that was reached, and by whom, before the denial is sent.
    #[must_use]
    pub fn on_denied(mut self, hear: impl Fn(&Rule, Key<'_>) + Send + Sync + 'static) -> Self {
        self.on_denied = Some(Box::new(hear));
        self
    }

    /// The layer.
    #[must_use]
    pub fn build(self) -> RateLimitLayer<St> {
        let Self { rules, store, local, on_denied } = self;
        let local = local.unwrap_or_default();
        let lines = Mutex::default();
        RateLimitLayer { shared: Arc::new(Shared { rules, store, local, lines, on_denied }) }
    }
}

impl<St: fmt::Debug> fmt::Debug for RateLimitLayerBuilder<St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut builder = f.debug_struct("RateLimitLayerBuilder");
        builder.field("rules", &self.rules).field("store", &self.store).finish_non_exhaustive()
    }
}

impl<St> Clone for RateLimitLayer<St> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<S, St> Layer<S> for RateLimitLayer<St> {
    type Service = RateLimit<S, St>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, self.shared.clone())
    }
}
