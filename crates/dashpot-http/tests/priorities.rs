//! Priorities: some requests weigh more than others, and some are never limited.

use crate::common::{Server, get, rules};

const PRIORITIES: &str = r#"
    [[priority]]
    name = "webhook"
    match = { path = ["/webhooks/*", "/health"] }
    weight = "unlimited"

    [[priority]]
    name = "critical"
    match = { path = "/pay" }
    weight = 10.0

    [[priority]]
    name = "background"
    match = { header = { x-background = "*" } }
    weight = 0.5

    [[rule]]
    name = "api"
    by = ["ip"]
    limits = ["4/min"]
"#;

/// How many of a hundred pass.
async fn passed(server: &Server, asked: crate::common::Ask) -> usize {
    let statuses = asked.statuses(server, 100).await;
    statuses.into_iter().filter(|status| *status == 200).count()
}

#[tokio::test]
async fn webhooks_and_health_checks_are_never_limited() {
    let server = Server::limited(rules(PRIORITIES)).await;
    assert_eq!(passed(&server, get("/webhooks/stripe")).await, 100);
    assert_eq!(passed(&server, get("/health")).await, 100);
    // They have used up nothing, and are told nothing.
    assert_eq!(passed(&server, get("/")).await, 4);
    assert_eq!(get("/health").send(&server).await.get("ratelimit"), None);
}

#[tokio::test]
async fn a_weight_multiplies_the_limit() {
    let server = Server::limited(rules(PRIORITIES)).await;
    assert_eq!(passed(&server, get("/pay")).await, 40);
    assert_eq!(passed(&server, get("/").line("x-background", "1")).await, 2);
    // Each has counters of its own: one does not starve the other.
    assert_eq!(passed(&server, get("/")).await, 4);
}

#[tokio::test]
async fn the_first_priority_that_matches_counts() {
    let server = Server::limited(rules(PRIORITIES)).await;
    assert_eq!(passed(&server, get("/pay").line("x-background", "1")).await, 40);
    assert_eq!(passed(&server, get("/health").line("x-background", "1")).await, 100);
}

/// A path that only looks like one that is free is not free.
#[tokio::test]
async fn nobody_is_a_webhook_by_spelling() {
    let server = Server::limited(rules(PRIORITIES)).await;
    assert_eq!(passed(&server, get("/api")).await, 4);
    for path in [
        "/webhooks/../api",
        "/webhooks/%2e%2e/api",
        "/api?/webhooks/x",
        "/api#/webhooks/x",
        "/api/webhooks/x",
        "//webhooks/../api",
        "/webhooks-x",
        "/healthz",
        "http://webhooks/api",
    ] {
        assert_eq!(get(path).status(&server).await, 429, "{path}");
    }
}
