//! HTTP/1.1 by hand: what goes over the wire is what a test says, byte for byte.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;

/// How long anything may take that should take no time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    pub(crate) fn json(&self) -> Value {
        match serde_json::from_str(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("{error}: {self:?}"),
        }
    }

    pub(crate) fn allowed(&self) -> bool {
        match (self.status, self.json()["outcome"].as_str()) {
            (200, Some("allow")) => true,
            (429, Some("deny")) => false,
            _ => panic!("neither allowed nor denied: {self:?}"),
        }
    }

    /// What is left of the first limit.
    pub(crate) fn remaining(&self) -> u64 {
        match self.json()["policies"][0]["remaining"].as_u64() {
            Some(remaining) => remaining,
            None => panic!("nothing remains: {self:?}"),
        }
    }
}

/// A connection, and what came over it that nobody has looked at.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) stream: S,
    pub(crate) buffer: Vec<u8>,
}

impl Client {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::try_to(address).unwrap()
    }

    pub(crate) fn try_to(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::new() })
    }

    pub(crate) fn patience(&self, patience: Duration) {
        self.stream.set_read_timeout(Some(patience)).unwrap();
    }
}

impl<S: Read + Write> Client<S> {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// The next answer; nothing if the other side has closed before one began.
    pub(crate) fn answer(&mut self) -> io::Result<Option<Answer>> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            match self.more() {
                Ok(0) if self.buffer.is_empty() => return Ok(None),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {head:?}")))?;
        let mut answer = Answer { status, head, body: String::new() };
        if status >= 200 {
            let length = answer.header("content-length").map_or(0, |text| text.parse().unwrap());
            while self.buffer.len() < length {
                if self.more()? == 0 {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
            let body: Vec<u8> = self.buffer.drain(..length).collect();
            answer.body = String::from_utf8(body).map_err(io::Error::other)?;
        }
        Ok(Some(answer))
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut some = [0; 16 * 1024];
        let count = self.stream.read(&mut some)?;
        self.buffer.extend_from_slice(&some[..count]);
        Ok(count)
    }

    pub(crate) fn expect(&mut self) -> Answer {
        self.answer().unwrap().expect("an answer, and not the end")
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(get(path));
        self.expect()
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> Answer {
        self.send(post(path, body));
        self.expect()
    }

    pub(crate) fn check(&mut self, body: &str) -> Answer {
        self.post("/v1/check", body)
    }

    /// Whether the other side closes and says nothing more before.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.more(), Ok(0)) && self.buffer.is_empty()
    }

    /// All that comes until the other side closes or the patience is over, and whether it closed.
    pub(crate) fn rest(&mut self) -> (Vec<u8>, bool) {
        let closed = loop {
            match self.more() {
                Ok(0) => break true,
                Ok(_) => {}
                Err(error) => break error.kind() == io::ErrorKind::ConnectionReset,
            }
        };
        (std::mem::take(&mut self.buffer), closed)
    }
}

pub(crate) fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n")
}

pub(crate) fn post(path: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
}

pub(crate) fn check(body: &str) -> String {
    post("/v1/check", body)
}

/// What a gateway asks about a request for `path`.
pub(crate) fn forward_auth(path: &str) -> String {
    format!(
        "GET /v1/forward-auth HTTP/1.1\r\nhost: localhost\r\nx-forwarded-method: GET\r\n\
         x-forwarded-uri: {path}\r\nx-forwarded-host: example.com\r\n\
         x-forwarded-for: 203.0.113.7\r\n\r\n"
    )
}
