//! Charging by what came of it: failures only, or what it really cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::RawQuery;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use dashpot::ManualClock;
use dashpot_http::Used;

use crate::common::{Server, get, limit, rules, store};

/// Answers as the query says: `status=401`, `header=12` and `used=12` are what it cost.
async fn as_told(RawQuery(query): RawQuery) -> Response {
    let mut response = "done".into_response();
    for part in query.unwrap_or_default().split('&') {
        match part.split_once('=') {
            Some(("status", status)) => {
                *response.status_mut() = status.parse::<StatusCode>().unwrap()
            }
            Some(("header", used)) => {
                response.headers_mut().insert("x-tokens-used", used.parse().unwrap());
            }
            Some(("used", used)) => {
                response.extensions_mut().insert(Used(used.parse().unwrap()));
            }
            _ => {}
        }
    }
    response
}

async fn server(text: &str) -> (Server, ManualClock) {
    let (store, clock) = store();
    let app = Router::new().fallback(as_told);
    let app = app.layer(limit(rules(text), store));
    (Server::start(app).await, clock)
}

const FAILURES: &str = r#"
    [[rule]]
    name = "login"
    by = ["ip"]
    limits = ["3/h"]
    algorithm = "sliding-log"
    charge_on = [401, 403]
"#;

#[tokio::test]
async fn right_passwords_do_not_count() {
    let (server, _) = server(FAILURES).await;
    assert_eq!(get("/login").statuses(&server, 20).await, [200; 20]);
    assert_eq!(get("/?status=404").statuses(&server, 5).await, [404; 5]);
}

#[tokio::test]
async fn wrong_passwords_do_count_and_then_nobody_gets_in() {
    let (server, clock) = server(FAILURES).await;
    for status in ["401", "403", "401"] {
        get("/login").send(&server).await;
        assert_eq!(get(&format!("/?status={status}")).status(&server).await.to_string(), status);
    }
    // The right password does not help any more, or guessing on would pay.
    assert_eq!(get("/login").status(&server).await, 429);
    assert_eq!(get("/?status=401").status(&server).await, 429);
    assert_eq!(get("/login").from("127.0.0.2").status(&server).await, 200);
    clock.advance(Duration::from_secs(3600));
    assert_eq!(get("/login").status(&server).await, 200);
}

/// Many at once must not all slip in before the first failure is known: what is in flight counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guesses_in_flight_count() {
    let (server, _) = server(FAILURES).await;
    let server = Arc::new(server);
    let guessed = Arc::new(AtomicU64::new(0));
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let (server, guessed) = (server.clone(), guessed.clone());
        tasks.spawn(async move {
            if get("/?status=401").status(&server).await == 401 {
                guessed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    assert_eq!(guessed.load(Ordering::Relaxed), 3);
}

/// Each request is taken to cost ten, until it is known. Time stands still.
const TOKENS: &str = r#"
    [[rule]]
    name = "tokens"
    by = ["ip"]
    limits = ["100/min"]
    cost = 10
    settle = "header:x-tokens-used"
"#;

/// What is left, as the headers of the next request say, which itself takes ten.
async fn left(server: &Server) -> u64 {
    let answer = get("/?used=0").send(server).await;
    assert_eq!(answer.status, 200);
    let told = answer.get("ratelimit").unwrap();
    let left = told.split(';').find_map(|part| part.strip_prefix("r=")).unwrap();
    left.parse::<u64>().unwrap() + 10
}

#[tokio::test]
async fn what_it_really_cost_is_charged() {
    let (server, _) = server(TOKENS).await;
    assert_eq!(left(&server).await, 100);
    for (query, expected) in [
        ("header=25", 75),
        // Less than was reserved: the rest comes back.
        ("header=1", 74),
        ("header=0", 74),
        ("used=4", 70),
        // The service itself knows better than a header from somewhere behind it.
        ("used=5&header=50", 65),
        // What nobody says anything about stays charged, and nonsense is nothing.
        ("nothing=0", 55),
        ("header=many", 45),
        ("header=-5", 35),
        ("header=1.5", 25),
        // A failure costs what it says, too.
        ("status=500&header=5", 20),
    ] {
        get(&format!("/?{query}")).send(&server).await;
        assert_eq!(left(&server).await, expected, "{query}");
    }
}

#[tokio::test]
async fn who_used_more_than_there_was_is_in_debt() {
    let (server, clock) = server(TOKENS).await;
    // 150 more than there were. To have ten again takes 160, of which there are 100 a minute.
    assert_eq!(get("/?header=250").status(&server).await, 200);
    let denied = get("/").send(&server).await;
    assert_eq!((denied.status, denied.retry_after()), (429, 96));
    clock.advance(Duration::from_secs(95));
    assert_eq!(get("/").status(&server).await, 429);
    clock.advance(Duration::from_secs(1));
    assert_eq!(get("/").status(&server).await, 200);
}

#[tokio::test]
async fn the_header_stays_in_the_answer() {
    let (server, _) = server(TOKENS).await;
    let answer = get("/?header=25").send(&server).await;
    assert_eq!((answer.get("x-tokens-used"), answer.text()), (Some("25"), "done"));
}

/// What a caller writes into the request is not what the service says in its response.
#[tokio::test]
async fn the_caller_does_not_name_its_price() {
    let (server, _) = server(TOKENS).await;
    for n in 0..12 {
        let status = get("/").line("x-tokens-used", "0").status(&server).await;
        assert_eq!(status, if n < 10 { 200 } else { 429 }, "{n}");
    }
}

/// Rules settle each for itself: one by failures, one by tokens, one not at all.
#[tokio::test]
async fn every_rule_settles_for_itself() {
    let text = format!(
        "{TOKENS}\n{FAILURES}\n[[rule]]\nname = 'all'\nlimits = ['6/h']\nalgorithm = 'sliding-log'"
    );
    let (server, _) = server(&text).await;
    for query in
        ["header=0", "header=0&status=401", "used=0", "used=0&status=403", "used=0&status=401"]
    {
        assert_ne!(get(&format!("/?{query}")).status(&server).await, 429, "{query}");
    }
    // Three failures; the sixth request is stopped by them alone.
    let denied = get("/?used=0").send(&server).await;
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["login"]));
    // Another address has no failures, and one of six is left for all.
    let other = get("/?used=0").from("127.0.0.2");
    assert_eq!(other.statuses(&server, 2).await, [200, 429]);
}

/// Who hangs up before the answer does not get its guess for free.
#[tokio::test]
async fn a_guess_whose_answer_nobody_waits_for_counts() {
    use axum::body::Body;
    use tower::{Layer, ServiceExt, service_fn};

    let hang = service_fn(async |_: http::Request<_>| {
        std::future::pending::<Result<http::Response<Body>, std::convert::Infallible>>().await
    });
    let service = limit(rules(FAILURES), store().0).layer(hang);
    let guess = || service.clone().oneshot(http::Request::new(Body::default()));
    for _ in 0..3 {
        let hung_up = tokio::time::timeout(Duration::from_millis(5), guess()).await;
        assert!(hung_up.is_err());
    }
    assert_eq!(guess().await.unwrap().status(), 429);
}

/// A number of any size is a number.
#[tokio::test]
async fn a_cost_beyond_all_bounds_is_a_debt_beyond_all_bounds() {
    for used in ["18446744073709551615", "18446744073709551616"] {
        let (server, clock) = server(TOKENS).await;
        assert_eq!(get(&format!("/?header={used}")).status(&server).await, 200);
        clock.advance(Duration::from_secs(86_400));
        let status = get("/").status(&server).await;
        // The second one is more than any number here, so it is nonsense, and the reserve stays.
        assert_eq!(status, if used.ends_with('5') { 429 } else { 200 }, "{used}");
    }
}
