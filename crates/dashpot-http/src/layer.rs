//! The layer: rules and a store, around a service.

use std::sync::Arc;

use dashpot::{MemoryStore, Store};
use dashpot_rules::LiveRules;
use tower_layer::Layer;

use crate::RateLimit;

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

/// What all services of a layer share.
#[derive(Debug)]
pub(crate) struct Shared<St> {
    pub(crate) rules: LiveRules,
    pub(crate) store: St,
    /// Stands in for a store that cannot answer.
    pub(crate) local: MemoryStore,
}

impl<St: Store + 'static> RateLimitLayer<St> {
    /// Limits by these rules: a [`RuleSet`](dashpot_rules::RuleSet), or [`LiveRules`] that are
    /// replaced while they are used. Others may use the store as well: an `Arc` of one is one.
    #[must_use]
    pub fn from_rules(rules: impl Into<LiveRules>, store: St) -> Self {
        let rules = rules.into();
        Self { shared: Arc::new(Shared { rules, store, local: MemoryStore::new() }) }
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
