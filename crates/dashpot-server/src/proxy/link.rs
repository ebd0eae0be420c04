//! Connections to the backend.
//!
//! Nobody but who uses a connection drives it: no task of its own, nobody to wake. One that is not used lies here, and whether it was closed
//! meanwhile is seen when it is taken.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use bytes::Bytes;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::proxy::bell::within;
use crate::proxy::failure::{Counters, Failure};
use crate::proxy::gateway::Gateway;
use crate::proxy::stream::{Ear, Heeded};
use crate::proxy::upload::RequestBody;
use crate::serve::connection::HEAD_MAX;

/// How long a connection is kept that nobody uses. Some servers close them after little more.
const KEPT: Duration = Duration::from_secs(15);

/// How many are kept by each thread.
const KEPT_MOST: usize = 256;

/// How much may come before an answer has begun, in bytes: hints there may be without end.
const ANSWER_BEGINS_WITHIN: u64 = 512 * 1024;

/// What a connection to the backend is made of.
type Stream = TokioIo<Heeded<TcpStream, Arc<Ear>>>;

/// A connection to the backend.
pub(crate) struct Link {
    pub(crate) sender: SendRequest<RequestBody>,
    /// Nothing once it was closed.
    connection: Option<Connection<Stream, RequestBody>>,
    /// Whether there is nothing to drive any more.
    is_over: bool,
    /// What the backend has said since the last request.
    ear: Arc<Ear>,
    /// Since when nobody uses it.
    since: Instant,
    counters: Arc<Counters>,
}

impl Link {
    /// A new one.
    pub(crate) async fn open(gateway: &Gateway) -> Result<Box<Self>, Failure> {
        let (upstream, patience) = (&gateway.settings.upstream, gateway.settings.connect_timeout);
        let connecting = TcpStream::connect((upstream.host(), upstream.port()));
        let stream = match within(patience, connecting).await {
            Some(Ok(stream)) => stream,
            Some(Err(error)) => return Err(Failure::Connect(error)),
            None => return Err(Failure::ConnectTimeout),
        };
        let _ = stream.set_nodelay(true);
        gateway.counters.connections.fetch_add(1, Ordering::Relaxed);
        let mut builder = Builder::new();
        builder.max_buf_size(HEAD_MAX);
        let ear = Arc::<Ear>::default();
        let stream = Heeded::new(Bytes::new(), stream, ear.clone());
        let begun = builder.handshake(TokioIo::new(stream)).await;
        let (sender, connection) = begun.map_err(Failure::Broken)?;
        let since = Instant::now();
        let counters = gateway.counters.clone();
        let connection = Some(connection);
        let mut link = Box::new(Self { sender, connection, is_over: false, ear, since, counters });
        // It is ready for a request once it was driven.
        link.drive(&mut Context::from_waker(Waker::noop()));
        Ok(link)
    }

    /// Reads and writes what can be.
    pub(crate) fn drive(&mut self, context: &mut Context<'_>) {
        if let Some(connection) = &mut self.connection
            && !self.is_over
        {
            self.is_over = Pin::new(connection).poll(context).is_ready();
        }
    }

    /// Is about to be sent a request.
    pub(crate) fn begin(&self) {
        self.ear.prick(ANSWER_BEGINS_WITHIN);
    }

    /// The answer has begun: it may be as long as it likes.
    pub(crate) fn has_begun(&self) {
        self.ear.prick(u64::MAX);
    }

    /// Whether the backend has said something since then.
    pub(crate) fn has_heard(&self) -> bool {
        self.ear.has_heard()
    }

    /// Closes it: who still waits for something is told.
    pub(crate) fn close(&mut self) {
        self.connection = None;
    }

    /// Counts that an answer was broken off.
    pub(crate) fn note(&self, failure: &Failure) {
        self.counters.note(failure);
    }

    /// Whether there is nothing to drive any more.
    pub(crate) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Whether it can take a request.
    fn is_ready(&mut self, context: &mut Context<'_>) -> bool {
        if !self.sender.is_ready() {
            self.drive(context);
        }
        !self.is_over && self.sender.is_ready()
    }

    /// The stream, and what was read of it already: for who speaks something else from now on.
    pub(crate) fn into_stream(self) -> Option<(TcpStream, Bytes)> {
        let parts = self.connection?.into_parts();
        Some((parts.io.into_inner().into_inner(), parts.read_buf))
    }
}

/// Connections that nobody uses now, of one thread.
#[derive(Default)]
pub(crate) struct Pool {
    #[expect(clippy::vec_box, reason = "they are long, and go in and out all the time")]
    idle: Mutex<Vec<Box<Link>>>,
}

impl Pool {
    /// The one that was used last, if it is still good.
    pub(crate) fn take(&self) -> Option<Box<Link>> {
        loop {
            let mut link = self.idle.lock().pop()?;
            let mut context = Context::from_waker(Waker::noop());
            // Something may have come that nobody asked for, and would be taken for the next answer.
            link.drive(&mut context);
            if link.since.elapsed() < KEPT && link.is_ready(&mut context) {
                return Some(link);
            }
        }
    }

    /// Keeps one for others, if it can take another request.
    pub(crate) fn give_back(&self, mut link: Box<Link>, context: &mut Context<'_>) {
        if !link.is_ready(context) {
            return;
        }
        link.since = Instant::now();
        let mut idle = self.idle.lock();
        if idle.len() < KEPT_MOST {
            idle.push(link);
        }
    }

    /// Closes those that nobody has used for long, for ever.
    pub(crate) async fn tidy(&self) {
        loop {
            tokio::time::sleep(KEPT / 3).await;
            // Those used last are at the end.
            self.idle.lock().retain(|link| link.since.elapsed() < KEPT);
        }
    }
}
