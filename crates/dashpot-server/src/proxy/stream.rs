//! Streams: what is written together, and whether somebody is still there.

use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// What is copied together rather than handed over in pieces. The system takes one piece in less time than it takes to look at several.
const LITTLE: usize = 1024;

/// A stream whose short messages are written in one piece.
pub(crate) struct Terse<S>(pub(crate) S);

impl<S: AsyncRead + Unpin> AsyncRead for Terse<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Terse<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().0).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().0).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.get_mut().0);
        if let [only] = pieces {
            return stream.poll_write(context, only);
        }
        let mut whole = [0; LITTLE];
        let mut length = 0;
        for piece in pieces {
            let end = length + piece.len();
            match whole.get_mut(length..end) {
                Some(room) => room.copy_from_slice(piece),
                None => return stream.poll_write_vectored(context, pieces),
            }
            length = end;
        }
        stream.poll_write(context, whole.get(..length).unwrap_or_default())
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}

/// What has come by a stream.
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

    /// Hears so many bytes. Tells whether that is too much.
    fn hear(&self, bytes: u64) -> bool {
        self.heard.store(true, Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(bytes), Ordering::Relaxed);
        bytes > left
    }
}

/// A stream that notes when something comes.
pub(crate) struct Noted<S> {
    pub(crate) stream: S,
    pub(crate) ear: Arc<Ear>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Noted<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        let polled = Pin::new(&mut this.stream).poll_read(context, buffer);
        let bytes = (buffer.filled().len() - before) as u64;
        if bytes > 0 && this.ear.hear(bytes) {
            return Poll::Ready(Err(io::Error::other("too much before the answer")));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Noted<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
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
