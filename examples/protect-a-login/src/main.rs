//! Slow down password guessing: per address and per e-mail, and only failures count.

use axum::{Json, Router, http::StatusCode, routing::post};
use dashpot_http::{RateLimitLayer, RuleSet};
use serde_json::{Value, json};
use story::{Failure, Story};

async fn login(Json(attempt): Json<Value>) -> StatusCode {
    if attempt["password"] == "correct horse" { StatusCode::OK } else { StatusCode::UNAUTHORIZED }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let app = Router::new()
        .route("/login", post(login))
        .layer(RateLimitLayer::from_rules(rules, story::store()));
    let story = Story::begin(app).await?;
    let attempt = async |email: &str, password: &str| {
        let body = json!({ "email": email, "password": password }).to_string();
        let answer = story.ask("POST /login", &[("content-type", "application/json")], &body);
        answer.await.map(|answer| answer.status)
    };

    println!("Who knows the password may log in as often as they like.");
    for _ in 0..10 {
        assert_eq!(attempt("alice@example.com", "correct horse").await?, 200);
    }
    println!("Who guesses may not: three failures for an e-mail, however it is spelled.");
    for email in ["alice@example.com", "Alice@example.com", " ALICE@EXAMPLE.COM"] {
        assert_eq!(attempt(email, "guess").await?, 401);
    }
    assert_eq!(attempt("alice@example.com", "guess").await?, 429);
    println!("Nor by trying others: five failures for an address.");
    assert_eq!(attempt("bob@example.com", "guess").await?, 401);
    assert_eq!(attempt("carol@example.com", "guess").await?, 401);
    assert_eq!(attempt("dave@example.com", "guess").await?, 429);
    Ok(())
}
