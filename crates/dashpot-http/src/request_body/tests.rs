use std::collections::VecDeque;
use std::future::Future;

use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt, Empty, Full};
use proptest::prelude::*;
use tokio::time::{Instant, Sleep, sleep};

use super::*;

const LONG: Duration = Duration::from_secs(3600);

#[derive(Clone, Debug)]
enum Event {
    Data(Vec<u8>),
    Trailers(u16),
    Error(u8),
}

/// How much a body says about itself.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Knows {
    Nothing,
    AtLeast,
    AtMost,
    Length,
}

/// A body that does as it is told: each event comes after a wait, and the end after a last one.
#[derive(Debug)]
struct Script {
    events: VecDeque<(u64, Event)>,
    last_wait: u64,
    knows: Knows,
    knows_end: bool,
    sleep: Option<Pin<Box<Sleep>>>,
    polls: usize,
}

impl Script {
    fn remaining(&self) -> u64 {
        let length = |(_, event): &(u64, Event)| match event {
            Event::Data(data) => data.len() as u64,
            _ => 0,
        };
        self.events.iter().map(length).sum()
    }
}

fn trailers(value: u16) -> HeaderMap {
    [(http::header::ETAG, HeaderValue::from(value))].into_iter().collect()
}

impl Body for Script {
    type Data = Bytes;
    type Error = u8;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
        self.polls += 1;
        let wait = self.events.front().map_or(self.last_wait, |(wait, _)| *wait);
        if wait > 0 {
            let nap =
                self.sleep.get_or_insert_with(|| Box::pin(sleep(Duration::from_millis(wait))));
            ready!(nap.as_mut().poll(cx));
            self.sleep = None;
        }
        let Some((_, event)) = self.events.pop_front() else {
            self.last_wait = 0;
            return Poll::Ready(None);
        };
        Poll::Ready(Some(match event {
            Event::Data(data) => Ok(Frame::data(data.into())),
            Event::Trailers(value) => Ok(Frame::trailers(trailers(value))),
            Event::Error(error) => Err(error),
        }))
    }

    fn is_end_stream(&self) -> bool {
        self.knows_end && self.events.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        match self.knows {
            Knows::Nothing => {}
            Knows::AtLeast => hint.set_lower(self.remaining() / 2),
            Knows::AtMost => hint.set_upper(self.remaining()),
            Knows::Length => hint.set_exact(self.remaining()),
        }
        hint
    }
}

/// What a body gave: its data, its trailers, its error.
type Given = (Vec<u8>, Option<HeaderMap>, Option<u8>);

/// Reads to the end; hints have to hold at each step.
async fn read(mut body: RequestBody<Script>) -> Given {
    let mut given: Given = Default::default();
    let mut hints = Vec::new();
    loop {
        hints.push((given.0.len() as u64, body.size_hint()));
        let at_end = body.is_end_stream();
        let frame = body.frame().await;
        assert!(!at_end || frame.is_none(), "more came after the end");
        match frame.map(|result| result.map(Frame::into_data)) {
            Some(Ok(Ok(data))) => given.0.extend_from_slice(&data),
            Some(Ok(Err(frame))) => given.1 = frame.into_trailers().ok(),
            Some(Err(error)) => {
                given.2 = Some(error);
                break;
            }
            None => break,
        }
    }
    for (before, hint) in hints {
        let rest = given.0.len() as u64 - before;
        assert!(
            hint.lower() <= rest && rest <= hint.upper().unwrap_or(u64::MAX),
            "{hint:?} {rest}"
        );
    }
    given
}

/// What the script gives, and when: its data, its trailers, its error, and how long the whole takes.
fn expected(script: &Script) -> (Given, u64) {
    let mut given: Given = Default::default();
    let mut takes = 0;
    for (wait, event) in &script.events {
        takes += wait;
        match event {
            Event::Data(data) => given.0.extend_from_slice(data),
            Event::Trailers(value) => given.1 = Some(trailers(*value)),
            Event::Error(error) => given.2 = Some(*error),
        }
    }
    // Who sees trailers, or is told so, need not wait for the end.
    if !script.knows_end && given.1.is_none() {
        takes += script.last_wait;
    }
    (given, takes)
}

/// Runs on a clock that jumps ahead whenever everybody waits.
fn run<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(future)
}

fn waits() -> impl Strategy<Value = u64> {
    prop_oneof![3 => Just(0), 1 => (1_u64..20).prop_map(|wait| wait * 2)]
}

fn scripts() -> impl Strategy<Value = Script> {
    let data = proptest::collection::vec(any::<u8>(), 0..20).prop_map(Event::Data);
    let last = prop_oneof![
        Just(None),
        any::<u16>().prop_map(|value| Some(Event::Trailers(value))),
        any::<u8>().prop_map(|error| Some(Event::Error(error))),
    ];
    let knows = [Knows::Nothing, Knows::AtLeast, Knows::AtMost, Knows::Length];
    let knows = proptest::sample::select(knows.to_vec());
    let datas = proptest::collection::vec((waits(), data), 0..8);
    (datas, (waits(), last), waits(), knows, any::<bool>()).prop_map(
        |(datas, (wait, last), last_wait, knows, knows_end)| Script {
            events: datas.into_iter().chain(last.map(|last| (wait, last))).collect(),
            last_wait,
            knows,
            knows_end,
            sleep: None,
            polls: 0,
        },
    )
}

proptest! {
    #[test]
    fn what_was_peeked_is_read_again(script in scripts(), max in 0_usize..120, patience in 0_u64..80) {
        let (given, takes) = expected(&script);
        let says_more = script.size_hint().lower() > max as u64;
        // Waits are even, so that no wait ends just when patience does.
        let patience = patience * 2 + 1;
        let is_whole = given.2.is_none() && given.0.len() <= max && takes < patience;
        run(async {
            let mut body = RequestBody::new(script);
            let peeked = body.peek(max, Duration::from_millis(patience)).await;
            assert_eq!(peeked.as_deref(), is_whole.then_some(&*given.0));
            assert!(!says_more || body.inner.polls == 0, "read in spite of the hint");
            assert_eq!(read(body).await, given);
        });
    }
}

fn pieces(pieces: &[&str]) -> Script {
    let events = pieces.iter().map(|piece| (0, Event::Data(piece.as_bytes().to_vec()))).collect();
    let knows = Knows::Nothing;
    Script { events, last_wait: 0, knows, knows_end: false, sleep: None, polls: 0 }
}

#[tokio::test]
async fn one_frame_is_handed_out_as_it_is() {
    let whole = Bytes::from(vec![7; 100]);
    let mut body = RequestBody::new(Full::new(whole.clone()));
    let peeked = body.peek(100, LONG).await.unwrap();
    assert_eq!(peeked.as_ptr(), whole.as_ptr());
    assert_eq!(body.collect().await.unwrap().to_bytes().as_ptr(), whole.as_ptr());
}

#[tokio::test]
async fn an_empty_body_is_whole() {
    let mut body = RequestBody::new(Empty::<Bytes>::new());
    assert_eq!(body.peek(0, LONG).await, Some(Bytes::new()));
    assert!(body.is_end_stream());
}

#[tokio::test]
async fn a_body_in_a_thousand_pieces_is_kept_in_one() {
    let mut body = RequestBody::new(pieces(&["x"; 1000]));
    assert_eq!(body.peek(1000, LONG).await.unwrap().len(), 1000);
    assert_eq!(body.peek(1000, LONG).await.unwrap().len(), 1000);
    assert_eq!(body.peek(999, LONG).await, None);
    let first = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(first.len(), 1000);
    assert!(body.is_end_stream());
}

#[tokio::test(start_paused = true)]
async fn patience_ends_and_nothing_is_lost() {
    let mut script = pieces(&["a", "b", "c"]);
    script.events[1].0 = 500;
    let mut body = RequestBody::new(script);
    let start = Instant::now();
    assert_eq!(body.peek(10, Duration::from_millis(100)).await, None);
    assert_eq!(start.elapsed().as_millis(), 100);
    assert_eq!(read(body).await.0, b"abc");
}

#[tokio::test(start_paused = true)]
async fn a_peek_that_is_dropped_loses_nothing() {
    let mut script = pieces(&["a", "b", "c"]);
    script.events[2].0 = 500;
    let mut body = RequestBody::new(script);
    tokio::select! {
        _ = body.peek(10, LONG) => panic!("it was there too soon"),
        () = sleep(Duration::from_millis(100)) => {}
    }
    assert_eq!(read(body).await.0, b"abc");
}

/// Always something, never anything.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = u8;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, u8>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::new()))))
    }
}

#[tokio::test]
async fn empty_frames_without_end_wear_patience_out() {
    let mut body = RequestBody::new(Endless);
    assert_eq!(body.peek(10, Duration::from_millis(5)).await, None);
}

#[tokio::test]
async fn axum_takes_it_for_a_body() {
    let mut body = RequestBody::new(axum::body::Body::from("hello"));
    assert_eq!(body.peek(5, LONG).await.as_deref(), Some(&b"hello"[..]));
    let body = axum::body::Body::new(body);
    assert_eq!(body.size_hint().exact(), Some(5));
    assert_eq!(body.collect().await.unwrap().to_bytes(), "hello");
}
