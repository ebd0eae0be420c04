//! With reqwest: answers, and bodies.

use std::time::Duration;

use bytes::Bytes;
use dashpot_client::{GaveUp, NotSent, Pace, Patience, Report};
use http::{Method, StatusCode};
use http_body_util::Full;
use reqwest_middleware::{ClientWithMiddleware, RequestBuilder};

use super::reqwest_errors::not_sent;
use super::server::{Server, chunked, endless, plain, polite, quick, redirect, status, text};
use super::support::run;

/// Sends it, and tells how it was and what its report says.
async fn report(call: RequestBuilder) -> (StatusCode, Report) {
    let answer = call.send().await.unwrap();
    let report = answer.extensions().get::<Report>().expect("there is a report").clone();
    assert_eq!(report.last_status(), Some(answer.status()));
    (answer.status(), report)
}

/// What a program may ask an answer of reqwest's.
async fn known(answer: ::reqwest::Response) -> impl PartialEq + std::fmt::Debug {
    let mut headers = answer.headers().clone();
    headers.remove("date");
    let url = answer.url().clone();
    let address = answer.remote_addr().expect("it came from somewhere");
    let (length, version) = (answer.content_length(), answer.version());
    let status = answer.status();
    (url, address, length, version, status, headers, answer.bytes().await.unwrap())
}

#[test]
fn an_answer_is_what_it_would_be_without_manners() {
    run(async {
        let server = Server::start(|_, seen| match seen.path.as_str() {
            "/moved" => redirect(302, "/target?by=redirect"),
            "/empty" => status(204),
            "/missing" => status(404),
            "/chunked" => chunked(),
            _ => text("here you are"),
        })
        .await;
        let (polite, plain) = (polite(quick().build()), plain());
        for path in ["/", "/moved", "/empty", "/missing", "/chunked"] {
            for method in [Method::GET, Method::HEAD, Method::POST] {
                let bare = plain.request(method.clone(), server.at(path)).send().await.unwrap();
                let answer = polite.request(method, server.at(path)).send().await.unwrap();
                let report = answer.extensions().get::<Report>().expect("there is a report");
                assert_eq!((report.attempts(), report.gave_up()), (1, None), "{path}: {report}");
                assert_eq!(known(answer).await, known(bare).await, "{path}");
            }
        }
    });
}

#[test]
fn an_answer_that_came_at_the_second_attempt_keeps_what_reqwest_knows() {
    run(async {
        let server = Server::start(|number, seen| match (number, seen.path.as_str()) {
            (_, "/moved") => redirect(307, "/target?by=redirect"),
            (1, _) => status(503),
            _ => text("here you are"),
        })
        .await;
        let client = polite(quick().build());
        let answer = client.get(server.at("/moved")).send().await.unwrap();
        assert_eq!(answer.url().as_str(), server.at("/target?by=redirect"));
        assert_eq!(answer.remote_addr(), Some(server.address));
        assert_eq!(answer.content_length(), Some(12));
        let report = answer.extensions().get::<Report>().unwrap();
        assert_eq!((report.attempts(), report.gave_up()), (2, None), "{report}");
        assert_eq!(answer.text().await.unwrap(), "here you are");
        // It begins where it began before.
        assert_eq!(server.paths(), ["/moved", "/target", "/moved", "/target"]);
    });
}

#[test]
fn bodies_of_bytes_are_sent_again_whatever_their_length() {
    run(async {
        let server = Server::start(|number, _| status(if number == 0 { 503 } else { 200 })).await;
        // More than is kept of a body that is streamed.
        let body = Bytes::from(vec![b'x'; 300 * 1024]);
        let call = polite(quick().build()).put(server.at("/")).body(body.clone());
        let (status, report) = report(call).await;
        assert_eq!((status.as_u16(), report.attempts(), report.gave_up()), (200, 2, None));
        let bodies: Vec<_> = server.seen().into_iter().map(|one| one.body).collect();
        assert_eq!(bodies, [body.clone(), body]);
    });
}

#[test]
fn streams_are_sent_once() {
    run(async {
        let server = Server::start(|_, _| status(503)).await;
        let stream = ::reqwest::Body::wrap(Full::new(Bytes::from_static(b"a few bytes")));
        let call = polite(quick().build()).put(server.at("/")).body(stream);
        let (status, report) = report(call).await;
        assert_eq!(status, 503);
        assert_eq!((report.attempts(), report.gave_up()), (1, Some(GaveUp::Body)), "{report}");
        assert_eq!(server.seen().len(), 1);
        assert_eq!(server.seen()[0].body, "a few bytes");
    });
}

#[test]
fn a_post_is_made_again_with_a_key_and_not_without() {
    run(async {
        let server = Server::start(|_, _| status(429)).await;
        let client = polite(quick().attempts(2).build());
        let (_, bare) = report(client.post(server.at("/")).body("once")).await;
        assert_eq!((bare.attempts(), bare.gave_up()), (1, Some(GaveUp::Unsafe)), "{bare}");
        let key = client.post(server.at("/")).header("idempotency-key", "1").body("twice");
        let (_, keyed) = report(key).await;
        assert_eq!((keyed.attempts(), keyed.gave_up()), (2, Some(GaveUp::Attempts)), "{keyed}");
        let given = polite(quick().attempts(2).attach_idempotency_keys().build());
        let (_, given) = report(given.post(server.at("/")).body("twice")).await;
        assert_eq!((given.attempts(), given.gave_up()), (2, Some(GaveUp::Attempts)), "{given}");
    });
}

/// A call that cannot wait for long: whether it was sent.
async fn is_free(client: &ClientWithMiddleware, url: String) -> bool {
    let soon = Patience(Duration::from_millis(30));
    match client.get(url).with_extension(soon).send().await {
        Ok(answer) => answer.status() == 200,
        Err(error) => {
            let (reason, report) = not_sent(&error);
            assert!(matches!(reason, NotSent::TooLate { .. }), "{reason:?}");
            assert_eq!(report.attempts(), 0, "{report}");
            false
        }
    }
}

#[test]
fn a_call_is_on_its_way_until_its_answer_was_dropped() {
    run(async {
        let server = Server::start(|_, seen| match seen.path.as_str() {
            "/endless" => endless(),
            _ => text("here you are"),
        })
        .await;
        let client = polite(quick().pace(Pace::default().concurrent(1)).build());
        let mut answer = client.get(server.at("/endless")).send().await.unwrap();
        assert!(!is_free(&client, server.at("/")).await, "nothing was read");
        assert_eq!(answer.chunk().await.unwrap().unwrap(), "once upon a time");
        assert!(!is_free(&client, server.at("/")).await, "not all was read");
        drop(answer);
        assert!(is_free(&client, server.at("/")).await, "nobody will read it");
        assert_eq!(server.paths(), ["/endless", "/"]);
    });
}

#[test]
fn a_call_is_on_its_way_until_its_answer_was_read() {
    run(async {
        let server = Server::start(|_, seen| match seen.path.as_str() {
            "/chunked" => chunked(),
            "/empty" => status(204),
            _ => text("here you are"),
        })
        .await;
        let client = polite(quick().pace(Pace::default().concurrent(1)).build());
        for path in ["/", "/chunked"] {
            let mut answer = client.get(server.at(path)).send().await.unwrap();
            assert!(!is_free(&client, server.at("/")).await, "{path}: nothing was read");
            while answer.chunk().await.unwrap().is_some() {}
            assert!(is_free(&client, server.at("/")).await, "{path}: all was read");
        }
        // Of nothing there is nothing to be read.
        let _answer = client.get(server.at("/empty")).send().await.unwrap();
        assert!(is_free(&client, server.at("/")).await);
    });
}
