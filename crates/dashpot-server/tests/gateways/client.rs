//! A caller that says what it likes, byte by byte.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::runtime::Builder;

/// Nobody waits longer for an answer.
const PATIENCE: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn retry_after(&self) -> u64 {
        let told = self.field("retry-after").unwrap_or_else(|| panic!("no Retry-After: {self:?}"));
        told.parse().unwrap_or_else(|_| panic!("Retry-After is {told:?}"))
    }
}

/// One of the callers, by an address of its own on this machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller(pub(crate) u8);

impl Caller {
    /// Sends a request with these lines after the first, `Host` if none says so, and a body.
    pub(crate) fn send(self, port: u16, first: &str, lines: &[&str], body: &str) -> Option<Answer> {
        let mut text = format!("{first} HTTP/1.1\r\n");
        let said = |name: &str| {
            lines.iter().any(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))
        };
        if !said("host") {
            text += &format!("Host: 127.0.0.1:{port}\r\n");
        }
        if !said("connection") {
            text += "Connection: close\r\n";
        }
        if !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        for line in lines {
            text += &format!("{line}\r\n");
        }
        text += &format!("\r\n{body}");

        let mut stream = self.connect(port)?;
        stream.write_all(text.as_bytes()).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        parsed(&String::from_utf8_lossy(&answer))
    }

    /// Only tokio's sockets can be told from which address to connect.
    fn connect(self, port: u16) -> Option<TcpStream> {
        let connecting = async {
            let socket = TcpSocket::new_v4()?;
            socket.bind(SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, self.0), 0).into())?;
            socket.connect(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into()).await?.into_std()
        };
        let runtime = Builder::new_current_thread().enable_io().build().unwrap();
        let stream = runtime.block_on(connecting).ok()?;
        stream.set_nonblocking(false).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Some(stream)
    }
}

fn parsed(answer: &str) -> Option<Answer> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let mut lines = head.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let fields = lines.filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(name, value)| (name.to_owned(), value.trim().to_owned())).collect();
    Some(Answer { status, fields, body: body.to_owned() })
}
