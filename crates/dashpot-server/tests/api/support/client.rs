//! HTTP/1.1 by hand: what is sent is exactly what the test says, on one connection that stays.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;

use super::{Answer, PATIENCE};

/// A connection.
pub(crate) struct Client {
    stream: TcpStream,
    address: SocketAddr,
    read: Vec<u8>,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self { stream, address, read: Vec::new() }
    }

    #[track_caller]
    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.ask("GET", path, &[], b"")
    }

    #[track_caller]
    pub(crate) fn post(&mut self, path: &str, body: &Value) -> Answer {
        self.ask("POST", path, &[], body.to_string().as_bytes())
    }

    #[track_caller]
    pub(crate) fn check(&mut self, body: &Value) -> Answer {
        self.post("/v1/check", body)
    }

    /// A whole request; `Host` is this server unless the headers say another.
    #[track_caller]
    pub(crate) fn ask(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\n");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head += &format!("Host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        if !body.is_empty() || matches!(method, "POST" | "PUT" | "PATCH") {
            head += &format!("Content-Length: {}\r\n", body.len());
        }
        self.send(&[format!("{head}\r\n").as_bytes(), body].concat());
        self.answer(method == "HEAD")
    }

    /// Bytes as they are. That the server may have hung up meanwhile is seen in the answer.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// The next answer on this connection.
    #[track_caller]
    pub(crate) fn answer(&mut self, to_head: bool) -> Answer {
        let end = loop {
            if let Some(end) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            assert!(self.more(), "hung up without an answer: {:?}", self.seen());
        };
        let head = String::from_utf8(self.read.drain(..end + 4).collect()).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap();
        let status = status.strip_prefix("HTTP/1.1 ").unwrap_or_else(|| panic!("{status:?}"));
        let status = status[..3].parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(": ").unwrap_or_else(|| panic!("{line:?}")))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        if to_head || status == 304 || status == 204 {
            return answer;
        }
        let length = answer.header("content-length").unwrap_or_else(|| panic!("{answer:?}"));
        let length: usize = length.parse().unwrap();
        while self.read.len() < length {
            assert!(self.more(), "hung up within a body: {answer:?} {:?}", self.seen());
        }
        answer.body = self.read.drain(..length).collect();
        answer
    }

    /// Whether the server has hung up, and said nothing more before.
    pub(crate) fn hung_up(&mut self) -> bool {
        self.read.is_empty() && !self.more()
    }

    fn seen(&self) -> String {
        String::from_utf8_lossy(&self.read).into_owned()
    }

    #[track_caller]
    fn more(&mut self) -> bool {
        let mut some = [0; 16 * 1024];
        match self.stream.read(&mut some) {
            Ok(count) => {
                self.read.extend_from_slice(&some[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("no answer: {error}; so far {:?}", self.seen()),
        }
    }
}
