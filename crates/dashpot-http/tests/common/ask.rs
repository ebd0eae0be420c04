//! HTTP/1.1 by hand: other clients would refuse to send what an attacker sends.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use super::{PATIENCE, Server};

/// A request to be.
#[derive(Clone, Debug)]
pub struct Ask {
    method: String,
    target: String,
    from: IpAddr,
    lines: Vec<(String, String)>,
    body: Vec<u8>,
    chunk: Option<usize>,
}

pub fn ask(method: &str, target: &str) -> Ask {
    Ask {
        method: method.to_owned(),
        target: target.to_owned(),
        from: Ipv4Addr::LOCALHOST.into(),
        lines: Vec::new(),
        body: Vec::new(),
        chunk: None,
    }
}

pub fn get(target: &str) -> Ask {
    ask("GET", target)
}

pub fn post(target: &str, content_type: &str, body: impl Into<Vec<u8>>) -> Ask {
    Ask { body: body.into(), ..ask("POST", target).line("content-type", content_type) }
}

impl Ask {
    /// One more header line; the same name again is a second line.
    pub fn line(mut self, name: &str, value: impl Into<String>) -> Self {
        self.lines.push((name.to_owned(), value.into()));
        self
    }

    pub fn lines(mut self, lines: &[(&str, &str)]) -> Self {
        for (name, value) in lines {
            self = self.line(name, *value);
        }
        self
    }

    /// Connects from this address.
    pub fn from(mut self, address: &str) -> Self {
        self.from = address.parse().unwrap();
        self
    }

    /// Sends the body in chunks of so many bytes.
    pub fn chunked(mut self, size: usize) -> Self {
        self.chunk = Some(size);
        self
    }

    fn has(&self, name: &str) -> bool {
        self.lines.iter().any(|(known, _)| known.eq_ignore_ascii_case(name))
    }

    /// The bytes before the body.
    pub fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        if !self.has("host") {
            head += "host: localhost\r\n";
        }
        if !self.has("connection") {
            head += "connection: close\r\n";
        }
        match self.chunk {
            Some(_) => head += "transfer-encoding: chunked\r\n",
            None if self.body.is_empty() || self.has("content-length") => {}
            None => head += &format!("content-length: {}\r\n", self.body.len()),
        }
        for (name, value) in &self.lines {
            head += &format!("{name}: {value}\r\n");
        }
        head + "\r\n"
    }

    fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.head().into_bytes();
        match self.chunk {
            None => bytes.extend_from_slice(&self.body),
            Some(size) => {
                for chunk in self.body.chunks(size) {
                    bytes.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
                    bytes.extend_from_slice(chunk);
                    bytes.extend_from_slice(b"\r\n");
                }
                bytes.extend_from_slice(b"0\r\n\r\n");
            }
        }
        bytes
    }

    /// Sends it, and does not wait for the answer.
    pub async fn begin(&self, server: &Server) -> TcpStream {
        let mut stream = connect(self.from, server.address).await;
        // A server may answer and close before it has read everything.
        let _ = timeout(PATIENCE, stream.write_all(&self.bytes())).await.expect("writing hangs");
        stream
    }

    /// Sends it, on a connection of its own.
    pub async fn send(&self, server: &Server) -> Answer {
        let mut stream = self.begin(server).await;
        Answer::read(&mut stream, self.method == "HEAD").await
    }

    /// The status of its answer.
    pub async fn status(&self, server: &Server) -> u16 {
        self.send(server).await.status
    }

    /// The statuses of so many of them, one after another.
    pub async fn statuses(&self, server: &Server, count: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(self.status(server).await);
        }
        statuses
    }
}

async fn connect(from: IpAddr, to: SocketAddr) -> TcpStream {
    let connecting = async {
        if from == IpAddr::from(Ipv4Addr::LOCALHOST) {
            return TcpStream::connect(to).await;
        }
        let socket = if from.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        socket.bind((from, 0).into())?;
        socket.connect(to).await
    };
    timeout(PATIENCE, connecting).await.expect("connecting hangs").unwrap()
}

/// What came back.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub lines: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads one answer, and not a byte more.
    pub async fn read(stream: &mut TcpStream, is_head: bool) -> Self {
        let reading = async {
            let mut answer = Self::read_head(stream).await;
            let is_bodiless = is_head || matches!(answer.status, 204 | 304);
            if let Some(length) = answer.get("content-length").filter(|_| !is_bodiless) {
                answer.body = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut answer.body).await.expect("a short body");
            } else if answer.get("transfer-encoding").is_some() && !is_bodiless {
                while answer.read_chunk(stream).await {}
            }
            answer
        };
        timeout(PATIENCE, reading).await.expect("no answer")
    }

    /// Reads one answer's head.
    pub async fn read_head(stream: &mut TcpStream) -> Self {
        let first = read_line(stream).await;
        let status = first.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.unwrap_or_else(|| panic!("no status in {first:?}"));
        let mut lines = Vec::new();
        loop {
            let line = read_line(stream).await;
            let Some((name, value)) = line.split_once(':') else { break };
            lines.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        Self { status, lines, body: Vec::new() }
    }

    /// Reads one more chunk of the body, if there is one.
    pub async fn read_chunk(&mut self, stream: &mut TcpStream) -> bool {
        let length = usize::from_str_radix(read_line(stream).await.trim(), 16).unwrap();
        let mut chunk = vec![0; length];
        let reading = timeout(PATIENCE, stream.read_exact(&mut chunk)).await;
        reading.expect("no chunk").unwrap();
        read_line(stream).await;
        self.body.extend_from_slice(&chunk);
        length > 0
    }

    /// The one line of this name, if there is one.
    pub fn get(&self, name: &str) -> Option<&str> {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} comes more than once: {all:?}");
        all.first().copied()
    }

    /// All lines of this name.
    pub fn all(&self, name: &str) -> Vec<&str> {
        let lines = self.lines.iter().filter(|(known, _)| known == name);
        lines.map(|(_, value)| value.as_str()).collect()
    }

    /// The body as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
    }

    /// `Retry-After`, in seconds.
    pub fn retry_after(&self) -> u64 {
        self.get("retry-after").expect("no Retry-After").parse().unwrap()
    }
}

async fn read_line(stream: &mut TcpStream) -> String {
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        let byte = timeout(PATIENCE, stream.read_u8()).await.expect("no line");
        line.push(byte.expect("the connection ended early"));
    }
    line.truncate(line.len() - 2);
    String::from_utf8_lossy(&line).into_owned()
}
