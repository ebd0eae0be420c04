//! One connection of HTTP/2, with many streams.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::sleep;
use tracing::debug;

use crate::serve::connection::Worker;
use crate::serve::envoy::grpc::{self, Asked};
use crate::serve::metrics::Door;

/// How long a caller may take to begin.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many bytes it begins with.
const PREFACE: usize = 24;

/// How many questions a caller may ask at once; more wait on its side.
const STREAMS_MAX: u32 = 256;

/// How many bytes may be on their way that nobody has read yet: of one stream, and of all.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 1024 * 1024;

/// The longest head of a request, in bytes.
const HEAD_MAX: u32 = 16 * 1024;

/// Serves a connection until either side has enough.
pub(crate) async fn serve(
    worker: Arc<Worker>,
    stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: SocketAddr,
    mut stopping: watch::Receiver<bool>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        let (worker, asked) = (worker.clone(), Asked::of(request));
        async move {
            let began = Instant::now();
            let (counted, response) = grpc::answer(&worker.service, asked).await;
            if let (Some(status), Some(answered)) =
                (counted, worker.service.answered.get(worker.number))
            {
                answered.count(Door::Envoy, status, began.elapsed());
            }
            Ok::<_, Infallible>(response)
        }
    });
    let heard = AtomicUsize::new(0);
    let stream = Heard { stream, bytes: &heard };
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        // Nobody who speaks gRPC reads it.
        .auto_date_header(false)
        .max_concurrent_streams(STREAMS_MAX)
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .max_header_list_size(HEAD_MAX);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut look = pin!(sleep(PATIENCE));
    let (mut has_looked, mut is_ending) = (false, false);
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    loop {
        tokio::select! {
            biased;
            ended = connection.as_mut() => {
                if let Err(error) = ended {
                    debug!(%peer, %error, "the connection ended early");
                }
                return;
            }
            // Who has begun may be quiet as long as it is there, which TCP sees to.
            () = look.as_mut(), if !has_looked => {
                has_looked = true;
                if heard.load(Ordering::Relaxed) < PREFACE {
                    debug!(%peer, "the connection took too long to begin");
                    return;
                }
            }
            _ = told.as_mut(), if !is_ending => {
                is_ending = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

/// A stream of which is known how much was heard.
struct Heard<'a, S> {
    stream: S,
    bytes: &'a AtomicUsize,
}

impl<S: AsyncRead + Unpin> AsyncRead for Heard<'_, S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len().saturating_sub(before);
        self.bytes.fetch_add(count, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Heard<'_, S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}
