//! Just enough of Redis's protocol to ask a server something.

use std::io::{self, BufRead, BufReader, Error, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long a server may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a server answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Nothing.
    Nil,
    /// A whole number.
    Int(i64),
    /// A status or a string.
    Text(Vec<u8>),
    /// Several.
    Array(Vec<Reply>),
    /// It refuses, and why.
    Error(String),
}

impl Reply {
    /// The text it must be.
    ///
    /// # Panics
    /// If it is something else.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The bytes it must be.
    ///
    /// # Panics
    /// If it is something else.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(bytes) => bytes,
            other => panic!("text was expected, not {other:?}"),
        }
    }

    /// The number it must be, also if it is written as text.
    ///
    /// # Panics
    /// If it is something else.
    #[must_use]
    pub fn int(&self) -> i64 {
        match self {
            Self::Int(number) => *number,
            Self::Text(_) => self.text().parse().expect("a number was expected"),
            other => panic!("a number was expected, not {other:?}"),
        }
    }

    /// The several replies it must be.
    ///
    /// # Panics
    /// If it is something else.
    #[must_use]
    pub fn array(&self) -> &[Self] {
        match self {
            Self::Array(replies) => replies,
            other => panic!("an array was expected, not {other:?}"),
        }
    }

    /// Whether it is `OK`.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        matches!(self, Self::Text(text) if text == b"OK")
    }
}

/// One connection to a server, which speaks RESP 2 and waits two seconds for an answer at most.
#[derive(Debug)]
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Connects to "127.0.0.1:PORT".
    ///
    /// # Errors
    /// If nobody listens there.
    pub fn to(address: &str) -> io::Result<Self> {
        let address: SocketAddr =
            address.parse().map_err(|_| Error::new(ErrorKind::InvalidInput, "no address"))?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        Ok(Self { stream: BufReader::new(stream) })
    }

    /// Sends one command and waits for its reply.
    ///
    /// # Errors
    /// If the connection is lost or the reply does not come in time; it is of no use any more
    /// then.
    pub fn command<A: AsRef<[u8]>>(&mut self, command: &[A]) -> io::Result<Reply> {
        self.send(&encoded(command))?;
        self.receive()
    }

    /// Sends several commands at once and waits for all replies.
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub fn commands<A: AsRef<[u8]>>(&mut self, commands: &[Vec<A>]) -> io::Result<Vec<Reply>> {
        let all: Vec<u8> = commands.iter().flat_map(|command| encoded(command)).collect();
        self.send(&all)?;
        commands.iter().map(|_| self.receive()).collect()
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// If the connection is lost.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Waits for one reply.
    ///
    /// # Errors
    /// As for [`command`](Self::command).
    pub fn receive(&mut self) -> io::Result<Reply> {
        let line = self.line()?;
        let (kind, rest) = line.split_at_checked(1).ok_or_else(garbled)?;
        match kind {
            "+" => Ok(Reply::Text(rest.into())),
            "-" => Ok(Reply::Error(rest.into())),
            ":" => Ok(Reply::Int(rest.parse().map_err(|_| garbled())?)),
            "$" => self.bulk(rest),
            "*" => match rest {
                "-1" => Ok(Reply::Nil),
                count => {
                    let count: usize = count.parse().map_err(|_| garbled())?;
                    Ok(Reply::Array((0..count).map(|_| self.receive()).collect::<Result<_, _>>()?))
                }
            },
            _ => Err(garbled()),
        }
    }

    /// Whether the other side has neither closed it nor said anything unasked.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        let stream = self.stream.get_ref();
        let peek = stream.set_nonblocking(true).and_then(|()| stream.peek(&mut [0]));
        let idle = matches!(peek, Err(error) if error.kind() == ErrorKind::WouldBlock);
        idle && self.stream.buffer().is_empty() && stream.set_nonblocking(false).is_ok()
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = Vec::new();
        self.stream.read_until(b'\n', &mut line)?;
        let line = line.strip_suffix(b"\r\n").ok_or(ErrorKind::UnexpectedEof)?;
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    fn bulk(&mut self, length: &str) -> io::Result<Reply> {
        if length == "-1" {
            return Ok(Reply::Nil);
        }
        let length: usize = length.parse().map_err(|_| garbled())?;
        let mut text = vec![0; length + 2];
        self.stream.read_exact(&mut text)?;
        text.truncate(length);
        Ok(Reply::Text(text))
    }
}

fn encoded<A: AsRef<[u8]>>(command: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for argument in command {
        let argument = argument.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend_from_slice(argument);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

fn garbled() -> Error {
    Error::new(ErrorKind::InvalidData, "not RESP")
}
