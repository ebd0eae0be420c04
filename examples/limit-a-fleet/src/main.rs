//! Two machines, one Redis, one limit; and what happens when Redis does not answer.
//!
//! `cargo run -p limit-a-fleet` starts a redis-server of its own, which has to be installed. With
//! `-- serve` one machine serves for you to try, on the Redis that rules.toml names.

mod private_redis;

use std::time::Duration;

use axum::{Router, routing::get};
use dashpot_http::{RateLimitLayer, RuleSet};
use dashpot_redis::RedisStore;
use private_redis::PrivateRedis;
use story::{Failure, Story};

/// What each machine runs. In earnest the URL is the rule file's: `&rules.store().urls`.
async fn machine(url: &str) -> Result<(Story, RedisStore), Failure> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let settings = rules.store();
    let store =
        RedisStore::builder(url).prefix(&settings.prefix).deadline(settings.deadline).start()?;
    store.ready(Duration::from_secs(5)).await?;
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(RateLimitLayer::from_rules(rules, store.clone()));
    Ok((Story::begin(app).await?, store))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    if std::env::args().nth(1).as_deref() == Some("serve") {
        let rules = RuleSet::parse(include_str!("../rules.toml"))?;
        machine(rules.store().urls.first().map_or("", String::as_str)).await?;
    }
    let mut redis = PrivateRedis::start()?;
    let (one, first) = machine(&redis.url()).await?;
    let (two, _) = machine(&redis.url()).await?;

    println!("-- ten a minute, whichever machine is asked");
    for _ in 0..5 {
        assert_eq!(one.ask("GET /", &[], "").await?.status, 200);
        assert_eq!(two.ask("GET /", &[], "").await?.status, 200);
    }
    assert_eq!(one.ask("GET /", &[], "").await?.status, 429);
    assert_eq!(two.ask("GET /", &[], "").await?.status, 429);

    // Machines count each other once a second.
    while first.health().instances.get() < 2 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    println!("-- Redis is gone: each of the two grants its part, five");
    redis.stop();
    let statuses = one.ask_often(6, "GET /", &[]).await?;
    assert_eq!(statuses, [200, 200, 200, 200, 200, 429]);

    println!("-- Redis is back, and so is the one limit");
    redis.restart()?;
    while !first.health().is_up() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let answer = one.ask("GET /", &[], "").await?;
    assert_eq!(answer.status, 200);
    assert!(first.health().servers.iter().all(|server| server.outages == 1));
    Ok(())
}
