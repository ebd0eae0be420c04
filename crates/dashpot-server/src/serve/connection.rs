//! One connection.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tracing::debug;

use crate::proxy::{self, Pool};
use crate::serve::lively::Lively;
use crate::serve::service::Shared;
use crate::serve::{api, resp, streams};

/// How long a caller may take to say what it wants, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long a body may take.
const BODY_PATIENCE: Duration = Duration::from_secs(10);

/// How often a connection is looked at.
const LOOK: Duration = Duration::from_secs(5);

/// How long those are listened to who were answered and go on sending.
const LINGER: Duration = Duration::from_secs(1);

/// How a connection that is quiet is looked at.
const KEEPALIVE: TcpKeepalive =
    TcpKeepalive::new().with_time(PATIENCE).with_interval(Duration::from_secs(10)).with_retries(3);

/// The longest head of a request, in bytes.
pub(crate) const HEAD_MAX: usize = 64 * 1024;

/// One of the threads that serve, as its connections know it: they share what it has, and no one else does.
pub(crate) struct Worker {
    pub(crate) service: Shared,
    pub(crate) number: usize,
    pub(crate) lively: Lively,
    /// Connections to the backend.
    pub(crate) pool: Arc<Pool>,
}

/// What callers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// HTTP/1.
    Http,
    /// gRPC, over HTTP/2.
    Grpc,
    /// Redis's.
    Resp,
    /// HTTP/1 and HTTP/2, for the backend.
    Proxy,
}

/// What a connection is doing, and since when. Timers for each request would take longer than the request.
#[derive(Debug)]
pub(crate) struct Progress {
    phase: AtomicU8,
    /// Milliseconds since the connection began.
    since: AtomicU64,
    began: Instant,
    /// Whether a body was answered without being read.
    left_unread: AtomicBool,
}

const WAITING: u8 = 0;
const RECEIVING: u8 = 1;
const DECIDING: u8 = 2;

impl Progress {
    fn new() -> Self {
        Self {
            phase: AtomicU8::new(WAITING),
            since: AtomicU64::new(0),
            began: Instant::now(),
            left_unread: AtomicBool::new(false),
        }
    }

    fn enter(&self, phase: u8, now: Instant) {
        let since = now.saturating_duration_since(self.began).as_millis();
        self.since.store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.phase.store(phase, Ordering::Relaxed);
    }

    /// The body is waited for.
    pub(crate) fn receiving(&self) {
        self.enter(RECEIVING, Instant::now());
    }

    /// All of the request is there.
    pub(crate) fn deciding(&self) {
        self.phase.store(DECIDING, Ordering::Relaxed);
    }

    /// The caller has taken what there was.
    pub(crate) fn waiting(&self) {
        self.enter(WAITING, Instant::now());
    }

    /// Some of the request is not read.
    pub(crate) fn leave_unread(&self) {
        self.left_unread.store(true, Ordering::Relaxed);
    }

    /// Whether it has been waited for too long.
    fn is_stuck(&self) -> bool {
        let patience = match self.phase.load(Ordering::Relaxed) {
            WAITING => PATIENCE,
            RECEIVING => BODY_PATIENCE,
            _ => return false,
        };
        let since = Duration::from_millis(self.since.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(since) > patience
    }
}

/// Serves a connection until either side has enough.
pub(crate) async fn serve(
    worker: Arc<Worker>,
    stream: TcpStream,
    caller: (SocketAddr, Protocol),
    tls: Option<TlsAcceptor>,
    mut stopping: watch::Receiver<bool>,
) {
    let (peer, protocol) = caller;
    // An answer is one packet; to wait for more would only delay it.
    let _ = stream.set_nodelay(true);
    if protocol != Protocol::Http {
        // Who asks for long stays for long. Asking by HTTP/2 whether it is still there would be noted with every frame.
        let _ = SockRef::from(&stream).set_tcp_keepalive(&KEEPALIVE);
    }
    if protocol == Protocol::Proxy {
        return Box::pin(proxy::serve(worker, stream, (peer, tls), stopping)).await;
    }
    let Some(tls) = tls else { return converse(worker, stream, caller, stopping).await };
    // In boxes, since a connection without TLS has no need of their room.
    if let Some(stream) = Box::pin(secure(tls, stream, peer, &mut stopping)).await {
        Box::pin(converse(worker, stream, caller, stopping)).await;
    }
}

/// Agrees on TLS, unless that fails or takes too long.
pub(crate) async fn secure<S: AsyncRead + AsyncWrite + Unpin>(
    tls: TlsAcceptor,
    stream: S,
    peer: SocketAddr,
    stopping: &mut watch::Receiver<bool>,
) -> Option<TlsStream<S>> {
    let greeted = tokio::select! {
        greeted = timeout(BODY_PATIENCE, tls.accept(stream)) => greeted,
        _ = stopping.wait_for(|stopping| *stopping) => return None,
    };
    match greeted {
        Ok(Ok(stream)) => return Some(stream),
        Ok(Err(error)) => debug!(%peer, %error, "no TLS"),
        Err(_) => debug!(%peer, "no TLS in time"),
    }
    None
}

async fn converse(
    worker: Arc<Worker>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    (peer, protocol): (SocketAddr, Protocol),
    stopping: watch::Receiver<bool>,
) {
    // In boxes, since others have no need of their room.
    match protocol {
        Protocol::Http | Protocol::Proxy => {}
        Protocol::Grpc => return Box::pin(streams::serve(worker, stream, peer, stopping)).await,
        Protocol::Resp => return Box::pin(resp::serve(worker, stream, peer, stopping)).await,
    }
    let progress = Arc::new(Progress::new());
    let is_unread = exchange(worker, &mut stream, peer, stopping, &progress).await;
    // To close while something is unread takes back what was answered. So it is read, within reason.
    if is_unread || progress.left_unread.load(Ordering::Relaxed) {
        linger(&mut stream).await;
    }
}

/// Answers requests. Tells whether something may be left to be read.
async fn exchange(
    worker: Arc<Worker>,
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin + Send),
    peer: SocketAddr,
    mut stopping: watch::Receiver<bool>,
    progress: &Arc<Progress>,
) -> bool {
    let service = service_fn(|request: Request<Incoming>| {
        let (worker, progress) = (worker.clone(), progress.clone());
        async move {
            let began = Instant::now();
            progress.enter(DECIDING, began);
            let (door, response) = api::answer(&worker.service, peer, request, &progress).await;
            let ended = Instant::now();
            progress.enter(WAITING, ended);
            if let Some(answered) = worker.service.answered.get(worker.number) {
                answered.count(door, response.status(), ended.saturating_duration_since(began));
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX).header_read_timeout(None);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_ending = false;
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = &ended {
                    debug!(%peer, %error, "the connection ended early");
                }
                return ended.is_err_and(|error| error.is_parse());
            }
            _ = look.tick() => {
                if progress.is_stuck() {
                    debug!(%peer, "the connection took too long");
                    return false;
                }
            }
            _ = told.as_mut(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// Reads what the caller still sends, and forgets it.
pub(crate) async fn linger(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let _ = timeout(LINGER, read_away(stream)).await;
}

async fn read_away(stream: &mut (impl AsyncRead + AsyncWrite + Unpin)) {
    let mut scratch = vec![0; 16 * 1024];
    let mut most: usize = 4 * 1024 * 1024;
    let _ = stream.shutdown().await;
    while let Ok(count @ 1..) = stream.read(&mut scratch).await {
        most = most.saturating_sub(count);
        if most == 0 {
            return;
        }
    }
}
