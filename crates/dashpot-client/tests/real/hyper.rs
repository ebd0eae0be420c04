//! With hyper's own client under the tower layer: its errors are its own, and mean the same.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use dashpot_client::{
    CallError, GaveUp, Manners, NotSent, Pace, Patience, Polite, PoliteLayer, Replay, Report,
};
use dashpot_testkit::process::free_port;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use tower::ServiceExt;
use tower_layer::Layer;

use super::server::{Server, endless, hangs_up, quick, status, text};
use super::support::run;

type Body = Full<Bytes>;

fn polite(manners: Manners) -> Polite<Client<HttpConnector, Replay<Body>>> {
    PoliteLayer::new(manners).layer(Client::builder(TokioExecutor::new()).build_http())
}

fn get(url: &str) -> Request<Body> {
    Request::get(url).body(Body::default()).unwrap()
}

fn post(url: &str, body: impl Into<Bytes>) -> Request<Body> {
    Request::post(url).body(Body::new(body.into())).unwrap()
}

#[test]
fn who_refuses_to_connect_has_seen_nothing() {
    run(async {
        let url = format!("http://{}/", SocketAddr::from(([127, 0, 0, 1], free_port())));
        let polite = polite(quick().attempts(3).build());
        for request in [get(&url), post(&url, "not idempotent")] {
            let error = polite.clone().oneshot(request).await.unwrap_err();
            let CallError::Failed { source, report } = error else { panic!("{error:?}") };
            let source = source.downcast::<hyper_util::client::legacy::Error>().unwrap();
            assert!(source.is_connect(), "{source:?}");
            assert_eq!((report.attempts(), report.gave_up()), (3, Some(GaveUp::Attempts)));
        }
    });
}

#[test]
fn a_connection_that_is_closed_without_an_answer_is_no_reason_to_post_twice() {
    run(async {
        let url = hangs_up().await;
        let polite = polite(quick().attempts(2).build());
        let expected = [(get(&url), 2, GaveUp::Attempts), (post(&url, ""), 1, GaveUp::Unsafe)];
        for (request, attempts, why) in expected {
            let error = polite.clone().oneshot(request).await.unwrap_err();
            let report = error.report();
            assert_eq!((report.attempts(), report.gave_up()), (attempts, Some(why)), "{error:?}");
        }
    });
}

/// A body so long, to a server that fails at first.
async fn replayed(length: usize) -> (u16, Report, Vec<usize>) {
    let server = Server::start(|number, _| status(if number == 0 { 503 } else { 200 })).await;
    let mut request = post(&server.at("/"), vec![b'x'; length]);
    request.headers_mut().insert("idempotency-key", "1".parse().unwrap());
    let answer = polite(quick().build()).oneshot(request).await.unwrap();
    let report = answer.extensions().get::<Report>().unwrap().clone();
    let lengths = server.seen().into_iter().map(|one| one.body.len()).collect();
    (answer.status().as_u16(), report, lengths)
}

#[test]
fn a_body_is_sent_again_up_to_64_kib() {
    run(async {
        let whole = 64 * 1024;
        let (status, report, lengths) = replayed(whole).await;
        assert_eq!((status, report.gave_up(), lengths), (200, None, vec![whole, whole]));
        let (status, report, lengths) = replayed(whole + 1).await;
        assert_eq!((status, lengths), (503, vec![whole + 1]));
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Body)), "{report}");
    });
}

#[test]
fn a_call_is_on_its_way_until_its_answer_was_read_or_dropped() {
    run(async {
        let server = Server::start(|_, seen| match seen.path.as_str() {
            "/endless" => endless(),
            _ => text("here you are"),
        })
        .await;
        let polite = polite(quick().pace(Pace::default().concurrent(1)).build());
        let is_free = async || {
            let mut request = get(&server.at("/"));
            request.extensions_mut().insert(Patience(Duration::from_millis(30)));
            match polite.clone().oneshot(request).await {
                Ok(_) => true,
                Err(error) => {
                    let reason = error.not_sent();
                    assert!(matches!(reason, Some(NotSent::TooLate { .. })), "{error:?}");
                    false
                }
            }
        };
        let mut answer = polite.clone().oneshot(get(&server.at("/endless"))).await.unwrap();
        assert!(!is_free().await, "nothing was read");
        answer.body_mut().frame().await.unwrap().unwrap();
        assert!(!is_free().await, "not all was read");
        drop(answer);
        assert!(is_free().await, "nobody will read it");
        let mut answer = polite.clone().oneshot(get(&server.at("/"))).await.unwrap();
        assert!(!is_free().await, "nothing was read");
        while answer.body_mut().frame().await.is_some() {}
        assert!(is_free().await, "all was read");
        drop(answer);
    });
}
