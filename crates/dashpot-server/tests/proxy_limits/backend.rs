//! The backend: it answers as a test says, and remembers what reached it, and when.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use dashpot_testkit::process::until;

use crate::caller::PATIENCE;

/// A request that reached it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// When its head was there.
    pub(crate) at: Instant,
    /// Its head, as it came.
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn method(&self) -> &str {
        self.head.split(' ').next().unwrap()
    }

    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().skip(1).filter_map(|line| line.split_once(':'));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
    }

    fn ends_the_connection(&self) -> bool {
        self.head.contains(" HTTP/1.0\r\n") || self.header("connection") == Some("close")
    }
}

#[derive(Clone)]
pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Backend {
    /// Says hello to everybody.
    pub(crate) fn start() -> Self {
        Self::answering(|_, stream| stream.write_all(&answer("200 OK", "hello")))
    }

    /// Answers each request so; an error closes the connection.
    pub(crate) fn answering(
        answer: impl Fn(&Seen, &mut TcpStream) -> io::Result<()> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = Self { address: listener.local_addr().unwrap(), seen: Arc::default() };
        let (seen, answer) = (Arc::clone(&backend.seen), Arc::new(answer));
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
                thread::spawn(move || serve(stream, &seen, &*answer));
            }
        });
        backend
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// All that reached it, in the order it came.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let mut seen = self.seen.lock().unwrap().clone();
        seen.sort_by_key(|request| request.at);
        seen
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }

    /// The paths of all that reached it, in the order they came.
    pub(crate) fn paths(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.path().to_owned()).collect()
    }

    /// Waits until so many have reached it, and says which.
    #[track_caller]
    pub(crate) fn await_count(&self, count: usize) -> Vec<Seen> {
        until("requests to reach the backend", PATIENCE, || {
            (self.count() >= count).then(|| self.seen())
        })
    }

    pub(crate) fn forget(&self) {
        self.seen.lock().unwrap().clear();
    }
}

/// An answer with a body of a known length.
pub(crate) fn answer(status: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<Seen>>,
    answer: &(impl Fn(&Seen, &mut TcpStream) -> io::Result<()> + ?Sized),
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut buffer = Vec::new();
    loop {
        let head = read_head(&mut stream, &mut buffer)?;
        let mut request = Seen { at: Instant::now(), head, body: Vec::new() };
        let mut is_broken = false;
        match read_body(&request, &mut stream, &mut buffer) {
            Ok(body) => request.body = body,
            Err(_) => is_broken = true,
        }
        seen.lock().unwrap().push(request.clone());
        if is_broken {
            return Ok(());
        }
        answer(&request, &mut stream)?;
        if request.ends_the_connection() {
            return Ok(());
        }
    }
}

fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<()> {
    let mut some = [0; 16 * 1024];
    let count = stream.read(&mut some)?;
    if count == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    buffer.extend_from_slice(&some[..count]);
    Ok(())
}

fn read_head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<String> {
    loop {
        if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
            let head: Vec<u8> = buffer.drain(..at + 4).collect();
            return Ok(String::from_utf8_lossy(&head).into_owned());
        }
        more(stream, buffer)?;
    }
}

fn read_body(request: &Seen, stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Vec<u8>> {
    let mut exactly = |count: usize, buffer: &mut Vec<u8>| -> io::Result<Vec<u8>> {
        while buffer.len() < count {
            more(stream, buffer)?;
        }
        Ok(buffer.drain(..count).collect())
    };
    if let Some(length) = request.header("content-length") {
        return exactly(length.parse().map_err(io::Error::other)?, buffer);
    }
    let mut body = Vec::new();
    if request.header("transfer-encoding") != Some("chunked") {
        return Ok(body);
    }
    loop {
        let mut line = Vec::new();
        while !line.ends_with(b"\r\n") {
            line.extend(exactly(1, buffer)?);
        }
        let length = String::from_utf8_lossy(&line);
        let length = length.trim().split(';').next().unwrap_or_default().to_owned();
        let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
        let mut chunk = exactly(length + 2, buffer)?;
        if length == 0 {
            return Ok(body);
        }
        chunk.truncate(length);
        body.extend(chunk);
    }
}
