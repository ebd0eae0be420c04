//! A caller who says exactly what a test wants, and reads answers strictly: an answer is whole or it
//! is not, and nothing in between.

use std::io::{self, ErrorKind, Read as _, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use socket2::SockRef;

use crate::client::Client;
use crate::wire::{Message, Read, Reader, Stop, number, wrong};

/// How the other side left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Closed,
    Reset,
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// The connection ended before an answer began.
    Gone,
    /// It ended within one: that much was there.
    Broken(String),
    /// Nothing came for as long as one has patience.
    Late,
    /// It is not an answer.
    Wrong(String),
}

pub(crate) struct Caller {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
    pub(crate) end: Option<End>,
}

impl Caller {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::try_to(address).unwrap()
    }

    pub(crate) fn try_to(address: SocketAddr) -> io::Result<Self> {
        let Client { stream, buffer } = Client::try_to(address)?;
        Ok(Self { stream, buffer, end: None })
    }

    pub(crate) fn patience(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }

    /// Whoever has closed does not hear it.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Ends it so that the other side hears nothing but that it is over.
    pub(crate) fn reset(self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Reads some; false if nothing came in time.
    fn more(&mut self) -> bool {
        let mut some = [0; 16 * 1024];
        match self.stream.read(&mut some) {
            Ok(0) => self.end = Some(End::Closed),
            Ok(count) => self.buffer.extend_from_slice(&some[..count]),
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock | ErrorKind::TimedOut => return false,
                ErrorKind::Interrupted => {}
                _ => self.end = Some(End::Reset),
            },
        }
        true
    }

    /// The next answer to a GET or the like.
    pub(crate) fn answer(&mut self) -> Result<Message, Failure> {
        self.answer_to("GET")
    }

    pub(crate) fn answer_to(&mut self, method: &str) -> Result<Message, Failure> {
        loop {
            match answer(&self.buffer, method, self.end) {
                Ok((answer, count)) => {
                    self.buffer.drain(..count);
                    return Ok(answer);
                }
                Err(Stop::Wrong(what)) => return Err(Failure::Wrong(what)),
                Err(Stop::Part) if self.end.is_some() => {
                    let part = String::from_utf8_lossy(&self.buffer).into_owned();
                    return Err(match part.is_empty() {
                        true => Failure::Gone,
                        false => Failure::Broken(part),
                    });
                }
                Err(Stop::Part) if !self.more() => return Err(Failure::Late),
                Err(Stop::Part) => {}
            }
        }
    }

    pub(crate) fn ask(&mut self, bytes: impl AsRef<[u8]>) -> Result<Message, Failure> {
        self.send(bytes);
        self.answer()
    }

    pub(crate) fn get(&mut self, path: &str) -> Result<Message, Failure> {
        self.ask(get(path))
    }

    /// Whether the other side closes, without another word, before the patience is over.
    pub(crate) fn is_closed(&mut self) -> bool {
        while self.end.is_none() && self.buffer.is_empty() && self.more() {}
        self.end.is_some() && self.buffer.is_empty()
    }

    /// All that comes up to the end; false if there is none before the patience is over.
    pub(crate) fn drain(&mut self) -> bool {
        while self.end.is_none() && self.more() {}
        self.end.is_some()
    }
}

/// The first answer in these bytes, and how many of them it has. What comes before it (1xx) does not
/// count.
fn answer(bytes: &[u8], method: &str, end: Option<End>) -> Read<(Message, usize)> {
    let mut reader = Reader::strict(bytes);
    loop {
        let line = String::from_utf8_lossy(reader.line()?).into_owned();
        let mut answer = Message { line, ..Message::default() };
        let version = matches!(answer.word(0), "HTTP/1.1" | "HTTP/1.0");
        if !version || answer.word(1).len() != 3 || answer.status() < 100 {
            return wrong(format!("not a status line: {:?}", answer.line));
        }
        answer.fields = reader.fields()?;
        let status = answer.status();
        if matches!(status, 100 | 102..=199) {
            continue;
        }
        match (&answer.all("content-length")[..], &answer.all("transfer-encoding")[..]) {
            ([..], []) if method == "HEAD" || matches!(status, 101 | 204 | 304) => {}
            ([length], []) => match number(length, 10) {
                Some(length) => answer.body = reader.exactly(length)?,
                None => return wrong(format!("not a length: {}", length.escape_ascii())),
            },
            ([], [coding]) if coding == b"chunked" => {
                if method != "HEAD" {
                    (answer.body, answer.trailers) = reader.chunks()?;
                }
            }
            ([], []) if end == Some(End::Closed) => {
                answer.body = reader.exactly(bytes.len() - reader.at)?;
            }
            ([], []) => return Err(Stop::Part),
            other => return wrong(format!("lengths and codings: {other:?}")),
        }
        return Ok((answer, reader.at));
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a.example\r\n\r\n")
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nHost: a.example\r\nContent-Length: {length}\r\n\r\n{body}")
}
