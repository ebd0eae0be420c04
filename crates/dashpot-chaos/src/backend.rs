//! What is behind the gateway: it answers, and remembers who came through.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::http::HeaderMap;
use tokio::net::TcpListener;

/// The header that tells one call from another.
pub(crate) const CALL: &str = "x-call";

#[derive(Clone, Debug, Default)]
pub(crate) struct Seen(Arc<Mutex<HashMap<u64, u32>>>);

impl Seen {
    /// How often this call came through.
    pub(crate) fn how_often(&self, call: u64) -> u32 {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&call).copied().unwrap_or_default()
    }

    fn note(&self, headers: &HeaderMap) {
        let call = headers.get(CALL).and_then(|call| call.to_str().ok()?.parse().ok());
        if let Some(call) = call {
            *self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
        }
    }
}

/// Serves until the process ends.
pub(crate) async fn serve() -> (SocketAddr, Seen) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    let seen = Seen::default();
    let noted = seen.clone();
    let app = Router::new().fallback(move |headers: HeaderMap| async move {
        noted.note(&headers);
        "hello"
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, seen)
}
