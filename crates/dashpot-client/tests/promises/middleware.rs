//! In front of reqwest. The network is real, and time is not: nobody waits.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use dashpot::ManualClock;
use dashpot_client::{CallError, GaveUp, Manners, MannersBuilder, NotSent, Pace, Report};
use http::{Extensions, HeaderMap, StatusCode};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error};

/// What arrived.
type Seen = Arc<Mutex<Vec<(HeaderMap, Bytes)>>>;

/// A server that answers these, one after the other, and then well.
async fn server(statuses: &'static [u16]) -> (SocketAddr, Seen) {
    let seen = Seen::default();
    let noted = seen.clone();
    let handler = move |headers: HeaderMap, body: Bytes| {
        let mut seen = noted.lock().unwrap();
        let status = statuses.get(seen.len()).copied().unwrap_or(200);
        seen.push((headers, body));
        std::future::ready(StatusCode::from_u16(status).unwrap())
    };
    let layer = axum::extract::DefaultBodyLimit::disable();
    let router = Router::new().fallback(handler).layer(layer);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, seen)
}

fn client(settings: impl FnOnce(MannersBuilder) -> MannersBuilder) -> ClientWithMiddleware {
    let builder = Manners::builder()
        .clock(ManualClock::default())
        .seed(1)
        .backoff(Duration::ZERO, Duration::ZERO);
    let inner = reqwest::Client::builder().no_proxy().build().unwrap();
    ClientBuilder::new(inner).with(settings(builder).build()).build()
}

#[tokio::test]
async fn a_call_is_made_again_and_its_answer_has_a_report() {
    let (address, seen) = server(&[503, 500]).await;
    let response =
        client(|builder| builder).get(format!("http://{address}/")).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.to_string(), "sent 3 times");
    assert_eq!(seen.lock().unwrap().len(), 3);
}

#[tokio::test]
async fn bytes_are_sent_again_whatever_their_length() {
    let (address, seen) = server(&[503]).await;
    let body = Bytes::from(vec![b'x'; 1 << 20]);
    let call = client(|builder| builder.replay(10)).put(format!("http://{address}/"));
    let response = call.body(body.clone()).send().await.unwrap();
    assert_eq!(response.status(), 200);
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    assert!(seen.iter().all(|(_, one)| *one == body));
}

#[tokio::test]
async fn streams_are_sent_once() {
    let (address, seen) = server(&[503]).await;
    let body = reqwest::Body::wrap(http_body_util::Full::<Bytes>::from("short"));
    let call = client(|builder| builder).put(format!("http://{address}/"));
    let response = call.body(body).send().await.unwrap();
    assert_eq!(response.status(), 503);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.gave_up(), Some(GaveUp::Body));
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_post_has_a_key_that_is_the_same_each_time() {
    let (address, seen) = server(&[503]).await;
    let client = client(|builder| builder.attach_idempotency_keys());
    client.post(format!("http://{address}/")).body("x").send().await.unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 2);
    let keys: Vec<_> = seen.iter().map(|(headers, _)| headers.get("idempotency-key")).collect();
    assert!(keys[0].is_some() && keys[0] == keys[1], "{keys:?}");
}

#[tokio::test]
async fn what_could_not_connect_is_made_again_if_it_may_be_and_reqwests_error_is_given_back() {
    // Nobody listens there any more.
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let client = client(|builder| builder);
    let request = client.put(format!("http://{address}/")).body("x").build().unwrap();
    let mut extensions = Extensions::new();
    let error = client.execute_with_extensions(request, &mut extensions).await.unwrap_err();
    assert!(matches!(&error, Error::Reqwest(error) if error.is_connect()), "{error:?}");
    let report = extensions.get::<Report>().unwrap();
    assert_eq!((report.attempts(), report.gave_up()), (4, Some(GaveUp::Attempts)));
}

#[tokio::test]
async fn who_was_not_sent_is_told_why() {
    let (address, seen) = server(&[]).await;
    let pace = Pace::every(Duration::from_secs(3600)).unwrap();
    let client = client(|builder| builder.pace(pace));
    client.get(format!("http://{address}/")).send().await.unwrap();
    let error = client.get(format!("http://{address}/")).send().await.unwrap_err();
    let Error::Middleware(error) = error else { panic!("{error:?}") };
    let error = error.downcast_ref::<CallError>().unwrap();
    let hour = Some(Duration::from_secs(3600));
    assert_eq!(error.not_sent(), Some(NotSent::TooLate { retry_after: hour }));
    assert_eq!(error.report().attempts(), 0);
    assert_eq!(seen.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_place_is_given_back_when_the_answer_was_read() {
    let (address, _) = server(&[]).await;
    let pace = Pace::default().concurrent(1).queue(0);
    let client = client(|builder| builder.pace(pace));
    for _ in 0..5 {
        let response = client.get(format!("http://{address}/")).send().await.unwrap();
        response.bytes().await.unwrap();
    }
}
