//! Bodies that are sent again, and those that are gone.

use std::collections::VecDeque;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use dashpot_client::{BoxError, CallError, GaveUp, Manners, Polite, Replay, ReplayError, Report};
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use tower::{ServiceExt, service_fn};

use super::HERE;
use crate::common::World;

/// A body in pieces, of which one may be that it breaks.
#[derive(Default)]
struct Pieces(VecDeque<Result<Frame<Bytes>, BoxError>>);

impl Pieces {
    fn of(texts: &[&'static str]) -> Self {
        Self(
            texts.iter().map(|text| Ok(Frame::data(Bytes::from_static(text.as_bytes())))).collect(),
        )
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        // Not at once, as streams are.
        match self.0.front() {
            Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty) => {
                self.0.pop_front();
                context.waker().wake_by_ref();
                Poll::Pending
            }
            _ => Poll::Ready(self.0.pop_front()),
        }
    }
}

type Kept = Replay<Pieces>;
type Outcome = Result<(u16, Report), Box<CallError>>;

/// Makes one call whose attempts are handled like this, with so many bytes kept.
fn send<F>(
    body: Pieces,
    replay: Option<usize>,
    handler: impl FnMut(Request<Kept>) -> F + Clone + Send + 'static,
) -> Outcome
where
    F: Future<Output = Result<Response<Empty<Bytes>>, BoxError>> + Send + 'static,
{
    let mut world = World::new();
    let mut builder = Manners::builder().clock(world.clock.clone()).seed(1);
    if let Some(bytes) = replay {
        builder = builder.replay(bytes);
    }
    let polite = Polite::new(service_fn(handler), builder.build());
    let request = Request::put(HERE).body(body).unwrap();
    let outcome = world.wait_for(polite.oneshot(request));
    let response = outcome.map_err(Box::new)?;
    let report = response.extensions().get::<Report>().unwrap().clone();
    Ok((response.status().as_u16(), report))
}

/// What arrived, and with which trailers.
type Arrived = Arc<Mutex<Vec<Result<(Bytes, Option<HeaderMap>), String>>>>;

/// Reads all, and fails the first time.
fn reads_all(body: Pieces, replay: Option<usize>) -> (Outcome, Arrived) {
    let arrived = Arrived::default();
    let noted = arrived.clone();
    let outcome = send(body, replay, move |request| {
        let noted = noted.clone();
        async move {
            let collected = request.into_body().collect().await;
            let result = match collected {
                Ok(collected) => {
                    let trailers = collected.trailers().cloned();
                    Ok((collected.to_bytes(), trailers))
                }
                Err(error) => Err(error.to_string()),
            };
            let is_broken = result.is_err();
            let mut noted = noted.lock().unwrap();
            noted.push(result);
            if is_broken {
                return Err("the body broke".into());
            }
            let status = if noted.len() == 1 { 503 } else { 200 };
            Ok(Response::builder().status(status).body(Empty::new())?)
        }
    });
    (outcome, arrived)
}

fn texts(arrived: &Arrived) -> Vec<String> {
    let text = |one: &Result<(Bytes, _), String>| match one {
        Ok((bytes, _)) => String::from_utf8(bytes.to_vec()).unwrap(),
        Err(error) => format!("broken: {error}"),
    };
    arrived.lock().unwrap().iter().map(text).collect()
}

#[test]
fn a_stream_is_kept_and_sent_again() {
    let (outcome, arrived) = reads_all(Pieces::of(&["to be ", "", "sent ", "again"]), None);
    assert_eq!(outcome.unwrap().0, 200);
    assert_eq!(texts(&arrived), ["to be sent again", "to be sent again"]);
}

#[test]
fn a_stream_of_just_as_many_bytes_as_are_kept_is_sent_again() {
    let (outcome, arrived) = reads_all(Pieces::of(&["12345", "678"]), Some(8));
    assert_eq!(outcome.unwrap().0, 200);
    assert_eq!(texts(&arrived), ["12345678"; 2]);
}

#[test]
fn one_more_byte_is_sent_and_the_call_not_made_again() {
    for pieces in [&["12345", "6789"][..], &["123456789"], &["12345678", "9"]] {
        let (outcome, arrived) = reads_all(Pieces::of(pieces), Some(8));
        let (status, report) = outcome.unwrap();
        assert_eq!((status, report.attempts()), (503, 1));
        assert_eq!(report.gave_up(), Some(GaveUp::Body));
        assert_eq!(texts(&arrived), ["123456789"]);
    }
}

#[test]
fn sixty_four_kib_are_kept_if_nothing_is_said() {
    let long: &'static str = Box::leak("x".repeat(64 * 1024).into_boxed_str());
    let (outcome, _) = reads_all(Pieces::of(&[long]), None);
    assert_eq!(outcome.unwrap().0, 200);
    let (outcome, arrived) = reads_all(Pieces::of(&[long, "y"]), None);
    assert_eq!(outcome.unwrap().1.gave_up(), Some(GaveUp::Body));
    assert_eq!(texts(&arrived)[0].len(), 64 * 1024 + 1);
}

#[test]
fn with_nothing_kept_only_empty_bodies_are_sent_again() {
    let (outcome, _) = reads_all(Pieces::of(&["x"]), Some(0));
    assert_eq!(outcome.unwrap().1.gave_up(), Some(GaveUp::Body));
    let (outcome, arrived) = reads_all(Pieces::default(), Some(0));
    assert_eq!(outcome.unwrap().0, 200);
    assert_eq!(texts(&arrived), ["", ""]);
}

#[test]
fn trailers_are_sent_again_as_well() {
    let mut body = Pieces::of(&["text"]);
    let trailers: HeaderMap =
        [("digest".parse().unwrap(), "abc".parse().unwrap())].into_iter().collect();
    body.0.push_back(Ok(Frame::trailers(trailers.clone())));
    let (outcome, arrived) = reads_all(body, None);
    assert_eq!(outcome.unwrap().0, 200);
    for one in arrived.lock().unwrap().iter() {
        assert_eq!(*one, Ok((Bytes::from("text"), Some(trailers.clone()))));
    }
    assert_eq!(arrived.lock().unwrap().len(), 2);
}

#[test]
fn a_body_that_breaks_is_never_taken_for_whole() {
    let mut body = Pieces::of(&["half of "]);
    body.0.push_back(Err("no more".into()));
    body.0.push_back(Ok(Frame::data("this is never read".into())));
    let (outcome, arrived) = reads_all(body, None);
    let error = outcome.unwrap_err();
    assert_eq!(error.report().attempts(), 1, "it cannot be sent again");
    assert_eq!(error.report().gave_up(), Some(GaveUp::Body));
    assert_eq!(texts(&arrived), ["broken: no more"]);
}

/// What is left of a body.
async fn rest(mut body: Kept) -> Result<String, ReplayError> {
    let mut text = String::new();
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        text.push_str(std::str::from_utf8(&frame?.into_data().unwrap()).unwrap());
    }
    Ok(text)
}

/// Reads so many pieces, keeps the rest and fails; then tries to read on in the next attempt, before its own.
fn reads_on(body: Pieces, pieces: usize, replay: usize) -> (Outcome, Vec<String>) {
    let kept: Arc<Mutex<Option<Kept>>> = Arc::default();
    let read: Arc<Mutex<Vec<String>>> = Arc::default();
    let noted = read.clone();
    let outcome = send(body, Some(replay), move |request| {
        let (kept, read) = (kept.clone(), noted.clone());
        async move {
            let mut body = request.into_body();
            let before = kept.lock().unwrap().take();
            if let Some(before) = before {
                let before = match rest(before).await {
                    Ok(text) => format!("went on with {text:?}"),
                    Err(ReplayError::Gone) => "gone".to_owned(),
                    Err(error) => format!("broken: {error}"),
                };
                let now = rest(body).await.unwrap();
                read.lock().unwrap().extend([before, now]);
                return Ok(Response::new(Empty::new()));
            }
            for _ in 0..pieces {
                poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await;
            }
            *kept.lock().unwrap() = Some(body);
            Ok(Response::builder().status(503).body(Empty::new())?)
        }
    });
    let read = read.lock().unwrap().clone();
    (outcome, read)
}

#[test]
fn the_body_of_an_attempt_that_is_over_ends_with_an_error() {
    for pieces in 0..3 {
        let (outcome, read) = reads_on(Pieces::of(&["one ", "two ", "three"]), pieces, 100);
        assert_eq!(outcome.unwrap().0, 200);
        assert_eq!(read, ["gone", "one two three"], "after {pieces}");
    }
}

#[test]
fn a_long_body_of_which_little_was_read_is_sent_again() {
    let (outcome, read) = reads_on(Pieces::of(&["one ", "two ", "three"]), 1, 4);
    assert_eq!(outcome.unwrap().0, 200);
    assert_eq!(read, ["gone", "one two three"]);
    let (outcome, read) = reads_on(Pieces::of(&["one ", "two ", "three"]), 2, 4);
    assert_eq!(outcome.unwrap().1.gave_up(), Some(GaveUp::Body));
    assert!(read.is_empty());
}
