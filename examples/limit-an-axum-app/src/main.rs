//! An axum app, and three lines that limit it.
//!
//! `cargo run -p limit-an-axum-app` tells a short story; with `-- serve` it serves for you to try.

use axum::{Router, routing::get};
use dashpot_http::{MemoryStore, RateLimitLayer, RuleSet};
use story::{Failure, Story};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let app = Router::new().route("/", get(|| async { "hello" }));

    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let layer = RateLimitLayer::from_rules(rules, MemoryStore::new());
    let app = app.layer(layer);

    let story = Story::begin(app).await?;
    for _ in 0..5 {
        assert_eq!(story.ask("GET /", &[], "").await?.status, 200);
    }
    let denied = story.ask("GET /", &[], "").await?;
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("2")));
    println!("{}", denied.body);
    Ok(())
}
