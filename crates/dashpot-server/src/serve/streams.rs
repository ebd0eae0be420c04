//! One connection of HTTP/2, with many streams. By h2 itself: with hyper around it, a server did a tenth less.

use std::future::{Future, poll_fn};
use std::mem;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream, SendStream};
use http::{Response, StatusCode};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::{Interval, interval, sleep, timeout};
use tracing::debug;

use crate::serve::connection::Worker;
use crate::serve::envoy::grpc::{Answer, GrpcCall, PATIENCE};
use crate::serve::metrics::Door;

/// How many questions a caller may ask at once; more wait on its side.
const STREAMS_MAX: u32 = 128;

/// How many questions may be called off before anybody saw them. After a pause of ours, that is everybody whose time is over.
const CALLED_OFF_MAX: usize = 1024;

/// How many bytes may be on their way that nobody has read yet: of one stream, and of all.
const STREAM_WINDOW: u32 = 80 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// How long a connection may be without a question before it is told to go. Callers come back by themselves.
const IDLE: Duration = Duration::from_secs(300);

/// How long it may take to go then, when all is answered.
const GOING: Duration = Duration::from_secs(5);

/// How many questions are read before they are answered.
const BATCH: usize = 64;

/// The longest head of a request, in bytes.
const HEAD_MAX: u32 = 16 * 1024;

/// Serves a connection until either side has enough.
pub(crate) async fn serve(
    worker: Arc<Worker>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: SocketAddr,
    mut stopping: watch::Receiver<bool>,
) {
    let mut builder = Builder::new();
    builder
        .max_concurrent_streams(STREAMS_MAX)
        .max_pending_accept_reset_streams(CALLED_OFF_MAX)
        .initial_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_MAX);
    let begun = tokio::select! {
        begun = timeout(PATIENCE, builder.handshake::<_, Bytes>(stream)) => begun,
        _ = stopping.wait_for(|stopping| *stopping) => return,
    };
    let mut connection = match begun {
        Ok(Ok(connection)) => connection,
        Ok(Err(error)) => return debug!(%peer, %error, "no HTTP/2"),
        Err(_) => return debug!(%peer, "no HTTP/2 in time"),
    };
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    let mut waiting = Vec::new();
    // Looks whether it has gone, once it was told to.
    let mut ending: Option<Interval> = None;
    let mut quiet = Quiet::new();
    // Whoever answers holds one.
    let open = Arc::new(());
    let serving = poll_fn(|context| {
        loop {
            match connection.poll_accept(context) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    waiting.push((GrpcCall::of(request), respond));
                    if waiting.len() < BATCH {
                        continue;
                    }
                }
                Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                Poll::Ready(None) => return Poll::Ready(Ok(())),
                Poll::Pending if waiting.is_empty() => {
                    let is_answered = Arc::strong_count(&open) == 1;
                    if let Some(look) = &mut ending {
                        // Who does not say that it heard may stay for ever.
                        while look.poll_tick(context).is_ready() {
                            if is_answered {
                                return Poll::Ready(Ok(()));
                            }
                        }
                        return Poll::Pending;
                    }
                    let is_idle = quiet.is_over(context) && is_answered;
                    if !is_idle && told.as_mut().poll(context).is_pending() {
                        return Poll::Pending;
                    }
                    let look = ending.insert(interval(GOING));
                    look.reset();
                    connection.graceful_shutdown();
                }
                Poll::Pending => {}
            }
            // By now all has been read that is there: mostly whole messages.
            quiet.interrupt();
            for (call, respond) in waiting.drain(..) {
                begin(&worker, &open, call, respond, context);
            }
        }
    });
    if let Err(error) = serving.await {
        debug!(%peer, %error, "the connection ended early");
    }
}

/// How long nobody has asked.
struct Quiet {
    look: Interval,
    is_interrupted: bool,
}

impl Quiet {
    fn new() -> Self {
        let mut look = interval(IDLE);
        look.reset();
        Self { look, is_interrupted: false }
    }

    /// Somebody asks.
    const fn interrupt(&mut self) {
        self.is_interrupted = true;
    }

    /// Whether it was too long: once, or twice at most, the time there is.
    fn is_over(&mut self, context: &mut Context<'_>) -> bool {
        let mut is_over = false;
        // Until there is none: so it is woken for the next.
        while self.look.poll_tick(context).is_ready() {
            is_over = !mem::take(&mut self.is_interrupted);
        }
        is_over
    }
}

/// Answers a request, now if that can be; a task for each would take longer than the answer.
fn begin(
    worker: &Arc<Worker>,
    open: &Arc<()>,
    mut call: GrpcCall,
    respond: SendResponse<Bytes>,
    context: &mut Context<'_>,
) {
    let began = Instant::now();
    match call.answer_now(&worker.service, context) {
        Some((counted, response)) => {
            worker.count(counted, began);
            // Who has left does not hear it.
            let _ = send(response, respond);
        }
        None => {
            let (worker, open) = (worker.clone(), open.clone());
            tokio::spawn(async move {
                finish(&worker, call, respond, began).await;
                drop(open);
            });
        }
    }
}

/// Answers a request to the end, whether or not somebody waits for it.
async fn finish(worker: &Worker, call: GrpcCall, respond: SendResponse<Bytes>, began: Instant) {
    let is_watch = call.is_watch();
    let (counted, response) = call.answer(&worker.service).await;
    worker.count(counted, began);
    if let Ok(Some((body, stream))) = send(response, respond) {
        let _ = pump(body, stream, is_watch).await;
    }
}

impl Worker {
    fn count(&self, status: Option<StatusCode>, began: Instant) {
        if let (Some(status), Some(answered)) = (status, self.service.answered.get(self.number)) {
            answered.count(Door::Envoy, status, began.elapsed());
        }
    }
}

/// Sends an answer, but for what a library says, which takes its time.
fn send(
    response: Response<Answer>,
    mut respond: SendResponse<Bytes>,
) -> Result<Option<(tonic::body::Body, SendStream<Bytes>)>, h2::Error> {
    let (head, body) = response.into_parts();
    let head = Response::from_parts(head, ());
    match body {
        Answer::Whole { message, trailers } => {
            // Short, and there are not many at once: it need not be waited for until there is room.
            let mut stream = respond.send_response(head, false)?;
            stream.send_data(message, false)?;
            stream.send_trailers(trailers)?;
            Ok(None)
        }
        Answer::Empty => respond.send_response(head, true).map(|_| None),
        Answer::Other(body) => {
            let stream = respond.send_response(head, body.is_end_stream())?;
            Ok((!body.is_end_stream()).then_some((body, stream)))
        }
    }
}

/// Sends what a library says, as fast as it is read. It says something now and then, unless it tells of changes.
async fn pump(
    mut body: tonic::body::Body,
    mut stream: SendStream<Bytes>,
    is_watch: bool,
) -> Result<(), h2::Error> {
    loop {
        let next = tokio::select! {
            next = body.frame() => next,
            gone = poll_fn(|context| stream.poll_reset(context)) => return gone.map(drop),
            () = sleep(PATIENCE), if !is_watch => {
                stream.send_reset(Reason::CANCEL);
                return Ok(());
            }
        };
        let Some(Ok(frame)) = next else { return stream.send_data(Bytes::new(), true) };
        match frame.into_data() {
            Ok(mut data) => {
                while !data.is_empty() {
                    stream.reserve_capacity(data.len());
                    let room = poll_fn(|context| stream.poll_capacity(context));
                    match timeout(PATIENCE, room).await {
                        Ok(Some(room)) => {
                            let room = room?.min(data.len());
                            stream.send_data(data.split_to(room), false)?;
                        }
                        Ok(None) => return Ok(()),
                        Err(_) => {
                            stream.send_reset(Reason::CANCEL);
                            return Ok(());
                        }
                    }
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    return stream.send_trailers(trailers);
                }
            }
        }
    }
}

/// What a caller sends, as libraries read it.
pub(crate) struct Coming(pub(crate) RecvStream);

impl Body for Coming {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        match self.0.poll_data(context) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(data)) => Poll::Ready(Some(data.and_then(|data| {
                self.0.flow_control().release_capacity(data.len())?;
                Ok(Frame::data(data))
            }))),
            Poll::Ready(None) => {
                let trailers = self.0.poll_trailers(context);
                trailers.map(|read| Some(read.transpose()?.map(Frame::trailers)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Woken by nothing but time.
    async fn over(quiet: &mut Quiet) {
        poll_fn(|context| if quiet.is_over(context) { Poll::Ready(()) } else { Poll::Pending })
            .await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_may_be_quiet_for_a_while_again() {
        let began = tokio::time::Instant::now();
        let mut quiet = Quiet::new();
        quiet.interrupt();
        over(&mut quiet).await;
        assert_eq!(began.elapsed(), IDLE * 2);
        over(&mut quiet).await;
        assert_eq!(began.elapsed(), IDLE * 3);
        assert!(timeout(IDLE / 2, over(&mut quiet)).await.is_err());
        quiet.interrupt();
        over(&mut quiet).await;
        assert_eq!(began.elapsed(), IDLE * 5);
    }
}
