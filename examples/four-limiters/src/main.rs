//! Four limiters in four short rules: a caller's rate, a caller's requests at once, a share of the fleet, and what this process can
//! take. The first two protect callers from each other, the last two the service from all of them.

use std::sync::Arc;
use std::time::Duration;

use axum::{Router, routing::any};
use dashpot_http::{RateLimitLayer, RuleSet};
use story::{Answer, Failure, Story};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

/// Requests to `/hold` and `/pay` that are not answered until they are let go.
struct Held<'s> {
    story: &'s Arc<Story>,
    go: Arc<Semaphore>,
    asked: Vec<JoinHandle<Result<Answer, Failure>>>,
}

impl Held<'_> {
    /// Asks, and goes on while the answer is waited for.
    async fn ask(&mut self, request: &'static str, caller: &str) {
        let (story, caller) = (self.story.clone(), caller.to_owned());
        self.asked.push(tokio::spawn(async move {
            story.ask(request, &[("x-caller", &caller)], "").await
        }));
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    /// Lets all of them go. They were served.
    async fn let_go(self) -> Result<(), Failure> {
        self.go.add_permits(self.asked.len());
        for asked in self.asked {
            assert_eq!(asked.await??.status, 200);
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Failure> {
    let go = Arc::new(Semaphore::new(0));
    let wait = go.clone();
    let hold = any(move || {
        let wait = wait.clone();
        async move {
            if let Ok(permit) = wait.acquire().await {
                permit.forget();
            }
            "done"
        }
    });
    let rules = RuleSet::parse(include_str!("../rules.toml"))?;
    let app = Router::new()
        .route("/", any(|| async { "hello" }))
        .route("/hold", hold.clone())
        .route("/pay", hold)
        .layer(RateLimitLayer::from_rules(rules, story::store()));
    let story = Arc::new(Story::begin(app).await?);
    let held = || Held { story: &story, go: go.clone(), asked: Vec::new() };
    let status = async |request, caller: &str| -> Result<u16, Failure> {
        Ok(story.ask(request, &[("x-caller", caller)], "").await?.status)
    };

    println!("1. A caller's rate: five at once, and the sixth waits.");
    for _ in 0..5 {
        assert_eq!(status("GET /", "alice").await?, 200);
    }
    assert_eq!(status("GET /", "alice").await?, 429);

    println!("2. A caller's requests at once: two, and the third is denied; others are not.");
    let mut two = held();
    two.ask("GET /hold", "bob").await;
    two.ask("GET /hold", "bob").await;
    assert_eq!(status("GET /", "bob").await?, 429);
    assert_eq!(status("GET /", "carol").await?, 200);
    two.let_go().await?;

    println!("3. The fleet: half of it is left to payments.");
    let mut three = held();
    for caller in ["dave", "erin", "frank"] {
        three.ask("GET /hold", caller).await;
    }
    assert_eq!(status("GET /", "grace").await?, 503);
    three.ask("POST /pay", "grace").await;
    three.let_go().await?;

    println!("4. This process: there is no room for a sixth, whoever it is.");
    let mut five = held();
    for caller in ["heidi", "ivan", "judy", "ken", "leo"] {
        five.ask("POST /pay", caller).await;
    }
    assert_eq!(status("POST /pay", "mallory").await?, 503);
    five.let_go().await
}
