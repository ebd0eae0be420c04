//! Servers in a world: what they answer is a function, and what arrives is noted.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use dashpot::{Clock, Timestamp};
use dashpot_client::{BoxError, Replay};
use http::{HeaderMap, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use tower_service::Service;

use super::WorldClock;

/// A call that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// How many came before.
    pub(crate) number: usize,
    pub(crate) at: Timestamp,
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

type Answer = Result<Response<Full<Bytes>>, BoxError>;
type Handler = Arc<Mutex<dyn FnMut(&Arrival) -> Answer + Send>>;

/// A server. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Server {
    clock: WorldClock,
    handler: Handler,
    /// How long a call takes to arrive, and its answer as long again.
    pub(crate) way: Duration,
    /// How long it takes to answer a call.
    work: Arc<dyn Fn(&Arrival) -> Duration + Send + Sync>,
    arrivals: Arc<Mutex<Vec<Arrival>>>,
}

impl Server {
    /// One that answers like this.
    pub(crate) fn new(
        clock: &WorldClock,
        handler: impl FnMut(&Arrival) -> Answer + Send + 'static,
    ) -> Self {
        Self {
            clock: clock.clone(),
            handler: Arc::new(Mutex::new(handler)),
            way: Duration::ZERO,
            work: Arc::new(|_| Duration::ZERO),
            arrivals: Arc::default(),
        }
    }

    /// The same, so far away.
    pub(crate) fn way(mut self, way: Duration) -> Self {
        self.way = way;
        self
    }

    /// The same, which takes its time.
    pub(crate) fn work(
        mut self,
        work: impl Fn(&Arrival) -> Duration + Send + Sync + 'static,
    ) -> Self {
        self.work = Arc::new(work);
        self
    }

    pub(crate) const fn clock(&self) -> &WorldClock {
        &self.clock
    }

    /// What has arrived, in order.
    pub(crate) fn arrivals(&self) -> Vec<Arrival> {
        self.arrivals.lock().unwrap().clone()
    }

    /// When it arrived, counted from a moment.
    pub(crate) fn times(&self, from: Timestamp) -> Vec<Duration> {
        self.arrivals().iter().map(|arrival| arrival.at.since(from)).collect()
    }
}

impl<B> Service<Request<Replay<B>>> for Server
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError> + std::fmt::Debug + Send,
{
    type Response = Response<Full<Bytes>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Replay<B>>) -> Self::Future {
        let Self { clock, handler, way, work, arrivals } = self.clone();
        Box::pin(async move {
            clock.sleep(way).await;
            let (head, body) = request.into_parts();
            let body = body.collect().await.map_err(|error| format!("{error:?}"))?.to_bytes();
            let arrival = {
                let mut arrivals = arrivals.lock().unwrap();
                let arrival = Arrival {
                    number: arrivals.len(),
                    at: clock.now(),
                    method: head.method,
                    uri: head.uri,
                    headers: head.headers,
                    body,
                };
                arrivals.push(arrival.clone());
                arrival
            };
            let answer = (handler.lock().unwrap())(&arrival);
            clock.sleep(work(&arrival) + way).await;
            answer
        })
    }
}

/// An answer with these headers.
pub(crate) fn answer(status: u16, headers: &[(&str, &str)]) -> Answer {
    let mut response = Response::builder().status(status);
    for (name, value) in headers {
        response = response.header(*name, *value);
    }
    Ok(response.body(Full::default())?)
}

/// A call without a body.
pub(crate) fn get(uri: &str) -> Request<Full<Bytes>> {
    Request::get(uri).body(Full::default()).unwrap()
}

/// A call with one.
pub(crate) fn post(uri: &str, body: &'static str) -> Request<Full<Bytes>> {
    Request::post(uri).body(Full::new(Bytes::from_static(body.as_bytes()))).unwrap()
}
