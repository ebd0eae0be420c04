//! A store that cannot answer: let pass, refuse, or count here.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use axum::Router;
use dashpot::{
    Check, Cost, Decision, Key, KeyOperation, MemoryStore, Policy, Reservation, Store, StoreError,
    Timestamp,
};
use dashpot_http::RateLimitLayer;

use crate::common::{Server, get, rules};

/// A store that fails while it is down, in deciding or in settling.
#[derive(Default)]
struct Fragile {
    inner: MemoryStore,
    is_down: AtomicBool,
    cannot_settle: AtomicBool,
    asked: AtomicU64,
    settled: AtomicU64,
}

impl Fragile {
    fn fails(&self, flag: &AtomicBool) -> Result<(), StoreError> {
        if flag.load(Ordering::Relaxed) {
            return Err(StoreError::Unavailable("down".into()));
        }
        Ok(())
    }
}

impl Store for Fragile {
    async fn decide<'p>(&self, checks: &[Check<'p, '_>]) -> Result<Decision<'p>, StoreError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        // As one that is far away: it does not answer at once.
        tokio::task::yield_now().await;
        self.fails(&self.is_down)?;
        self.inner.decide(checks).await
    }

    async fn settle(&self, reservation: &Reservation, used: Cost) -> Result<Timestamp, StoreError> {
        tokio::task::yield_now().await;
        self.fails(&self.cannot_settle)?;
        let settled = self.inner.settle(reservation, used).await;
        self.settled.fetch_add(1, Ordering::Relaxed);
        settled
    }

    async fn undo(&self, reservation: &Reservation) -> Result<Timestamp, StoreError> {
        tokio::task::yield_now().await;
        self.fails(&self.cannot_settle)?;
        self.inner.undo(reservation).await
    }

    async fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> Result<Decision<'p>, StoreError> {
        self.inner.manage(policy, key, operation).await
    }
}

async fn server(text: &str) -> (Server, Arc<Fragile>) {
    let store = Arc::new(Fragile::default());
    let layer = RateLimitLayer::from_rules(rules(text), store.clone());
    let app = Router::new().fallback(async || "served").layer(layer);
    store.is_down.store(true, Ordering::Relaxed);
    (Server::start(app).await, store)
}

fn on_error(what: &str) -> String {
    format!("[store]\non_error = '{what}'\n[[rule]]\nname = 'r'\nby = ['ip']\nlimits = ['2/h']")
}

#[tokio::test]
async fn who_fails_open_lets_pass() {
    let (server, _) = server(&on_error("allow")).await;
    assert_eq!(get("/").statuses(&server, 5).await, [200; 5]);
    // Nothing is known, so nothing is told.
    assert_eq!(get("/").send(&server).await.get("ratelimit"), None);
}

/// 503, not 429: it is not the caller who asked too much.
#[tokio::test]
async fn who_fails_closed_refuses() {
    let (server, store) = server(&on_error("deny")).await;
    let answer = get("/").send(&server).await;
    assert_eq!((answer.status, answer.get("retry-after")), (503, Some("1")));
    assert_eq!(answer.get("cache-control"), Some("no-store"));
    assert_eq!(answer.get("content-type"), Some("application/problem+json"));
    assert_eq!(
        answer.json()["type"],
        "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity"
    );
    // And when it is back, the refused have used up nothing.
    store.is_down.store(false, Ordering::Relaxed);
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn who_counts_here_limits_by_what_it_saw() {
    for text in [on_error("local"), on_error("local").replace("[store]\non_error = 'local'", "")] {
        let (server, store) = server(&text).await;
        assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
        let denied = get("/").send(&server).await;
        assert_eq!(denied.get("ratelimit-policy"), Some(r#""r";q=2;w=3600"#));
        assert!(denied.retry_after() <= 1800);
        assert_eq!(get("/").from("127.0.0.2").status(&server).await, 200);
        // The store has its own counts.
        store.is_down.store(false, Ordering::Relaxed);
        assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    }
}

#[tokio::test]
async fn a_rule_may_say_otherwise() {
    let text = format!("{}\non_store_error = 'deny'", on_error("allow"));
    let (one, _) = server(&text).await;
    assert_eq!(get("/").status(&one).await, 503);
    // One strict rule is enough to refuse.
    let text = on_error("allow")
        + "\n[[rule]]\nname = 'login'\nmatch.path = '/login'\nlimits = ['9/h']\non_store_error = 'deny'";
    let (both, _) = server(&text).await;
    assert_eq!(get("/login").status(&both).await, 503);
    assert_eq!(get("/").statuses(&both, 5).await, [200; 5]);
}

/// A local rule goes on limiting beside one that lets pass.
#[tokio::test]
async fn each_rule_fails_in_its_own_way() {
    let text =
        on_error("allow") + "\n[[rule]]\nname = 'here'\nlimits = ['3/h']\non_store_error = 'local'";
    let (server, _) = server(&text).await;
    assert_eq!(get("/").statuses(&server, 4).await, [200, 200, 200, 429]);
    let denied = get("/").send(&server).await;
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["here"]));
}

/// "Denied" is an answer, not a failure: nobody passes by being denied.
#[tokio::test]
async fn a_denial_is_no_error() {
    let (server, store) = server(&on_error("allow")).await;
    store.is_down.store(false, Ordering::Relaxed);
    assert_eq!(get("/").statuses(&server, 5).await, [200, 200, 429, 429, 429]);
}

#[tokio::test]
async fn a_shadow_does_not_care() {
    let text = on_error("deny") + "\nshadow = true";
    let (server, _) = server(&text).await;
    assert_eq!(get("/").statuses(&server, 5).await, [200; 5]);
}

/// What could not be settled stays charged; the answer is sent all the same.
#[tokio::test]
async fn an_answer_does_not_depend_on_settling() {
    let (server, store) = server(&(on_error("deny") + "\ncharge_on = [401]")).await;
    store.is_down.store(false, Ordering::Relaxed);
    for n in 1..=5 {
        assert_eq!(get("/").status(&server).await, 200);
        // It is settled beside the answer, which does not wait for it.
        let settled = async {
            while store.settled.load(Ordering::Relaxed) < n {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(crate::common::PATIENCE, settled).await.expect("nothing is settled");
    }
    store.cannot_settle.store(true, Ordering::Relaxed);
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
}

/// Permits that were counted here are given back here, and those of the store there.
#[tokio::test]
async fn permits_go_back_to_where_they_were_taken() {
    let text = "[[rule]]\nname = 's'\nlimits = ['1 concurrent']\nalgorithm = 'concurrency'";
    let (server, store) = server(text).await;
    for round in 0..6 {
        store.is_down.store(round % 2 == 0, Ordering::Relaxed);
        let asked = get("/");
        let start = std::time::Instant::now();
        // A store that is far away gets them back in its own time.
        while asked.status(&server).await != 200 {
            assert!(start.elapsed() < crate::common::PATIENCE, "round {round}: a permit is lost");
        }
    }
}

/// All rules are asked about in one question.
#[tokio::test]
async fn a_request_is_one_question() {
    let text = on_error("deny") + "\n[[rule]]\nname = 'all'\nlimits = ['9/min', '99/day']";
    let (server, store) = server(&text).await;
    store.is_down.store(false, Ordering::Relaxed);
    get("/").send(&server).await;
    assert_eq!(store.asked.load(Ordering::Relaxed), 1);
}
