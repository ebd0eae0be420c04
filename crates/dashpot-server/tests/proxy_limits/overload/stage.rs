//! The backend of these tests: paths say what it does.

use std::collections::HashSet;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::backend::{Backend, Seen, answer};
use crate::caller::PATIENCE;

/// | path | |
/// |---|---|
/// | `/hold/…` | is answered when it is released |
/// | `/half/…` | half of the answer at once, the rest when it is released |
/// | `/slow/N` | after so many milliseconds |
/// | `/drip/N` | begins at once, and ends after so many milliseconds |
/// | `/status/N` | by this status |
/// | `/never`, `/dies`, `/dies-half` | no answer, a closed connection, one that is closed half-way |
/// | `/endless` | as much as anybody reads |
/// | `/upgrade` | what it is sent, twice; `!` ends it |
/// | all else | at once |
#[derive(Clone, Default)]
pub(super) struct Stage(Arc<Shared>);

#[derive(Default)]
struct Shared {
    released: Mutex<HashSet<String>>,
    changed: Condvar,
    at_once: AtomicUsize,
    most: AtomicUsize,
}

impl Stage {
    pub(super) fn start() -> (Self, Backend) {
        let stage = Self::default();
        let known = stage.clone();
        let backend = Backend::answering(move |seen, stream| {
            let at_once = known.0.at_once.fetch_add(1, Ordering::SeqCst) + 1;
            known.0.most.fetch_max(at_once, Ordering::SeqCst);
            known.play(seen, stream)
        });
        (stage, backend)
    }

    /// So many were there at once, at most.
    pub(super) fn most_at_once(&self) -> usize {
        self.0.most.load(Ordering::SeqCst)
    }

    /// Lets this path go on, now and later.
    pub(super) fn release(&self, path: &str) {
        self.0.released.lock().unwrap().insert(path.to_owned());
        self.0.changed.notify_all();
    }

    fn held(&self, path: &str) {
        let released = self.0.released.lock().unwrap();
        let go_on = |released: &mut HashSet<String>| !released.contains(path);
        drop(self.0.changed.wait_timeout_while(released, PATIENCE, go_on).unwrap());
    }

    /// Says it is done before the answer ends, or the next might come before that is known.
    fn last(&self, stream: &mut TcpStream, bytes: &[u8]) -> io::Result<()> {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
        stream.write_all(bytes)
    }

    fn gone(&self) -> io::Result<()> {
        self.0.at_once.fetch_sub(1, Ordering::SeqCst);
        Err(io::ErrorKind::ConnectionAborted.into())
    }

    fn play(&self, seen: &Seen, stream: &mut TcpStream) -> io::Result<()> {
        let path = seen.path();
        let mut parts = path.split('/').skip(1);
        let (what, number) = (parts.next().unwrap(), parts.next().unwrap_or_default());
        let pause = || thread::sleep(Duration::from_millis(number.parse().unwrap()));
        let begin = |stream: &mut TcpStream| {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nhalf")
        };
        match what {
            "hold" => self.held(path),
            "slow" => pause(),
            "status" => return self.last(stream, &answer(&format!("{number} So"), "so")),
            "half" => {
                begin(stream)?;
                self.held(path);
                return self.last(stream, b"half");
            }
            "drip" => {
                begin(stream)?;
                pause();
                return self.last(stream, b"half");
            }
            "never" => {
                let _ = stream.read(&mut [0]);
                return self.gone();
            }
            "dies" => return self.gone(),
            "dies-half" => {
                begin(stream)?;
                return self.gone();
            }
            "endless" => {
                write!(stream, "HTTP/1.1 200 OK\r\n\r\n")?;
                while stream.write_all(&[b'x'; 10_000]).is_ok() {}
                return self.gone();
            }
            "upgrade" => {
                echo(stream)?;
                return self.gone();
            }
            _ => {}
        }
        self.last(stream, &answer("200 OK", "served"))
    }
}

fn echo(stream: &mut TcpStream) -> io::Result<()> {
    let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: echo";
    write!(stream, "{head}\r\n\r\n")?;
    let mut some = [0; 100];
    loop {
        let count = stream.read(&mut some)?;
        if count == 0 || some[..count].contains(&b'!') {
            return Ok(());
        }
        stream.write_all(&some[..count].repeat(2))?;
    }
}
