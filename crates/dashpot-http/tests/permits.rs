//! Requests in flight: a permit is held until the answer was sent, and never for longer.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::routing::get as route;
use http_body::Frame;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::common::{Answer, PATIENCE, Server, ask, get, limit, rules, store};

const ONE_AT_A_TIME: &str = r#"
    [[rule]]
    name = "slots"
    limits = ["1 concurrent"]
    algorithm = "concurrency"
"#;

/// A body that comes as it is fed, and ends when its feeder goes.
struct Fed(UnboundedReceiver<&'static str>);

impl http_body::Body for Fed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|piece| piece.map(|piece| Ok(Frame::data(piece.into()))))
    }
}

type Feeders = Arc<Mutex<Vec<UnboundedSender<&'static str>>>>;

/// `/` answers at once, `/slow` as it is fed, `/never` never, and `/panic` not at all.
async fn server(text: &str) -> (Server, Feeders) {
    let feeders = Feeders::default();
    let known = feeders.clone();
    let slow = async move || {
        let (feeder, food) = unbounded_channel();
        known.lock().unwrap().push(feeder);
        Body::new(Fed(food))
    };
    let app = Router::new()
        .route("/", route(async || "served"))
        .route("/slow", route(slow))
        .route("/never", route(async || std::future::pending::<()>().await))
        .route(
            "/panic",
            route(async || {
                if true {
                    panic!("on purpose")
                }
            }),
        )
        .layer(limit(rules(text), store().0));
    (Server::start(app).await, feeders)
}

/// Waits until there is a place. A server finds out in its own time that somebody has gone.
async fn assert_free_soon(server: &Server) {
    let start = Instant::now();
    while get("/").status(server).await != 200 {
        assert!(start.elapsed() < PATIENCE, "the permit is still held");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Waits until the place is taken.
async fn assert_taken_soon(server: &Server) {
    let start = Instant::now();
    while get("/").status(server).await == 200 {
        assert!(start.elapsed() < PATIENCE, "the permit is not held");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_permit_is_given_back_with_the_answer() {
    let (server, _) = server(ONE_AT_A_TIME).await;
    assert_eq!(get("/").statuses(&server, 10).await, [200; 10]);
    assert_eq!(ask("HEAD", "/").statuses(&server, 5).await, [200; 5]);
    assert_eq!(get("/none").statuses(&server, 5).await, [404; 5]);
    assert_eq!(ask("PUT", "/").statuses(&server, 5).await, [405; 5]);
}

#[tokio::test]
async fn a_permit_is_held_until_the_body_was_sent() {
    let (server, feeders) = server(ONE_AT_A_TIME).await;
    let mut stream = get("/slow").begin(&server).await;
    let mut answer = Answer::read_head(&mut stream).await;
    assert_eq!(answer.status, 200);
    let feeder = feeders.lock().unwrap().pop().unwrap();
    for piece in ["one", "two"] {
        feeder.send(piece).unwrap();
        assert!(answer.read_chunk(&mut stream).await);
        // The handler has returned long ago, but the answer is still on its way.
        let denied = get("/").send(&server).await;
        assert_eq!(denied.status, 429);
        assert_eq!(denied.get("ratelimit-policy"), Some(r#""slots";q=1;qu="concurrent-requests""#));
        // Nobody knows when there is a place again.
        assert_eq!(denied.get("retry-after"), None);
    }
    drop(feeder);
    assert!(!answer.read_chunk(&mut stream).await);
    assert_eq!(answer.text(), "onetwo");
    assert_eq!(get("/").status(&server).await, 200);
}

#[tokio::test]
async fn a_permit_is_given_back_by_a_caller_who_leaves_before_the_answer() {
    let (server, _) = server(ONE_AT_A_TIME).await;
    for _ in 0..3 {
        let stream = get("/never").begin(&server).await;
        assert_taken_soon(&server).await;
        drop(stream);
        assert_free_soon(&server).await;
    }
}

#[tokio::test]
async fn a_permit_is_given_back_by_a_caller_who_leaves_within_the_answer() {
    let (server, feeders) = server(ONE_AT_A_TIME).await;
    for _ in 0..3 {
        let mut stream = get("/slow").begin(&server).await;
        let mut answer = Answer::read_head(&mut stream).await;
        let feeder = feeders.lock().unwrap().pop().unwrap();
        feeder.send("some").unwrap();
        assert!(answer.read_chunk(&mut stream).await);
        assert_eq!(get("/").status(&server).await, 429);
        drop(stream);
        assert_free_soon(&server).await;
    }
}

#[tokio::test]
async fn a_permit_is_given_back_by_a_handler_that_panics() {
    let (server, _) = server(ONE_AT_A_TIME).await;
    for _ in 0..3 {
        drop(get("/panic").begin(&server).await);
        assert_free_soon(&server).await;
    }
}

/// One place each: a caller who takes its time is in nobody else's way.
#[tokio::test]
async fn permits_are_counted_by_key() {
    let text = ONE_AT_A_TIME.replace("limits", "by = ['ip']\nlimits");
    let (server, feeders) = server(&text).await;
    let mut stream = get("/slow").begin(&server).await;
    Answer::read_head(&mut stream).await;
    assert_eq!(get("/").status(&server).await, 429);
    assert_eq!(get("/").from("127.0.0.2").status(&server).await, 200);
    feeders.lock().unwrap().clear();
}

/// Who is denied a permit is charged nothing else, and the other way round.
#[tokio::test]
async fn a_permit_goes_with_the_other_limits_or_not_at_all() {
    let text = format!("{ONE_AT_A_TIME}\n[[rule]]\nname = 'rate'\nlimits = ['3/min']");
    let (server, feeders) = server(&text).await;
    let mut stream = get("/slow").begin(&server).await;
    let mut answer = Answer::read_head(&mut stream).await;
    assert_eq!(get("/").statuses(&server, 10).await, [429; 10]);
    feeders.lock().unwrap().clear();
    while answer.read_chunk(&mut stream).await {}
    // One was used by the slow one, none by the ten.
    assert_eq!(get("/").statuses(&server, 3).await, [200, 200, 429]);
    // That one was denied by the rate, and holds no permit.
    let denied = get("/").send(&server).await;
    assert_eq!(denied.json()["violated-policies"], serde_json::json!(["rate"]));
}
