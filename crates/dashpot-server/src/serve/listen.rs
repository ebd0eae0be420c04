//! Threads that serve, and somebody who accepts connections for them.
//!
//! Each thread has a runtime of its own and keeps its connections: nothing a request needs moves between
//! threads.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream as PlainStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::runtime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::sleep;
use tokio_rustls::TlsAcceptor;
use tracing::warn;

use crate::serve::connection::{self, Protocol, Worker};
use crate::serve::lively::Lively;
use crate::serve::service::Shared;
use crate::serve::tls::Tls;

/// A connection on its way to the thread that will keep it.
struct Arrival {
    stream: PlainStream,
    peer: SocketAddr,
    protocol: Protocol,
    tls: Option<TlsAcceptor>,
    place: Place,
}

/// One of the connections there may be. Counted off when it ends, however it does.
struct Place {
    service: Shared,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.service.counters.open_connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A thread that serves.
struct Thread {
    arrivals: UnboundedSender<Arrival>,
    /// How many connections it keeps.
    live: Arc<AtomicUsize>,
    handle: JoinHandle<()>,
}

/// Where callers come in, and what they speak there.
pub(crate) struct Listening {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) protocol: Protocol,
    /// Whether they come by TLS.
    pub(crate) is_secure: bool,
}

/// The threads that serve.
pub(crate) struct Workers {
    threads: Vec<Thread>,
    stopping: watch::Sender<bool>,
    places: Arc<Semaphore>,
}

impl Workers {
    /// Starts a thread for each worker the service was made for.
    pub(crate) fn start(service: &Shared, max_connections: usize) -> io::Result<Self> {
        let (stopping, told) = watch::channel(false);
        let mut threads = Vec::new();
        for number in 0..service.answered.len() {
            let (arrivals, arriving) = unbounded_channel();
            let live = Arc::new(AtomicUsize::new(0));
            let worker = Arc::new(Worker {
                service: service.clone(),
                number,
                lively: Lively::default(),
                pool: Arc::default(),
            });
            let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
            let (counted, told) = (live.clone(), told.clone());
            let work = move || runtime.block_on(keep(worker, arriving, counted, told));
            let handle = thread::Builder::new().name(format!("dashpot-{number}")).spawn(work)?;
            threads.push(Thread { arrivals, live, handle });
        }
        let most = max_connections.clamp(1, Semaphore::MAX_PERMITS);
        Ok(Self { threads, stopping, places: Arc::new(Semaphore::new(most)) })
    }

    /// Accepts connections at all doors, for ever. At the limit, callers wait until others have left.
    pub(crate) async fn accept(&self, service: &Shared, doors: &[Listening], tls: Option<&Tls>) {
        loop {
            // It is never closed.
            let Ok(place) = self.places.clone().acquire_owned().await else { return };
            match next(doors).await {
                Ok((stream, peer, door)) => {
                    service.counters.connections.fetch_add(1, Ordering::Relaxed);
                    service.counters.open_connections.fetch_add(1, Ordering::Relaxed);
                    let place = Place { service: service.clone(), _permit: place };
                    // It is taken off this thread's runtime, and put on another's.
                    let Ok(stream) = stream.into_std() else { continue };
                    let protocol = door.protocol;
                    let tls = tls.filter(|_| door.is_secure).map(|tls| tls.acceptor(protocol));
                    self.hand_over(Arrival { stream, peer, protocol, tls, place });
                }
                Err(error) => {
                    // Too many open files, say; or a caller that gave up. Neither is worth ending for.
                    warn!(%error, "cannot accept a connection");
                    sleep(Duration::from_millis(50)).await;
                }
            }
        }
    }

    /// To the thread that keeps the fewest.
    fn hand_over(&self, arrival: Arrival) {
        let idlest = self.threads.iter().min_by_key(|thread| thread.live.load(Ordering::Relaxed));
        if let Some(thread) = idlest {
            thread.live.fetch_add(1, Ordering::Relaxed);
            // Only if the thread has panicked is nobody there; then the connection is closed.
            let _ = thread.arrivals.send(arrival);
        }
    }

    /// Lets connections end what they are at, for at most so long.
    pub(crate) async fn drain(self, patience: Duration) {
        let _ = self.stopping.send(true);
        let is_idle = || self.threads.iter().all(|thread| thread.live.load(Ordering::Relaxed) == 0);
        let all_gone = async {
            while !is_idle() {
                sleep(Duration::from_millis(5)).await;
            }
        };
        if tokio::time::timeout(patience, all_gone).await.is_err() {
            warn!("some connections did not end in time, and are cut");
        }
        for thread in self.threads {
            drop(thread.arrivals);
            // It has told what it panicked about, if it did.
            let _ = thread.handle.join();
        }
    }
}

/// The next who comes, at whichever door. One after the other is looked at first: a crowd at one keeps nobody from another.
async fn next(doors: &[Listening]) -> io::Result<(TcpStream, SocketAddr, &Listening)> {
    let first = fastrand::usize(..doors.len().max(1));
    poll_fn(|context| {
        let (before, after) = doors.split_at_checked(first).unwrap_or((&[], doors));
        for door in after.iter().chain(before) {
            if let Poll::Ready(accepted) = door.listener.poll_accept(context) {
                return Poll::Ready(accepted.map(|(stream, peer)| (stream, peer, door)));
            }
        }
        Poll::Pending
    })
    .await
}

/// Keeps connections, until no more arrive.
async fn keep(
    worker: Arc<Worker>,
    mut arriving: UnboundedReceiver<Arrival>,
    live: Arc<AtomicUsize>,
    stopping: watch::Receiver<bool>,
) {
    let looking = worker.clone();
    tokio::spawn(async move { looking.lively.look().await });
    let tidying = worker.pool.clone();
    tokio::spawn(async move { tidying.tidy().await });
    while let Some(Arrival { stream, peer, protocol, tls, place }) = arriving.recv().await {
        let leaving = Leaving { live: live.clone(), _place: place };
        let Ok(stream) = TcpStream::from_std(stream) else { continue };
        let (worker, stopping) = (worker.clone(), stopping.clone());
        tokio::spawn(async move {
            connection::serve(worker, stream, (peer, protocol), tls, stopping).await;
            drop(leaving);
        });
    }
}

/// Counts a connection off when it ends, however it does.
struct Leaving {
    live: Arc<AtomicUsize>,
    _place: Place,
}

impl Drop for Leaving {
    fn drop(&mut self) {
        self.live.fetch_sub(1, Ordering::Relaxed);
    }
}
