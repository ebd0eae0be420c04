//! Those who ask, byte for byte, each from an address of this machine.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::{Domain, SockRef, Socket, Type};

/// How long anything may take that should take no time.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// One answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    /// The one line of this name, if there is one.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let found: Vec<_> = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name)).collect();
        assert!(found.len() < 2, "{name} comes more than once: {}", self.head);
        found.first().map(|(_, value)| value.trim())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub(crate) fn retry_after(&self) -> u64 {
        self.header("retry-after").unwrap_or_else(|| panic!("{self:?}")).parse().unwrap()
    }

    /// What is left, as the header tells.
    #[track_caller]
    pub(crate) fn left(&self) -> u64 {
        let told = self.header("ratelimit").unwrap_or_else(|| panic!("{self:?}"));
        told.split(';').find_map(|part| part.strip_prefix("r=")).unwrap().parse().unwrap()
    }
}

/// A connection, and what came over it that nobody has looked at.
pub(crate) struct Caller {
    pub(crate) stream: TcpStream,
    buffer: Vec<u8>,
}

impl Caller {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::from(1, address)
    }

    /// Connects from 127.0.0.`last`.
    pub(crate) fn from(last: u8, address: SocketAddr) -> Self {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        let own = SocketAddr::from((Ipv4Addr::new(127, 0, 0, last), 0));
        socket.bind(&own.into()).unwrap();
        socket.connect_timeout(&address.into(), PATIENCE).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, buffer: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    #[track_caller]
    pub(crate) fn answer(&mut self) -> Answer {
        self.try_answer("GET").unwrap()
    }

    /// Sends this, and says what came of it.
    pub(crate) fn try_answer_to(&mut self, text: &str) -> io::Result<Answer> {
        self.send(text);
        self.try_answer("GET")
    }

    /// The next answer to a request of this method.
    pub(crate) fn try_answer(&mut self, method: &str) -> io::Result<Answer> {
        let mut answer = self.head()?;
        if method == "HEAD" || answer.status < 200 || matches!(answer.status, 204 | 304) {
            return Ok(answer);
        }
        if let Some(length) = answer.header("content-length") {
            let length = length.parse().map_err(io::Error::other)?;
            answer.body = self.exactly(length)?;
        } else if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                answer.body.extend(chunk);
            }
        } else {
            while self.more()? {}
            answer.body = std::mem::take(&mut self.buffer);
        }
        Ok(answer)
    }

    /// The head of the next answer, and nothing of its body.
    pub(crate) fn head(&mut self) -> io::Result<Answer> {
        let end = loop {
            if let Some(at) = self.buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let head: Vec<u8> = self.buffer.drain(..end).collect();
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or_else(|| io::Error::other(format!("no status: {head:?}")))?;
        Ok(Answer { status, head, body: Vec::new() })
    }

    /// The next chunk of a body, unless it is the last.
    pub(crate) fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(self.exactly(1)?);
        }
        let text = String::from_utf8_lossy(&line);
        let length = usize::from_str_radix(text.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = self.exactly(length + 2)?;
        chunk.truncate(length);
        Ok((length > 0).then_some(chunk))
    }

    pub(crate) fn exactly(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.buffer.len() < count {
            if !self.more()? {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        Ok(self.buffer.drain(..count).collect())
    }

    /// Whether there was more.
    fn more(&mut self) -> io::Result<bool> {
        let mut some = [0; 64 * 1024];
        let count = self.stream.read(&mut some)?;
        self.buffer.extend_from_slice(&some[..count]);
        Ok(count > 0)
    }

    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], "")
    }

    #[track_caller]
    pub(crate) fn ask(&mut self, method: &str, path: &str, lines: &[&str], body: &str) -> Answer {
        self.send(request(method, path, lines, body));
        self.try_answer(method).unwrap()
    }

    /// Goes without a word, as a program does that crashes.
    pub(crate) fn reset(self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Whether the other side closes and says nothing more before.
    pub(crate) fn is_closed(&mut self) -> bool {
        if !self.buffer.is_empty() {
            return false;
        }
        match self.more() {
            Ok(is_more) => !is_more,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// A request with these lines beside `Host`.
pub(crate) fn request(method: &str, path: &str, lines: &[&str], body: &str) -> String {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    for line in lines {
        text += &format!("{line}\r\n");
    }
    if !body.is_empty() {
        text += &format!("content-length: {}\r\n", body.len());
    }
    text + "\r\n" + body
}

pub(crate) fn get(path: &str) -> String {
    request("GET", path, &[], "")
}
