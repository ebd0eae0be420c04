//! Newcomers may burst, inside a daily quota; the logged-out have less.
//!
//! The application knows its users, so it says who asks: a middleware puts [`Facts`] into the
//! request before the limits see it.

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use dashpot_http::{Facts, RateLimitLayer, RuleSet};
use story::{Failure, Story};

/// What the application does to know its users; here, sessions are easy to guess.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let session = request.headers().get("x-session").and_then(|session| session.to_str().ok());
    let user = session.and_then(|session| session.strip_prefix("session-of-")).map(str::to_owned);
    if let Some(user) = user {
        request.extensions_mut().insert(Facts::new().user(user));
    }
    next.run(request).await
}

fn passed(statuses: &[u16]) -> usize {
    statuses.iter().filter(|status| **status == 200).count()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let app = Router::new()
        .fallback(|| async { "here you are" })
        .layer(RateLimitLayer::from_rules(rules, story::store()))
        .layer(from_fn(authenticate)); // the last one added comes first
    let story = Story::begin(app).await?;

    println!("Alice is new, and may do fifty things at once.");
    let alice = [("x-session", "session-of-alice")];
    assert_eq!(passed(&story.ask_often(51, "GET /api/feed", &alice).await?), 50);

    println!("Who is not logged in gets thirty, for each endpoint and browser.");
    let firefox = [("user-agent", "Firefox")];
    assert_eq!(passed(&story.ask_often(31, "GET /api/feed", &firefox).await?), 30);
    assert_eq!(passed(&story.ask_often(31, "GET /api/search", &firefox).await?), 30);
    println!("Another browser is another caller, but the address is the same: ninety in all.");
    let another = [("user-agent", "Firefox, honestly")];
    assert_eq!(passed(&story.ask_often(31, "GET /api/feed", &another).await?), 30);
    let third = [("user-agent", "Netscape Navigator")];
    assert_eq!(passed(&story.ask_often(2, "GET /api/feed", &third).await?), 0);
    Ok(())
}
