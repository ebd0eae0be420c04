//! What was found once, by looking for trouble.

mod apart;
mod odd;
mod permits;
mod servers;

use std::time::Duration;

use dashpot::{Algorithm, Policy};
use dashpot_redis::RedisStore;
use dashpot_testkit::Proxy;

fn policy(name: &str, quota: &str) -> Policy {
    Policy::new(name, quota.parse().unwrap()).unwrap()
}

fn with(name: &str, quota: &str, algorithm: Algorithm) -> Policy {
    Policy::builder(name, quota.parse().unwrap()).algorithm(algorithm).build().unwrap()
}

fn url(proxy: &Proxy) -> String {
    format!("redis://{}", proxy.address())
}

async fn ready(store: &RedisStore) {
    store.ready(Duration::from_secs(5)).await.unwrap();
}

async fn sleep(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}
