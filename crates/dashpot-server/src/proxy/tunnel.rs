//! Bytes that go through, once caller and backend speak something else than HTTP.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy, split};
use tokio::time::Instant;
use tracing::debug;

use crate::proxy::bell::{Bell, within};
use crate::proxy::gateway::Gateway;
use crate::proxy::link::Link;
use crate::proxy::stream::{Heed, Heeded};

/// How long the backend's connection may take to be done with HTTP.
const SWITCHING: Duration = Duration::from_secs(5);

/// Lets bytes through in both directions, until either side is done or nobody says anything for too long.
pub(crate) async fn run(
    gateway: &Gateway,
    mut caller: impl AsyncRead + AsyncWrite + Unpin,
    said: Bytes,
    mut link: Link,
) {
    let over = poll_fn(|context| {
        link.drive(context);
        if link.is_over() { Poll::Ready(()) } else { Poll::Pending }
    });
    if within(SWITCHING, over).await.is_none() {
        return;
    }
    let _open = Open::new(&gateway.counters.tunnels);
    let Some((backend, answered)) = link.into_stream() else { return };
    let heard = Heard { began: Instant::now(), last: AtomicU64::new(0) };
    // All that either says goes by this one.
    let mut backend = Heeded::new(Bytes::new(), backend, &heard);
    let through = async {
        backend.write_all(&said).await?;
        caller.write_all(&answered).await?;
        caller.flush().await?;
        let (from_caller, to_caller) = split(&mut caller);
        let (from_backend, to_backend) = split(&mut backend);
        // Once the backend has nothing more to say, it is over. A caller who has nothing more to say is still answered.
        tokio::select! {
            ended = pour(from_backend, to_caller) => ended,
            error = async {
                let ended = pour(from_caller, to_backend).await;
                if ended.is_ok() {
                    Bell::after(gateway.settings.patience.client).await;
                }
                ended
            } => error,
        }
    };
    let patience = gateway.settings.tunnel_timeout;
    let silence = async {
        loop {
            let last = heard.last();
            if last.elapsed() >= patience {
                return;
            }
            Bell::at(last + patience).await;
        }
    };
    tokio::select! {
        // Whether nobody said anything is known once it was looked at.
        biased;
        ended = through => {
            if let Err(error) = ended {
                debug!(%error, "a tunnel ended early");
            }
        }
        () = silence => debug!("nobody said anything, and the tunnel is closed"),
    }
}

/// Carries over what one side says, to the end, and says that it was the end.
async fn pour(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) -> io::Result<()> {
    copy(&mut from, &mut to).await?;
    to.shutdown().await
}

/// Counts tunnels that are open.
struct Open<'c>(&'c AtomicU64);

impl<'c> Open<'c> {
    fn new(count: &'c AtomicU64) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// When somebody last said something.
struct Heard {
    began: Instant,
    /// Microseconds since it began.
    last: AtomicU64,
}

impl Heard {
    fn note(&self) {
        let now = u64::try_from(self.began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.last.store(now, Ordering::Relaxed);
    }

    fn last(&self) -> Instant {
        self.began + Duration::from_micros(self.last.load(Ordering::Relaxed))
    }
}

impl Heed for &Heard {
    fn read(&self, _: usize) -> io::Result<()> {
        self.note();
        Ok(())
    }

    fn written(&self) {
        self.note();
    }
}
