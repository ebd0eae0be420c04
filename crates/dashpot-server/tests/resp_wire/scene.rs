//! The service with its port for the Redis protocol, and connections to it, byte for byte.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::{Deref, DerefMut};
use std::process::Command;
use std::time::Duration;

use dashpot_testkit::RedisServer;

use crate::client::{Client, PATIENCE};
use crate::reply::{Reply, shown};
use crate::service::{Directory, Service, command, until};

pub(crate) struct Scene {
    service: Service,
    pub(crate) resp: SocketAddr,
    // Last: the process is gone when it is removed.
    pub(crate) home: Directory,
}

impl Scene {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_in(Directory::new(), arguments)
    }

    /// Redis counts, and is waited for on a busy machine as well.
    pub(crate) fn on_redis(redis: &RedisServer, arguments: &[&str]) -> Self {
        let home = Directory::new();
        let rules = format!("[store]\nurl = '{}'\ndeadline = '5s'\n", redis.url());
        home.write("rules.toml", &rules);
        Self::start_in(home, &[&["--config", "rules.toml"], arguments].concat())
    }

    /// On ports of its own.
    pub(crate) fn start_in(home: Directory, arguments: &[&str]) -> Self {
        let mut command = command(home.path(), arguments);
        command.args(["--listen", "127.0.0.1:0"]);
        if !arguments.contains(&"--resp-listen") {
            command.args(["--resp-listen", "127.0.0.1:0"]);
        }
        Self::run(home, command)
    }

    pub(crate) fn run(home: Directory, command: Command) -> Self {
        let service = Service::run(command);
        let resp = until("the address of RESP", PATIENCE, || {
            let greeting = service.stdout();
            let line = greeting.lines().find_map(|line| line.trim().strip_prefix("RESP on "));
            line.map(|address| address.trim().parse().unwrap())
        });
        Self { service, resp, home }
    }

    pub(crate) fn connect(&self) -> Wire {
        Wire::to(self.resp)
    }

    /// Somebody else is served, and soon.
    #[track_caller]
    pub(crate) fn serves(&self) {
        let mut other = self.connect();
        other.stream.set_read_timeout(Some(Duration::from_secs(3))).unwrap();
        assert!(other.ask("PING").is_status("PONG"));
    }

    /// How much is left of a key that nobody used, or somebody did.
    #[track_caller]
    pub(crate) fn left(&self, key: &str) -> i64 {
        self.connect().ask(&format!("CL.THROTTLE {key} 5 1 3600 0")).throttle()[2]
    }
}

impl Deref for Scene {
    type Target = Service;

    fn deref(&self) -> &Service {
        &self.service
    }
}

impl DerefMut for Scene {
    fn deref_mut(&mut self) -> &mut Service {
        &mut self.service
    }
}

/// A command as clients send it.
pub(crate) fn framed<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", arguments.len()).into_bytes();
    for argument in arguments.iter().map(AsRef::as_ref) {
        bytes.extend(format!("${}\r\n", argument.len()).as_bytes());
        bytes.extend(argument);
        bytes.extend(b"\r\n");
    }
    bytes
}

/// The same for words with spaces between them.
pub(crate) fn words(command: &str) -> Vec<u8> {
    framed(&command.split(' ').collect::<Vec<_>>())
}

/// Several commands, one after the other.
pub(crate) fn all(commands: &[&str]) -> Vec<u8> {
    commands.iter().flat_map(|command| words(command)).collect()
}

/// A connection, and what came over it that nobody has looked at.
pub(crate) struct Wire<S = TcpStream> {
    pub(crate) stream: S,
    buffer: Vec<u8>,
    seen: usize,
}

impl Wire {
    pub(crate) fn to(address: SocketAddr) -> Self {
        Self::over(Client::to(address).stream)
    }
}

impl<S: Read + Write> Wire<S> {
    pub(crate) fn over(stream: S) -> Self {
        Self { stream, buffer: Vec::new(), seen: 0 }
    }

    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Says it to somebody who may have hung up by then.
    pub(crate) fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.stream.write_all(bytes.as_ref());
    }

    /// Words with spaces between them, and the answer.
    #[track_caller]
    pub(crate) fn ask(&mut self, command: &str) -> Reply {
        self.send(words(command));
        self.reply()
    }

    #[track_caller]
    pub(crate) fn reply(&mut self) -> Reply {
        match self.try_reply() {
            Ok(Some(reply)) => reply,
            other => panic!("{other:?} for a reply; of it: {}", shown(&self.buffer[self.seen..])),
        }
    }

    /// The next reply; nothing if the other side has closed before one began.
    pub(crate) fn try_reply(&mut self) -> io::Result<Option<Reply>> {
        loop {
            if let Some((reply, length)) = Reply::read(&self.buffer[self.seen..]) {
                self.seen += length;
                return Ok(Some(reply));
            }
            self.buffer.drain(..std::mem::take(&mut self.seen));
            match self.more() {
                Ok(0) if self.buffer.is_empty() => return Ok(None),
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// All that comes until the other side closes.
    #[track_caller]
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        loop {
            match self.more() {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}, after {}", shown(&self.buffer)),
            }
        }
        self.buffer.split_off(std::mem::take(&mut self.seen))
    }

    fn more(&mut self) -> io::Result<usize> {
        let mut some = [0; 16 * 1024];
        let count = self.stream.read(&mut some)?;
        self.buffer.extend_from_slice(&some[..count]);
        Ok(count)
    }
}

/// Says this and `QUIT` to whoever listens there, in one piece, and hears all they say until they close. It ends with
/// `+OK` if they were still listening when `QUIT` came.
pub(crate) fn told(address: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut wire = Wire::to(address);
    wire.stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    wire.send([bytes, &words("QUIT")].concat());
    let mut all = Vec::new();
    match wire.stream.read_to_end(&mut all) {
        Err(error) if error.kind() != ErrorKind::ConnectionReset => {
            all.extend(b"<and does not close>");
        }
        _ => {}
    }
    all
}
