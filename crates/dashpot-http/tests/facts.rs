//! Facts the application knows: it has looked at the session, and says who asks.

use std::net::IpAddr;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use dashpot_rules::Facts;

use crate::common::{Server, get, limit, rules, store};

/// Knows a session of alice, one of bob, and that alice is a pro.
async fn authenticate(mut request: Request, next: Next) -> Response {
    let session = request.headers().get("cookie").and_then(|cookie| cookie.to_str().ok());
    let facts = match session {
        Some("session=a1") | Some("session=a2") => {
            Some(Facts::new().user("alice").tier("pro").set("tenant", "acme"))
        }
        Some("session=b1") => Some(Facts::new().user("bob").set("tenant", "acme")),
        Some("session=far") => {
            Some(Facts::new().ip("::ffff:203.0.113.7".parse::<IpAddr>().unwrap()))
        }
        _ => None,
    };
    if let Some(facts) = facts {
        request.extensions_mut().insert(facts);
    }
    next.run(request).await
}

async fn server(text: &str) -> Server {
    let app = Router::new().fallback(async || "served");
    // The last layer is the first to see a request.
    let app = app.layer(limit(rules(text), store().0)).layer(from_fn(authenticate));
    Server::start(app).await
}

const BY_USER: &str = r#"
    [identity]
    user = "header:x-user-id"
    default_tier = "free"

    [[rule]]
    name = "api"
    by = ["user | ip"]
    tiers.free = ["2/min"]
    tiers.pro = ["4/min"]
"#;

#[tokio::test]
async fn the_application_is_believed() {
    let server = server(BY_USER).await;
    let alice = get("/").line("cookie", "session=a1");
    assert_eq!(alice.statuses(&server, 2).await, [200, 200]);
    // Another session and another address, but still alice.
    let alice = get("/").line("cookie", "session=a2").from("127.0.0.2");
    assert_eq!(alice.statuses(&server, 3).await, [200, 200, 429]);
    let bob = get("/").line("cookie", "session=b1");
    assert_eq!(bob.statuses(&server, 3).await, [200, 200, 429]);
    // Nobody in particular counts by address.
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
}

#[tokio::test]
async fn the_application_is_believed_before_the_request() {
    let server = server(BY_USER).await;
    for n in 0..4 {
        // From elsewhere each time, so that it is the user who counts.
        let bob = get("/").from(&format!("127.0.1.{n}")).line("cookie", "session=b1");
        let bob = bob.line("x-user-id", format!("user-{n}"));
        assert_eq!(bob.status(&server).await, if n < 2 { 200 } else { 429 }, "{n}");
    }
}

#[tokio::test]
async fn facts_of_its_own_count_and_match() {
    let text = r#"
        [[rule]]
        name = "tenant"
        match = { fact = { tenant = "*" } }
        by = ["fact:tenant"]
        limits = ["3/min"]
    "#;
    let server = server(text).await;
    let alice = get("/").line("cookie", "session=a1");
    let bob = get("/").line("cookie", "session=b1");
    assert_eq!(alice.statuses(&server, 2).await, [200, 200]);
    assert_eq!(bob.statuses(&server, 2).await, [200, 429]);
    assert_eq!(alice.status(&server).await, 429);
    // Others have no tenant, and no header makes one.
    let other = get("/").line("tenant", "acme").line("fact:tenant", "acme");
    assert_eq!(other.statuses(&server, 5).await, [200; 5]);
}

#[tokio::test]
async fn an_address_the_application_knows_counts() {
    let text = "[block]\nip = ['203.0.113.0/24']\n[[rule]]\nname = 'r'\nlimits = ['9/min']";
    let server = server(text).await;
    assert_eq!(get("/").line("cookie", "session=far").status(&server).await, 403);
    assert_eq!(get("/").status(&server).await, 200);
}
