//! Layers on several machines and one Redis.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use dashpot_http::RateLimitLayer;
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::common::{Answer, Server, get, rules};

const PATIENCE: Duration = Duration::from_secs(8);

async fn connected(redis: &RedisServer) -> RedisStore {
    let store = RedisStore::builder(redis.url()).deadline(Duration::from_millis(500)).start();
    let store = store.unwrap();
    store.ready(PATIENCE).await.unwrap();
    store
}

/// A machine that answers what passes, and its store.
async fn machine(redis: &RedisServer, text: &str) -> (Server, RedisStore) {
    let store = connected(redis).await;
    let app = Router::new().fallback(async || "served");
    let app = app.layer(RateLimitLayer::from_rules(rules(text), store.clone()));
    (Server::start(app).await, store)
}

#[tokio::test]
async fn machines_share_a_limit() {
    let redis = RedisServer::start();
    let text = "[[rule]]\nname = 'r'\nlimits = ['4/h', '9/day']";
    let (one, _one) = machine(&redis, text).await;
    let (two, _two) = machine(&redis, text).await;
    assert_eq!(get("/").statuses(&one, 2).await, [200, 200]);
    assert_eq!(get("/").statuses(&two, 3).await, [200, 200, 429]);
    let denied = get("/").send(&one).await;
    assert_eq!(denied.status, 429);
    assert!(denied.retry_after() > 0);
    assert!(redis.keys_without_ttl().is_empty());
}

#[tokio::test]
async fn each_rule_says_what_happens_without_redis() {
    let redis = RedisServer::start();
    let rule = |on_error: &str| {
        format!("[[rule]]\nname = 'r'\nlimits = ['4/h']\non_store_error = '{on_error}'")
    };
    let (open, _a) = machine(&redis, &rule("allow")).await;
    let (strict, _b) = machine(&redis, &rule("deny")).await;
    let (local, store) = machine(&redis, &rule("local")).await;
    // Those three are instances of one store; they learn that within a second.
    let all = async {
        while store.health().instances.get() < 3 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, all).await.expect("they count each other");
    redis.kill();
    assert_eq!(get("/").statuses(&open, 6).await, [200; 6]);
    assert_eq!(get("/").statuses(&strict, 2).await, [503; 2]);
    assert_eq!(
        get("/").statuses(&local, 3).await,
        [200, 429, 429],
        "a third of four, rounded down"
    );

    redis.restart();
    let back = async {
        while !store.health().is_up() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(2), back).await.expect("it is used again");
    assert_eq!(get("/").statuses(&local, 5).await, [200, 200, 200, 200, 429]);
}

#[tokio::test]
async fn a_permit_comes_back_with_the_response() {
    let redis = RedisServer::start();
    let store = connected(&redis).await;
    let (gate, entered) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (held, inside) = (gate.clone(), entered.clone());
    let slow = on_get(async move || {
        inside.add_permits(1);
        let _ = held.acquire().await;
        "served"
    });
    let text = "[[rule]]\nname = 'r'\nlimits = ['1 concurrent']";
    let app = Router::new().route("/", slow).layer(RateLimitLayer::from_rules(rules(text), store));
    let one = Server::start(app).await;
    let (two, _store) = machine(&redis, text).await;

    let mut first = get("/").begin(&one).await;
    let _ = timeout(PATIENCE, entered.acquire()).await.expect("it is being served");
    assert_eq!(get("/").status(&two).await, 429, "the other machine has the permit");
    gate.add_permits(1);
    assert_eq!(Answer::read(&mut first, false).await.status, 200);
    let free = async {
        while get("/").status(&two).await != 200 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, free).await.expect("it is back");
}

#[tokio::test]
async fn what_does_not_count_is_given_back() {
    let redis = RedisServer::start();
    let text = "[[rule]]\nname = 'r'\nlimits = ['2/h']\ncharge_on = [401]";
    let (server, _store) = machine(&redis, text).await;
    for _ in 0..6 {
        assert_eq!(get("/").status(&server).await, 200);
        // It is given back behind the response.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
