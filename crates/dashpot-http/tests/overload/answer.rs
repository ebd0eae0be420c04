//! What comes back.

use axum::body::Bytes;
use http::HeaderMap;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::settle;
use crate::common::PATIENCE;

/// An answer to come.
pub(super) type Answering = JoinHandle<Result<Answer, &'static str>>;

/// What came back.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Answer {
    pub(super) async fn of(answering: Answering) -> Self {
        let answering = timeout(PATIENCE, answering).await;
        let answer = answering.expect("no answer").expect("a panic").expect("an error");
        settle().await;
        answer
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        assert!(self.headers.get_all(name).iter().count() < 2, "{name} comes more than once");
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    /// It was turned away for lack of room, and hears so.
    #[track_caller]
    pub(super) fn assert_shed(&self) {
        assert_eq!(self.status, 503, "{self:?}");
        let kind = self.json()["type"].as_str().unwrap_or_default().to_owned();
        assert!(kind.ends_with("#temporary-reduced-capacity"), "{kind}");
        assert!(self.get("retry-after").is_some(), "{self:?}");
    }
}
