//! Charging by the bytes of the answer that were sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use dashpot::ManualClock;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::BodyExt;
use tower::util::BoxCloneSyncService;
use tower::{Layer, ServiceExt, service_fn};

use crate::common::{limit, rules, store};

/// Time stands still, so nothing comes back by itself.
const BYTES: &str = "[[rule]]\nname = 'bytes'\nlimits = ['10000/h']\nsettle = 'bytes'\n";

/// So many frames of so many bytes, then trailers, or a failure, or nothing ever.
struct Frames {
    left: usize,
    size: usize,
    end: &'static str,
}

impl http_body::Body for Frames {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.left > 0 {
            self.left -= 1;
            return Poll::Ready(Some(Ok(Frame::data(vec![b'x'; self.size].into()))));
        }
        match std::mem::take(&mut self.end) {
            "trailers" => Poll::Ready(Some(Ok(Frame::trailers(HeaderMap::new())))),
            "failure" => Poll::Ready(Some(Err(std::io::Error::other("broken")))),
            "never" => Poll::Pending,
            _ => Poll::Ready(None),
        }
    }
}

type Limited = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// Answers `/COUNT/SIZE/END` with frames, `/SIZE` with a body of which the length is known.
fn limited(text: &str) -> (Limited, ManualClock) {
    let inner = service_fn(async |request: Request<Body>| {
        let parts: Vec<_> = request.uri().path()[1..].split('/').collect();
        let number = |nth: usize| parts[nth].parse::<usize>().unwrap();
        let body = match (request.method().as_str(), parts.len()) {
            ("HEAD", _) => Body::empty(),
            (_, 1) => Body::from(vec![b'x'; number(0)]),
            _ => {
                let end = match parts[2] {
                    "trailers" => "trailers",
                    "failure" => "failure",
                    "never" => "never",
                    _ => "",
                };
                Body::new(Frames { left: number(0), size: number(1), end })
            }
        };
        let mut response = Response::new(body);
        if request.uri().query() == Some("304") {
            *response.status_mut() = StatusCode::NOT_MODIFIED;
        }
        Ok::<_, Infallible>(response)
    });
    let (store, clock) = store();
    let service = limit(rules(text), store).layer(inner);
    let service = service.map_response(|response| response.map(Body::new));
    (BoxCloneSyncService::new(service), clock)
}

async fn ask(service: &Limited, method: &str, path: &str) -> Response<Body> {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    service.clone().oneshot(request).await.unwrap()
}

async fn get(service: &Limited, path: &str) -> Response<Body> {
    ask(service, "GET", path).await
}

/// What is left: the next answer tells, which is empty.
async fn left(service: &Limited) -> u64 {
    // What was dropped may be settled by somebody else.
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
    let answer = get(service, "/0").await;
    assert_eq!(answer.status(), 200);
    let told = answer.headers()["ratelimit"].to_str().unwrap().to_owned();
    answer.into_body().collect().await.unwrap();
    let left = told.split(';').find_map(|part| part.strip_prefix("r=")).unwrap();
    left.parse::<u64>().unwrap() + 1
}

#[tokio::test]
async fn a_body_costs_its_bytes_however_it_is_cut() {
    let (service, _) = limited(BYTES);
    assert_eq!(left(&service).await, 10_000);
    let mut expected = 10_000;
    for (path, bytes) in [
        ("/1234", 1234),
        ("/1", 1),
        ("/3/100/", 300),
        ("/300/1/", 300),
        ("/2/500/trailers", 1000),
        ("/3/0/", 0),
        ("/0/0/trailers", 0),
    ] {
        let body = get(&service, path).await.into_body().collect().await.unwrap().to_bytes();
        assert_eq!(body.len() as u64, bytes, "{path}");
        expected -= bytes;
        assert_eq!(left(&service).await, expected, "{path}");
    }
}

#[tokio::test]
async fn without_a_body_it_costs_nothing() {
    let (service, _) = limited(BYTES);
    for _ in 0..5 {
        ask(&service, "HEAD", "/5000").await.into_body().collect().await.unwrap();
        get(&service, "/0?304").await.into_body().collect().await.unwrap();
        get(&service, "/0").await.into_body().collect().await.unwrap();
    }
    assert_eq!(left(&service).await, 10_000);
}

/// What was taken of it was sent; the rest never was.
#[tokio::test]
async fn a_body_that_is_dropped_costs_what_was_taken() {
    let (service, _) = limited(BYTES);
    let mut expected = 10_000;
    for frames in [0, 1, 3] {
        let mut body = get(&service, "/9/100/").await.into_body();
        for _ in 0..frames {
            assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 100);
        }
        drop(body);
        expected -= frames * 100;
        assert_eq!(left(&service).await, expected, "{frames}");
    }
    // Nobody looked whether there was more.
    let mut body = get(&service, "/700").await.into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    assert_eq!(left(&service).await, expected - 700);
}

#[tokio::test]
async fn a_body_that_fails_costs_what_came_before() {
    let (service, _) = limited(BYTES);
    assert!(get(&service, "/4/200/failure").await.into_body().collect().await.is_err());
    assert_eq!(left(&service).await, 9200);
}

/// Until it has ended, it costs what was reserved, and what was sent of it is known when it ends.
#[tokio::test]
async fn while_it_is_sent_it_costs_what_was_reserved() {
    let (service, _) = limited(&BYTES.replace("settle", "cost = 50\nsettle"));
    let before = left(&service).await + 49;
    assert_eq!(before, 10_000);
    let mut body = get(&service, "/2/100/never").await.into_body();
    for _ in 0..2 {
        body.frame().await.unwrap().unwrap();
    }
    assert_eq!(left(&service).await + 49, 9950);
    drop(body);
    assert_eq!(left(&service).await + 49, 9800);
}

#[tokio::test]
async fn a_large_answer_is_a_debt_that_denials_do_not_add_to() {
    let (service, clock) = limited(&BYTES.replace("10000/h", "1000/10s"));
    get(&service, "/2500").await.into_body().collect().await.unwrap();
    // 1500 more than there were, and one to ask with: there are 100 a second.
    for _ in 0..10 {
        let denied = get(&service, "/0").await;
        assert_eq!(denied.status(), 429);
        assert_eq!(denied.headers()["retry-after"], "16");
        assert!(!denied.into_body().collect().await.unwrap().to_bytes().is_empty());
    }
    clock.advance(Duration::from_millis(15_009));
    assert_eq!(get(&service, "/0").await.status(), 429);
    clock.advance(Duration::from_millis(1));
    assert_eq!(get(&service, "/0").await.status(), 200);
}

#[tokio::test]
async fn only_the_rule_that_says_so_counts_bytes() {
    let text = format!("{BYTES}[[rule]]\nname = 'requests'\nlimits = ['3/h']\n");
    let (service, _) = limited(&text);
    for _ in 0..3 {
        let answer = get(&service, "/1000").await;
        assert_eq!(answer.status(), 200);
        answer.into_body().collect().await.unwrap();
    }
    let denied = get(&service, "/1000").await;
    assert_eq!(denied.status(), 429);
    let body = denied.into_body().collect().await.unwrap().to_bytes();
    let body: serde_json::Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["violated-policies"], serde_json::json!(["requests"]));
}
