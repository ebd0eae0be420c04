//! Whoever goes, and when: a place is free again, once.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use dashpot_http::{InFlight, RateLimitLayer};
use http::{Request, Response};
use http_body_util::BodyExt;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::{Answer, Scene, get, hold_as, settle};

const ONE: &str =
    "[[rule]]\nname = 'worker'\ncapacity = { limit = 1, places = 3, wait = '1min' }\n";

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[tokio::test]
async fn a_caller_who_hangs_up_while_it_is_served() {
    let scene = Scene::new(ONE);
    for _ in 0..3 {
        let caller = scene.hold("/").await;
        assert_eq!(scene.inside(), (1, 0));
        caller.abort();
        settle().await;
        assert_eq!(scene.inside(), (0, 0));
    }
    assert_eq!(scene.get("/").await.status, 200);
}

#[tokio::test]
async fn a_caller_who_hangs_up_while_it_waits() {
    let scene = Scene::new(ONE);
    let first = scene.hold("/").await;
    let (gone, stays) = (scene.hold("/").await, scene.begin(hold_as("/", "stays")).await);
    assert_eq!(scene.inside(), (1, 2));
    gone.abort();
    settle().await;
    assert_eq!(scene.inside(), (1, 1));
    scene.go(1).await;
    assert_eq!(Answer::of(first).await.status, 200);
    assert_eq!(scene.names().last().map(String::as_str), Some("stays"));
    scene.go(1).await;
    assert_eq!(Answer::of(stays).await.status, 200);
    assert_eq!((scene.inside(), scene.called()), ((0, 0), 2));
}

/// It has just got its turn, and does not know yet: the next one gets it.
#[tokio::test]
async fn a_caller_who_hangs_up_as_its_turn_comes() {
    let scene = Scene::new(ONE);
    let first = scene.hold("/").await;
    let (unlucky, next) = (scene.hold("/").await, scene.begin(hold_as("/", "next")).await);
    // Nobody runs between these two.
    first.abort();
    unlucky.abort();
    settle().await;
    assert_eq!(scene.inside(), (1, 0));
    scene.go(1).await;
    assert_eq!(Answer::of(next).await.status, 200);
    assert_eq!((scene.inside(), scene.called()), ((0, 0), 2));
}

/// At every point at which a future can be dropped.
#[tokio::test]
async fn a_future_that_is_dropped_at_any_point() {
    let scene = Scene::new(ONE);
    // Before it was looked at.
    drop(scene.service.clone().ready_oneshot().await.unwrap().call(get("/", "")));
    assert_eq!(scene.inside(), (0, 0));
    // While it is served.
    let mut held = Box::pin(scene.service.clone().oneshot(get("/", "hold")));
    assert!(poll(held.as_mut()).is_pending());
    assert_eq!(scene.inside(), (1, 0));
    // While it waits.
    let mut waits = Box::pin(scene.service.clone().oneshot(get("/", "")));
    assert!(poll(waits.as_mut()).is_pending());
    assert_eq!(scene.inside(), (1, 1));
    drop(waits);
    assert_eq!(scene.inside(), (1, 0));
    // When it was called in, and was not looked at since.
    let mut waits = Box::pin(scene.service.clone().oneshot(get("/", "")));
    assert!(poll(waits.as_mut()).is_pending());
    drop(held);
    drop(waits);
    assert_eq!(scene.inside(), (0, 0));
    // When it was answered.
    let mut answered = Box::pin(scene.service.clone().oneshot(get("/", "")));
    let Poll::Ready(response) = poll(answered.as_mut()) else { panic!("it is not held") };
    drop(answered);
    assert_eq!(scene.inside().0, 1, "the body was not sent yet");
    drop(response);
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn a_place_is_held_until_the_body_was_sent() {
    let scene = Scene::new(ONE);
    let response = scene.open(get("/", "stream")).await;
    let feeder = scene.work.feeders.lock().unwrap().pop().unwrap();
    let mut body = response.into_body();
    for piece in ["one", "two"] {
        feeder.send(Bytes::from(piece)).unwrap();
        assert!(body.frame().await.is_some());
        assert_eq!(scene.inside(), (1, 0));
    }
    let waits = scene.begin(get("/", "")).await;
    assert_eq!(scene.inside(), (1, 1));
    drop(feeder);
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(Answer::of(waits).await.status, 200);
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn a_caller_who_hangs_up_within_the_answer() {
    let scene = Scene::new(ONE);
    let response = scene.open(get("/", "stream")).await;
    let feeder = scene.work.feeders.lock().unwrap().pop().unwrap();
    let mut body = response.into_body();
    feeder.send(Bytes::from("some")).unwrap();
    assert!(body.frame().await.is_some());
    drop(body);
    settle().await;
    assert_eq!(scene.inside(), (0, 0));
}

#[tokio::test]
async fn a_handler_that_panics_or_fails() {
    let scene = Scene::new(ONE);
    for words in ["panic", "fail"] {
        let (first, second) = (
            scene.begin(get("/", &format!("hold {words}"))).await,
            scene.begin(get("/", words)).await,
        );
        assert_eq!(scene.inside(), (1, 1));
        scene.go(1).await;
        for answering in [first, second] {
            match answering.await {
                Ok(answer) => assert_eq!((words, answer.err()), ("fail", Some("failed"))),
                Err(_) => assert_eq!(words, "panic"),
            }
        }
        assert_eq!(scene.inside(), (0, 0), "{words}");
    }
}

#[tokio::test]
async fn answers_without_a_body_leave_at_once() {
    let scene = Scene::new(ONE);
    for words in ["status=204", "status=304", "status=404", "status=500"] {
        for _ in 0..3 {
            scene.send(get("/", words)).await;
            assert_eq!(scene.inside(), (0, 0), "{words}");
        }
    }
}

/// A connection that goes on beyond its answer holds its place for as long.
#[tokio::test]
async fn a_connection_that_switches_protocols_stays_in() {
    let scene = Scene::new(ONE);
    let inner = service_fn(async |_: Request<axum::body::Body>| {
        let response = Response::builder().status(101);
        Ok::<_, &'static str>(response.body(axum::body::Body::empty()).unwrap())
    });
    let service = RateLimitLayer::from_rules(scene.live.clone(), scene.store.clone()).layer(inner);
    let mut response = service.oneshot(get("/", "")).await.unwrap();
    let held = response.extensions_mut().remove::<InFlight>().expect("something is held");
    let clone = held.clone();
    drop(response);
    drop(held);
    settle().await;
    assert_eq!(scene.inside(), (1, 0));
    drop(clone);
    settle().await;
    assert_eq!(scene.inside(), (0, 0));
}
