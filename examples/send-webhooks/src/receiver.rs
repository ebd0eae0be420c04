//! Destinations of all kinds, to have somebody to send to.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
use http::{HeaderMap, StatusCode};
use story::Failure;

/// Letters that were done, by their keys.
#[derive(Clone, Default)]
pub(crate) struct Inbox(Arc<Mutex<HashSet<String>>>);

impl Inbox {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().map_or(0, |done| done.len())
    }

    /// Does what a letter says, unless it was done before. Tells whether it is new.
    fn take(&self, headers: &HeaderMap) -> bool {
        let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok());
        self.0.lock().is_ok_and(|mut done| done.insert(key.unwrap_or_default().to_owned()))
    }
}

/// `/calm` takes everything; `/flaky` does what a letter says and fails to say so, the first time; `/strict` takes four a second;
/// `/frail` wants to be treated gently; `/broken` is.
pub(crate) fn receivers(inbox: &Inbox) -> Result<Router, Failure> {
    let strict = RuleSet::parse(
        "[[rule]]\nname = 'strict'\nmatch = { path = '/strict' }\nlimits = ['4/s burst 2']",
    )?;
    let take = |State(inbox): State<Inbox>, headers: HeaderMap| async move {
        inbox.take(&headers);
        StatusCode::NO_CONTENT
    };
    let take_and_fail = |State(inbox): State<Inbox>, headers: HeaderMap| async move {
        match inbox.take(&headers) {
            true => StatusCode::SERVICE_UNAVAILABLE,
            false => StatusCode::NO_CONTENT,
        }
    };
    Ok(Router::new()
        .route("/calm", post(take))
        .route("/strict", post(take))
        .route("/frail", post(take))
        .route("/flaky", post(take_and_fail))
        .route("/broken", post(|| async { StatusCode::INTERNAL_SERVER_ERROR }))
        .layer(RateLimitLayer::from_rules(strict, MemoryStore::new()))
        .with_state(inbox.clone()))
}
