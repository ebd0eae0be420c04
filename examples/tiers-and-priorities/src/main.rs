//! Plans with their own limits by API key; webhooks and health checks never limited, payments ten
//! times as often, reports half as often.

use std::path::Path;

use axum::Router;
use dashpot_http::{RateLimitLayer, RuleSet};
use story::{Failure, Story};

fn passed(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status == 200).count()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let rules = RuleSet::load(Path::new(env!("CARGO_MANIFEST_DIR")).join("rules.toml"))?;
    let app = Router::new()
        .fallback(|| async { "fine" })
        .layer(RateLimitLayer::from_rules(rules, story::store()));
    let story = Story::begin(app).await?;

    println!("Whom nobody knows is on the free plan, whatever they say of themselves.");
    let claims = [("x-plan", "enterprise"), ("x-api-key", "made-up")];
    assert_eq!(passed(&story.ask_often(61, "GET /api/books", &claims).await?), 60);

    println!("Who came with a key that was handed out has the plan of its holder.");
    let alice = [("x-api-key", "demo-key-of-alice")];
    assert_eq!(passed(&story.ask_often(61, "GET /api/books", &alice).await?), 61);
    let acme = story.ask("GET /api/books", &[("x-api-key", "demo-key-of-acme")], "").await?;
    assert!(acme.header("ratelimit-policy").is_some_and(|told| told.contains("q=60000")));

    println!("Reports weigh double, payments a tenth, webhooks and health checks nothing.");
    assert_eq!(passed(&story.ask_often(31, "GET /api/reports/1", &[]).await?), 30);
    assert_eq!(passed(&story.ask_often(100, "POST /api/payments", &[]).await?), 100);
    assert_eq!(passed(&story.ask_often(100, "POST /webhooks/stripe", &[]).await?), 100);
    assert_eq!(passed(&story.ask_often(100, "GET /health", &[]).await?), 100);
    Ok(())
}
