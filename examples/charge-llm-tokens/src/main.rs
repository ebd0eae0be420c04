//! Charge what a model really used: reserve a guess, settle by a response header.

use axum::routing::post;
use axum::{Router, http::HeaderName};
use dashpot_http::{RateLimitLayer, RuleSet};
use story::{Failure, Story};

/// A model whose answers cost as many tokens as it was asked for.
async fn chat(wanted: String) -> ([(HeaderName, String); 1], &'static str) {
    ([(HeaderName::from_static("x-tokens-used"), wanted)], "forty-two")
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let app = Router::new()
        .route("/v1/chat", post(chat))
        .layer(RateLimitLayer::from_rules(rules, story::store()));
    let story = Story::begin(app).await?;

    println!("Short answers: 2000 are reserved each time, and 500 charged.");
    for _ in 0..4 {
        assert_eq!(story.ask("POST /v1/chat", &[], "500").await?.status, 200);
    }
    println!("A long one is charged in full, though it was not known before.");
    assert_eq!(story.ask("POST /v1/chat", &[], "9000").await?.status, 200);
    println!("So 1000 tokens are owed, and there must be 2000 again to go on.");
    let denied = story.ask("POST /v1/chat", &[], "1").await?;
    assert_eq!(denied.status, 429);
    let wait: u32 = denied.header("retry-after").unwrap_or_default().parse()?;
    assert!((17..=18).contains(&wait), "3000 tokens come back in 18 s");
    Ok(())
}
