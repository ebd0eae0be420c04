//! A server that answers anything, late or soon, and a journal of all that happened.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dashpot::{Clock, Timestamp};
use dashpot_client::{BoxError, Replay};
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use proptest::prelude::*;
use tower_service::Service;

use crate::common::{WorldClock, millis};

/// How a wait is told.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    Nothing,
    Seconds(u64),
    Millis(u64),
    /// As a date, by a clock that is as right as ours.
    Date(u64),
    /// As a date, by a clock that is this many seconds off, and tells its own `Date`.
    OffDate(u64, i32),
    /// What is left of a hundred, and for how many seconds.
    Left(u64, u64),
}

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) status: u16,
    pub(crate) said: Said,
    /// How long it takes.
    pub(crate) takes: u64,
}

pub(crate) fn said() -> impl Strategy<Value = Said> {
    prop_oneof![
        2 => Just(Said::Nothing),
        2 => (0..20_u64).prop_map(Said::Seconds),
        1 => (0..5000_u64).prop_map(Said::Millis),
        1 => (0..20_u64).prop_map(Said::Date),
        1 => (0..12_u64, 0..30_u64).prop_map(|(left, reset)| Said::Left(left, reset)),
        1 => (0..20_u64, -1000..1000_i32).prop_map(|(wait, off)| Said::OffDate(wait, off)),
    ]
}

pub(crate) fn line() -> impl Strategy<Value = Line> {
    let status = prop_oneof![4 => Just(200), 2 => Just(429), 1 => Just(503), 1 => Just(500)];
    let takes = prop_oneof![1 => Just(0), 2 => 0..3000_u64];
    (status, said(), takes).prop_map(|(status, said, takes)| Line { status, said, takes })
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    /// It was sent: its host, its path.
    Sent { lane: String, call: usize },
    /// Its answer is there, and nobody may go before that.
    Answered { lane: String, call: usize, status: u16, hold: Option<Timestamp> },
    /// It is no longer on its way.
    Landed { lane: String, call: usize },
}

#[derive(Clone, Default)]
pub(crate) struct Journal(Arc<Mutex<Vec<(Timestamp, Event)>>>);

impl Journal {
    pub(crate) fn note(&self, at: Timestamp, event: Event) {
        self.0.lock().unwrap().push((at, event));
    }

    pub(crate) fn all(&self) -> Vec<(Timestamp, Event)> {
        self.0.lock().unwrap().clone()
    }

    /// Whether a call has been sent.
    pub(crate) fn has_sent(&self, number: usize) -> bool {
        let is_it = |event: &Event| matches!(event, Event::Sent { call, .. } if *call == number);
        self.0.lock().unwrap().iter().any(|(_, event)| is_it(event))
    }
}

/// Notes when a call is no longer on its way.
pub(crate) struct Landing {
    clock: WorldClock,
    journal: Journal,
    lane: String,
    call: usize,
}

impl Drop for Landing {
    fn drop(&mut self) {
        let landed = Event::Landed { lane: self.lane.clone(), call: self.call };
        self.journal.note(self.clock.now(), landed);
    }
}

/// The body of an answer.
pub(crate) struct Page(Full<Bytes>, #[expect(dead_code, reason = "it is dropped")] Landing);

impl Body for Page {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }
}

/// A server that answers the lines it was given, over and over.
#[derive(Clone)]
pub(crate) struct Wild {
    pub(crate) clock: WorldClock,
    pub(crate) journal: Journal,
    pub(crate) lines: Arc<Vec<Line>>,
    pub(crate) next: Arc<Mutex<usize>>,
}

impl Wild {
    pub(crate) fn new(clock: &WorldClock, lines: Vec<Line>) -> Self {
        let (clock, lines) = (clock.clone(), Arc::new(lines));
        Self { clock, journal: Journal::default(), lines, next: Arc::default() }
    }
}

fn date(at: Timestamp, off: i64) -> String {
    let seconds = (at.as_nanos() / 1_000_000_000).saturating_add_signed(off);
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + Duration::from_secs(seconds))
}

impl<B: Body + Send + 'static> Service<Request<Replay<B>>> for Wild {
    type Response = Response<Page>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Page>, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Replay<B>>) -> Self::Future {
        let Self { clock, journal, .. } = self.clone();
        let lane = request.uri().host().unwrap().to_owned();
        let call = request.uri().path()[1..].parse().unwrap();
        let line = {
            let mut next = self.next.lock().unwrap();
            *next += 1;
            self.lines[(*next - 1) % self.lines.len()].clone()
        };
        journal.note(clock.now(), Event::Sent { lane: lane.clone(), call });
        let landing =
            Landing { clock: clock.clone(), journal: journal.clone(), lane: lane.clone(), call };
        Box::pin(async move {
            clock.sleep(millis(line.takes)).await;
            let now = clock.now();
            let mut response = Response::builder().status(line.status);
            let is_well = line.status == 200;
            let wait = |wait: Duration| Some(now.after(wait));
            let hold = match &line.said {
                Said::Left(left, reset) => {
                    response = response
                        .header("ratelimit-limit", "100")
                        .header("ratelimit-remaining", left.to_string())
                        .header("ratelimit-reset", reset.to_string());
                    None
                }
                _ if is_well => None,
                Said::Nothing => None,
                Said::Seconds(seconds) => {
                    response = response.header("retry-after", seconds.to_string());
                    wait(Duration::from_secs(*seconds))
                }
                Said::Millis(time) => {
                    response = response.header("retry-after-ms", time.to_string());
                    wait(millis(*time))
                }
                Said::Date(seconds) => {
                    let then = now.after(Duration::from_secs(*seconds));
                    response = response.header("retry-after", date(then, 0));
                    Some(Timestamp::from_secs(then.as_nanos() / 1_000_000_000))
                }
                Said::OffDate(seconds, off) => {
                    let then = now.after(Duration::from_secs(*seconds));
                    response = response
                        .header("retry-after", date(then, i64::from(*off)))
                        .header("date", date(now, i64::from(*off)));
                    // It may be up to a second into the second that it tells.
                    let told = Duration::from_secs(*seconds);
                    wait(told)
                }
            };
            let status = line.status;
            journal.note(now, Event::Answered { lane, call, status, hold });
            Ok(response.body(Page(Full::default(), landing))?)
        })
    }
}
