//! A connection, byte for byte: the caller's to the gateway, or the gateway's to the backend.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use crate::client::PATIENCE;
use crate::message::{Message, fields, latin};

/// What came over it that nobody has looked at is kept.
pub(crate) struct Wire<S = TcpStream> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::of(TcpStream::connect_timeout(&address, PATIENCE).unwrap())
    }

    pub(crate) fn of(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self::over(stream)
    }

    /// How long anything may take to come.
    pub(crate) fn patience(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    /// Nothing more will be said here, though there may be more to hear.
    pub(crate) fn end(&self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }
}

impl<S: Read + Write> Wire<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// One piece of a chunked body.
    #[track_caller]
    pub(crate) fn send_chunk(&mut self, bytes: impl AsRef<[u8]>) {
        self.send(chunk(bytes));
    }

    /// The next head; nothing if the other side has closed before one began.
    pub(crate) fn try_head(&mut self) -> io::Result<Option<Message>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match self.more()? {
                0 if self.buffer.is_empty() => return Ok(None),
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                _ => {}
            }
        };
        Ok(Some(Message::of(&self.take(end))))
    }

    #[track_caller]
    pub(crate) fn head(&mut self) -> Message {
        match self.try_head() {
            Ok(Some(head)) => head,
            other => panic!("{other:?} and no head, but {:?}", latin(&self.buffer)),
        }
    }

    /// The next request, with its body.
    #[track_caller]
    pub(crate) fn request(&mut self) -> Message {
        let mut request = self.head();
        if let Err(error) = self.body(&mut request) {
            panic!("{error} in the body of {request:?}");
        }
        request
    }

    /// The next answer, with its body, to anything but HEAD.
    #[track_caller]
    pub(crate) fn answer(&mut self) -> Message {
        let mut answer = self.head();
        let until_the_end = !answer.is_chunked() && answer.length().is_none();
        match answer.status() {
            100..200 | 204 | 304 => {}
            _ if until_the_end => answer.body = self.rest(),
            _ => {
                if let Err(error) = self.body(&mut answer) {
                    panic!("{error} in the body of {answer:?}");
                }
            }
        }
        answer
    }

    /// As much of the body as came is in the message if it breaks off.
    pub(crate) fn body(&mut self, message: &mut Message) -> io::Result<()> {
        if message.is_chunked() {
            assert!(message.length().is_none(), "a length beside chunks: {message:?}");
            while let Some(piece) = self.chunk()? {
                message.body.extend(piece);
            }
            let end = self.line_end()?;
            if end > 0 {
                while !self.buffer.windows(4).any(|four| four == b"\r\n\r\n") {
                    self.some()?;
                }
                message.trailers = fields(&latin(&self.buffer));
                let end = self.buffer.windows(4).position(|four| four == b"\r\n\r\n");
                self.take(end.unwrap() + 2);
            }
            self.take(2);
        } else if let Some(mut left) = message.length() {
            while left > 0 {
                if self.buffer.is_empty() {
                    self.some()?;
                }
                let piece = self.take(left.min(self.buffer.len()));
                left -= piece.len();
                message.body.extend(piece);
            }
        }
        Ok(())
    }

    /// The next piece of a chunked body; nothing if it was the last. Trailers and the empty line are still to come.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let end = self.line_end()?;
        let line = latin(&self.take(end + 2));
        let size = usize::from_str_radix(line.trim(), 16).map_err(io::Error::other)?;
        if size == 0 {
            return Ok(None);
        }
        while self.buffer.len() < size + 2 {
            self.some()?;
        }
        let piece = self.take(size);
        assert_eq!(self.take(2), b"\r\n", "a chunk ends with its line");
        Ok(Some(piece))
    }

    /// These come next, in chunks of whatever size.
    #[track_caller]
    pub(crate) fn expect_chunks(&mut self, expected: &str) {
        let mut came = String::new();
        while came.len() < expected.len() {
            match self.chunk() {
                Ok(Some(piece)) => came += &latin(&piece),
                other => panic!("{other:?} after {came:?}, not {expected:?}"),
            }
        }
        assert_eq!(came, expected);
    }

    /// These come next, as they are.
    #[track_caller]
    pub(crate) fn expect_bytes(&mut self, expected: impl AsRef<[u8]>) {
        let expected = expected.as_ref();
        while self.buffer.len() < expected.len() {
            if let Err(error) = self.some() {
                panic!("{error} after {:?}, not {:?}", latin(&self.buffer), latin(expected));
            }
        }
        let came = self.take(expected.len());
        assert!(came == expected, "{:?}, not {:?}", latin(&came), latin(expected));
    }

    /// All that comes until the other side closes.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        loop {
            match self.more() {
                Ok(0) => return std::mem::take(&mut self.buffer),
                Ok(_) => {}
                Err(error) => panic!("{error} after {} bytes", self.buffer.len()),
            }
        }
    }

    /// All that comes until the connection ends, in whatever way.
    #[track_caller]
    pub(crate) fn until_cut(&mut self) -> Vec<u8> {
        loop {
            match self.more() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if has_no_patience(&error) => panic!("it is still open"),
                Err(_) => break,
            }
        }
        std::mem::take(&mut self.buffer)
    }

    /// The other side closes, and says nothing more before.
    #[track_caller]
    pub(crate) fn expect_end(&mut self) {
        let said = self.until_cut();
        assert!(said.is_empty(), "{:?}, and not the end", latin(&said));
    }

    fn line_end(&mut self) -> io::Result<usize> {
        loop {
            if let Some(end) = self.buffer.windows(2).position(|two| two == b"\r\n") {
                return Ok(end);
            }
            self.some()?;
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        self.buffer.drain(..count).collect()
    }

    fn some(&mut self) -> io::Result<()> {
        match self.more()? {
            0 => Err(ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut some = vec![0; 64 * 1024];
        let count = self.stream.read(&mut some)?;
        self.buffer.extend_from_slice(&some[..count]);
        Ok(count)
    }
}

/// One piece of a chunked body.
pub(crate) fn chunk(bytes: impl AsRef<[u8]>) -> Vec<u8> {
    let bytes = bytes.as_ref();
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// Nothing came for as long as anybody would wait.
pub(crate) fn has_no_patience(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
