//! Each kind of work its own limit: logins, password resets, reads, writes, uploads; health checks
//! are free. What matches several rules is held to all of them.

use axum::Router;
use dashpot_http::{RateLimitLayer, RuleSet};
use story::{Failure, Story};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let app = Router::new()
        .fallback(|| async { "done" })
        .layer(RateLimitLayer::from_rules(rules, story::store()));
    let story = Story::begin(app).await?;

    for (request, limit) in [
        ("POST /login", 5),
        ("POST /password-reset", 3),
        ("GET /api/books", 1000),
        ("POST /api/files", 10), // an upload is a write, too
        ("PUT /api/books/1", 90),
    ] {
        let statuses = story.ask_often(limit + 1, request, &[]).await?;
        let passed = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(passed, limit, "{request}");
    }
    let health = story.ask_often(50, "GET /health", &[]).await?;
    assert!(health.iter().all(|status| *status == 200));
    Ok(())
}
