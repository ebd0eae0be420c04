//! Streams that write little at once.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
