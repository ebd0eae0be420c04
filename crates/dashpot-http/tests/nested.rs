//! Layers within layers, and servers behind: who is nearest to the work is heard.

use std::time::Duration;

use axum::Router;
use axum::response::IntoResponse;

use crate::common::{Answer, Server, get, limit, rules, store};

const INNER: &str = "[[rule]]\nname = 'inner'\nlimits = ['2/min']";
const OUTER: &str = "[[rule]]\nname = 'outer'\nlimits = ['4/h']";

async fn nested(inner: &str, outer: &str) -> (Server, dashpot::ManualClock) {
    let (store, clock) = store();
    let app = Router::new().fallback(async || "served");
    let app = app.layer(limit(rules(inner), store.clone())).layer(limit(rules(outer), store));
    (Server::start(app).await, clock)
}

#[tokio::test]
async fn what_the_inner_layer_says_stays_said() {
    let (server, _) = nested(INNER, OUTER).await;
    let answer = get("/").send(&server).await;
    // `get` sees to it that there is one line of each.
    assert_eq!(answer.get("ratelimit-policy"), Some(r#""inner";q=2;w=60"#));
    assert_eq!(answer.get("ratelimit"), Some(r#""inner";r=1;t=30"#));
    get("/").send(&server).await;

    let denied = get("/").send(&server).await;
    assert_eq!((denied.status, denied.get("retry-after")), (429, Some("30")));
    assert_eq!(denied.get("ratelimit"), Some(r#""inner";r=0;t=30"#));
    assert_eq!(denied.get("cache-control"), Some("no-store"));
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["inner"]));
}

#[tokio::test]
async fn the_outer_layer_denies_for_itself() {
    let (server, clock) = nested(INNER, OUTER).await;
    for expected in [200, 200, 429, 429] {
        assert_eq!(get("/").status(&server).await, expected);
    }
    // Four have passed the outer layer, though the inner one denied two of them.
    clock.advance(Duration::from_secs(60));
    let denied = get("/").send(&server).await;
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["outer"]));
    assert_eq!(denied.get("ratelimit-policy"), Some(r#""outer";q=4;w=3600"#));
}

fn exposed(answer: &Answer) -> String {
    answer.all("access-control-expose-headers").join(", ").to_lowercase()
}

#[tokio::test]
async fn what_the_inner_layer_exposes_stays_exposed() {
    let (server, _) = nested(INNER, &format!("[headers]\nstyles = ['none']\n{OUTER}")).await;
    for expected in [200, 200, 429] {
        let answer = get("/").line("origin", "https://a.example").send(&server).await;
        assert_eq!(answer.status, expected);
        assert!(exposed(&answer).contains("ratelimit-policy"), "{}", exposed(&answer));
    }
}

/// A gateway in front of a server that has limits of its own.
#[tokio::test]
async fn what_the_application_says_stays_said() {
    let told = async || {
        let lines = [
            ("ratelimit", r#""theirs";r=7;t=9"#),
            ("ratelimit-policy", r#""theirs";q=8;w=9"#),
            ("access-control-expose-headers", "X-Theirs"),
        ];
        (lines, "served").into_response()
    };
    let app = Router::new().fallback(told).layer(limit(rules(OUTER), store().0));
    let server = Server::start(app).await;
    let answer = get("/").line("origin", "https://a.example").send(&server).await;
    assert_eq!(answer.get("ratelimit"), Some(r#""theirs";r=7;t=9"#));
    assert_eq!(answer.get("ratelimit-policy"), Some(r#""theirs";q=8;w=9"#));
    assert!(exposed(&answer).contains("x-theirs") && exposed(&answer).contains("retry-after"));
}

/// Two layers by one store are one limiter: the same names count the same things.
#[tokio::test]
async fn layers_that_share_a_store_share_its_counts() {
    let (store, _) = store();
    let route = |text: &str| {
        let app = Router::new().fallback(async || "served");
        app.layer(limit(rules(text), store.clone()))
    };
    let one = Server::start(route(INNER)).await;
    let other = Server::start(route(INNER)).await;
    assert_eq!(get("/").status(&one).await, 200);
    assert_eq!(get("/").statuses(&other, 2).await, [200, 429]);
    assert_eq!(get("/").status(&one).await, 429);
}

/// And one layer around two routes is one limiter, too.
#[tokio::test]
async fn clones_of_a_layer_share_everything() {
    let layer = limit(rules(INNER), store().0);
    let a = axum::routing::get(async || "a").layer(layer.clone());
    let b = axum::routing::get(async || "b").layer(layer);
    let server = Server::start(Router::new().route("/a", a).route("/b", b)).await;
    assert_eq!(get("/a").status(&server).await, 200);
    assert_eq!(get("/b").statuses(&server, 2).await, [200, 429]);
    assert_eq!(get("/a").status(&server).await, 429);
}
