//! Streams: what is written together, and whether somebody is still there.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// What is copied together rather than handed over in pieces. The system takes one piece in less time than it takes to look at several.
const LITTLE: usize = 1024;

/// Who heeds what comes and goes by a stream.
pub(crate) trait Heed {
    /// So many bytes came. An error ends it.
    fn read(&self, _: usize) -> io::Result<()> {
        Ok(())
    }

    /// Something was written.
    fn written(&self) {}

    /// All that was to be written has been.
    fn flushed(&self) {}
}

/// A stream that somebody heeds, and by which short messages go in one piece.
pub(crate) struct Heeded<S, H> {
    /// What was read of it already, and is read first.
    first: Bytes,
    stream: S,
    heed: H,
}

impl<S, H> Heeded<S, H> {
    pub(crate) const fn new(first: Bytes, stream: S, heed: H) -> Self {
        Self { first, stream, heed }
    }

    pub(crate) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: AsyncRead + Unpin, H: Heed + Unpin> AsyncRead for Heeded<S, H> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.first.is_empty() {
            let count = this.first.len().min(buffer.remaining());
            buffer.put_slice(&this.first.split_to(count));
            return Poll::Ready(Ok(()));
        }
        let before = buffer.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        let count = buffer.filled().len() - before;
        Poll::Ready(if count > 0 { this.heed.read(count) } else { Ok(()) })
    }
}

impl<S: AsyncWrite + Unpin, H: Heed + Unpin> AsyncWrite for Heeded<S, H> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = ready!(Pin::new(&mut this.stream).poll_write(context, bytes));
        this.heed.written();
        Poll::Ready(written)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = ready!(Pin::new(&mut this.stream).poll_flush(context));
        this.heed.flushed();
        Poll::Ready(flushed)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if let [only] = pieces {
            return self.poll_write(context, only);
        }
        let mut whole = [0; LITTLE];
        let mut length = 0;
        for piece in pieces {
            let end = length + piece.len();
            match whole.get_mut(length..end) {
                Some(room) => room.copy_from_slice(piece),
                None => {
                    let stream = Pin::new(&mut self.stream);
                    let written = ready!(stream.poll_write_vectored(context, pieces));
                    self.heed.written();
                    return Poll::Ready(written);
                }
            }
            length = end;
        }
        self.poll_write(context, whole.get(..length).unwrap_or_default())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

/// What has come by a connection to the backend.
#[derive(Debug, Default)]
pub(crate) struct Ear {
    heard: AtomicBool,
    /// How many bytes more may come.
    left: AtomicU64,
}

impl Ear {
    /// Listens anew, to so many bytes at most.
    pub(crate) fn prick(&self, most: u64) {
        self.heard.store(false, Ordering::Relaxed);
        self.left.store(most, Ordering::Relaxed);
    }

    /// Whether something has come since then.
    pub(crate) fn has_heard(&self) -> bool {
        self.heard.load(Ordering::Relaxed)
    }
}

impl Heed for Arc<Ear> {
    fn read(&self, count: usize) -> io::Result<()> {
        self.heard.store(true, Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed).checked_sub(count as u64);
        self.left.store(left.unwrap_or(0), Ordering::Relaxed);
        left.map(drop).ok_or_else(|| io::Error::other("too much before the answer"))
    }
}

/// A connection of which two know: who reads and writes, and who looks whether the other side is still there.
pub(crate) struct Shared {
    read: OwnedReadHalf,
    write: Arc<OwnedWriteHalf>,
}

/// The other side of a connection.
pub(crate) struct OtherSide(Arc<OwnedWriteHalf>);

impl Shared {
    pub(crate) fn new(stream: TcpStream) -> (Self, OtherSide) {
        let (read, write) = stream.into_split();
        let write = Arc::new(write);
        (Self { read, write: write.clone() }, OtherSide(write))
    }

    fn stream(&self) -> &TcpStream {
        self.write.as_ref().as_ref()
    }
}

impl OtherSide {
    /// Waits until it has closed. Unlike who reads, it sees that also if something is left to be read before.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub(crate) async fn hung_up(&self) {
        // That somebody closed is told to those as well who wait for what is urgent, and nothing ever is.
        let _ = self.0.ready(Interest::PRIORITY).await;
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) async fn hung_up(&self) {
        std::future::pending().await
    }
}

impl AsyncRead for Shared {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().read).poll_read(context, buffer)
    }
}

/// Tries until it is done, or has to wait.
fn poll_write(
    stream: &TcpStream,
    context: &mut Context<'_>,
    write: impl Fn() -> io::Result<usize>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_write_ready(context))?;
        match write() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            written => return Poll::Ready(written),
        }
    }
}

impl AsyncWrite for Shared {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream();
        poll_write(stream, context, || stream.try_write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(SockRef::from(self.stream()).shutdown(Shutdown::Write))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = self.stream();
        poll_write(stream, context, || stream.try_write_vectored(pieces))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
