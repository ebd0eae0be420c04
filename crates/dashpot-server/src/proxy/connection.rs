//! One caller's connection.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use dashpot_http::InFlight;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use parking_lot::Mutex;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;
use tracing::debug;

use crate::proxy::answer::answer;
use crate::proxy::bell::{Bell, within};
use crate::proxy::gateway::Gateway;
use crate::proxy::headers::Origin;
use crate::proxy::link::Link;
use crate::proxy::progress::Progress;
use crate::proxy::stream::{Heeded, OtherSide, Shared};
use crate::proxy::tunnel;
use crate::serve::connection::{HEAD_MAX, Worker, linger, secure};

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How many requests a caller may have under way at once; more wait on its side.
const STREAMS_MAX: u32 = 128;

/// How many requests are remembered before those are forgotten that have ended: each is some bytes.
const KNOWN_MOST: usize = 2 * STREAMS_MAX as usize;

/// How many bytes of an answer the system keeps that it could not send yet. More would hide whether the caller reads.
const UNSENT_MOST: u32 = 16 * 1024;

/// How many bytes may be on their way that nobody has read yet: of one stream, and of all.
const STREAM_WINDOW: u32 = 256 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// Who has connected, as all its requests know it.
pub(crate) struct Caller {
    pub(crate) worker: Arc<Worker>,
    gateway: Arc<Gateway>,
    pub(crate) origin: Origin,
    /// Whether it has several requests at once.
    pub(crate) is_multiplexed: bool,
    /// Whether a body was answered without being read.
    pub(crate) left_unread: AtomicBool,
    /// The backend's side, once both speak something else.
    switched: Mutex<Switched>,
}

#[derive(Default)]
struct Switched {
    link: Option<Box<Link>>,
    held: Option<InFlight>,
}

impl Caller {
    pub(crate) fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// From now on, bytes go through.
    pub(crate) fn switch(&self, link: Box<Link>) {
        self.switched.lock().link = Some(link);
    }

    /// Keeps what is held until that ends.
    pub(crate) fn hold(&self, held: InFlight) {
        self.switched.lock().held = Some(held);
    }
}

/// Serves a connection until either side has enough.
pub(crate) async fn serve(
    worker: Arc<Worker>,
    stream: TcpStream,
    (peer, tls): (SocketAddr, Option<TlsAcceptor>),
    mut stopping: watch::Receiver<bool>,
) {
    let Some(gateway) = worker.service.gateway.clone() else { return };
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let _ = SockRef::from(&stream).set_tcp_notsent_lowat(UNSENT_MOST);
    let (mut stream, other_side) = Shared::new(stream);
    let caller = |is_secure, is_multiplexed| {
        Arc::new(Caller {
            worker,
            gateway: gateway.clone(),
            origin: Origin::new(peer, is_secure),
            is_multiplexed,
            left_unread: AtomicBool::new(false),
            switched: Mutex::default(),
        })
    };
    let progress = Arc::new(Progress::new());
    if let Some(tls) = tls {
        // In boxes, since a connection without TLS has no need of their room.
        let secured = Box::pin(secure(tls, stream, peer, &mut stopping)).await;
        let Some(stream) = secured else { return };
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let stream = Heeded::new(Bytes::new(), stream, progress.clone());
        let caller = caller(true, is_http2);
        return Box::pin(speak(caller, stream, progress, other_side, stopping)).await;
    }
    let mut first = Vec::new();
    let patience = gateway.settings.patience;
    let reading = async {
        // The first byte is waited for as for any other request, the others as for the rest of its head.
        let idle = within(patience.idle, read_some(&mut stream, &mut first)).await;
        matches!(idle, Some(true))
            && within(patience.client, read_preface(&mut stream, &mut first)).await.is_some()
    };
    let is_there = tokio::select! {
        is_there = reading => is_there,
        _ = stopping.wait_for(|stopping| *stopping) => false,
    };
    if is_there {
        progress.has_read();
        let is_http2 = first.starts_with(PREFACE);
        let stream = Heeded::new(first.into(), stream, progress.clone());
        speak(caller(false, is_http2), stream, progress, other_side, stopping).await;
    }
}

async fn speak<S>(
    caller: Arc<Caller>,
    stream: Heeded<S, Arc<Progress>>,
    progress: Arc<Progress>,
    other_side: OtherSide,
    stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    match caller.is_multiplexed {
        true => Box::pin(multiplexed(caller, stream, stopping)).await,
        false => one_by_one(caller, stream, progress, other_side, stopping).await,
    }
}

/// Reads what there is. Tells whether that was something.
async fn read_some(stream: &mut (impl AsyncRead + Unpin), first: &mut Vec<u8>) -> bool {
    first.reserve(1024);
    matches!(stream.read_buf(first).await, Ok(1..))
}

/// Reads on for as long as it may be the preface and is not all of it.
async fn read_preface(stream: &mut (impl AsyncRead + Unpin), first: &mut Vec<u8>) {
    while first.len() < PREFACE.len() && PREFACE.starts_with(first) {
        if !read_some(stream, first).await {
            return;
        }
    }
}

/// Requests of HTTP/1, one after the other.
async fn one_by_one<S>(
    caller: Arc<Caller>,
    stream: Heeded<S, Arc<Progress>>,
    progress: Arc<Progress>,
    other_side: OtherSide,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let patience = caller.gateway.settings.patience;
    let service = service_fn(|request| answer(caller.clone(), progress.clone(), request));
    let mut builder = http1::Builder::new();
    builder.max_buf_size(HEAD_MAX).header_read_timeout(None);
    let mut connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut look = pin!(Bell::at(progress.look_at(patience)));
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    let mut hung_up = pin!(other_side.hung_up());
    let (mut is_ending, mut is_there) = (false, true);
    let is_unread = loop {
        tokio::select! {
            biased;
            ended = &mut connection => {
                if let Err(error) = &ended {
                    debug!(peer = %caller.origin.peer, %error, "the connection ended early");
                }
                break ended.is_err_and(|error| error.is_parse());
            }
            () = look.as_mut() => {
                let is_late = progress.too_late(patience).is_some_and(|late| late <= look.end());
                if is_late && !progress.gives_up() {
                    debug!(peer = %caller.origin.peer, "the connection took too long");
                    return;
                }
                look.as_mut().set(progress.look_at(patience));
            }
            _ = told.as_mut(), if !is_ending => {
                is_ending = true;
                Pin::new(&mut connection).graceful_shutdown();
            }
            () = hung_up.as_mut(), if is_there => {
                is_there = false;
                // Without a request, it is read to its end like any other.
                if !progress.is_between_requests() {
                    debug!(peer = %caller.origin.peer, "the caller hung up");
                    return;
                }
            }
        }
    };
    let parts = connection.into_parts();
    let mut stream = parts.io.into_inner();
    let Switched { link, held } = std::mem::take(&mut *caller.switched.lock());
    if let Some(link) = link {
        tunnel::run(&caller.gateway, stream.into_inner(), parts.read_buf, *link).await;
        drop(held);
    } else if is_unread || caller.left_unread.load(Ordering::Relaxed) {
        // To close while something is unread takes back what was answered. So it is read, within reason.
        linger(&mut stream).await;
    }
}

/// Requests of HTTP/2, many at once.
async fn multiplexed<S>(
    caller: Arc<Caller>,
    stream: Heeded<S, Arc<Progress>>,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let patience = caller.gateway.settings.patience;
    let requests = Arc::new(Mutex::new(Vec::<Weak<Progress>>::new()));
    let service = service_fn(|request| {
        let progress = Arc::new(Progress::new());
        let mut open = requests.lock();
        if open.len() >= KNOWN_MOST {
            open.retain(|progress| progress.strong_count() > 0);
        }
        open.push(Arc::downgrade(&progress));
        drop(open);
        answer(caller.clone(), progress, request)
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(u32::try_from(HEAD_MAX).unwrap_or(u32::MAX))
        .keep_alive_interval(Some(patience.idle))
        .keep_alive_timeout(patience.client);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    let pause = patience.idle.min(patience.client).max(Duration::from_millis(10));
    let mut look = pin!(Bell::after(pause));
    let (mut is_ending, mut quiet_since) = (false, Instant::now());
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(peer = %caller.origin.peer, %error, "the connection ended early");
                }
                return;
            }
            () = look.as_mut() => {
                let now = look.end();
                look.as_mut().set(Instant::now() + pause);
                let mut open = requests.lock();
                open.retain(|progress| progress.strong_count() > 0);
                let is_late = |progress: &Weak<Progress>| {
                    // Who waits for the backend looks after that itself.
                    let progress = progress.upgrade().filter(|progress| !progress.waits());
                    let late = progress.and_then(|progress| progress.too_late(patience));
                    late.is_some_and(|late| late <= now)
                };
                if open.iter().any(is_late) {
                    debug!(peer = %caller.origin.peer, "a request took too long");
                    return;
                }
                if !open.is_empty() {
                    quiet_since = now;
                } else if is_ending {
                    // It has been told to go, and had time to.
                    return;
                } else if now.duration_since(quiet_since) >= patience.idle {
                    is_ending = true;
                    quiet_since = now;
                    connection.as_mut().graceful_shutdown();
                }
            }
            _ = told.as_mut(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}
