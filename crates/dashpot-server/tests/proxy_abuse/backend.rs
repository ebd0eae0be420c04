//! A backend by hand: it does what a test wants, and remembers what it was sent.

use std::collections::HashMap;
use std::io::{Read as _, Write};
use std::mem;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::SockRef;

use crate::client::PATIENCE;
use crate::request;
use crate::service::until;
use crate::wire::{Message, Stop};

/// What came over one of its connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A request, as [`Message::short`] has it.
    Whole(String),
    /// The beginning of one; then the connection ended.
    Part(String),
    /// What cannot be read in one way only.
    Wrong(String),
}

#[derive(Default)]
struct Shared {
    over: AtomicBool,
    accepted: AtomicUsize,
    /// How many connections are in the middle of a request.
    within: AtomicUsize,
    open: Mutex<HashMap<usize, TcpStream>>,
    seen: Mutex<Vec<Seen>>,
}

pub(crate) struct Backend {
    pub(crate) address: SocketAddr,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

impl Backend {
    /// Serves each connection on a thread of its own, and closes it when that returns.
    pub(crate) fn start(serve: impl Fn(&mut Link) + Send + Sync + 'static) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), serve)
    }

    pub(crate) fn at(
        address: SocketAddr,
        serve: impl Fn(&mut Link) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        SockRef::from(&listener).listen(4096).unwrap();
        let address = listener.local_addr().unwrap();
        let (shared, serve) = (Arc::new(Shared::default()), Arc::new(serve));
        let knows = Arc::clone(&shared);
        let listener = thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                if knows.over.load(SeqCst) {
                    return;
                }
                let mut link = Link::new(stream, &knows);
                let serve = Arc::clone(&serve);
                thread::spawn(move || serve(&mut link));
            }
        });
        Self { address, shared, listener: Some(listener) }
    }

    /// How many connections there have been.
    pub(crate) fn accepted(&self) -> usize {
        self.shared.accepted.load(SeqCst)
    }

    /// How many connections there are.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.lock().unwrap().len()
    }

    /// Closes all connections there are.
    pub(crate) fn cut(&self) {
        for stream in self.shared.open.lock().unwrap().values() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    /// What it was sent since the last look. Waits until no request is half there.
    pub(crate) fn take(&self) -> Vec<Seen> {
        until("requests to be whole or given up", PATIENCE, || {
            (self.shared.within.load(SeqCst) == 0).then_some(())
        });
        mem::take(&mut *self.shared.seen.lock().unwrap())
    }

    /// How often it was sent this.
    pub(crate) fn times(&self, request: &str) -> usize {
        let seen = self.shared.seen.lock().unwrap();
        seen.iter().filter(|seen| matches!(seen, Seen::Whole(whole) if whole == request)).count()
    }

    /// Whatever it was sent could be read, and in one way only.
    pub(crate) fn is_content(&self) {
        let seen = self.shared.seen.lock().unwrap();
        let wrong: Vec<_> = seen.iter().filter(|seen| matches!(seen, Seen::Wrong(_))).collect();
        assert!(wrong.is_empty(), "the backend was sent {wrong:#?}");
    }
}

impl Drop for Backend {
    /// The port is free afterwards, and all connections are closed.
    fn drop(&mut self) {
        self.shared.over.store(true, SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
        self.cut();
    }
}

/// One of its connections.
pub(crate) struct Link {
    pub(crate) stream: TcpStream,
    pub(crate) buffer: Vec<u8>,
    /// The how manieth.
    pub(crate) number: usize,
    within: bool,
    shared: Arc<Shared>,
}

impl Link {
    fn new(stream: TcpStream, shared: &Arc<Shared>) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let number = shared.accepted.fetch_add(1, SeqCst);
        shared.open.lock().unwrap().insert(number, stream.try_clone().unwrap());
        Self { stream, buffer: Vec::new(), number, within: false, shared: Arc::clone(shared) }
    }

    /// The next request; nothing when there is none.
    pub(crate) fn request(&mut self) -> Option<Message> {
        loop {
            match request::strict(&self.buffer) {
                Ok((request, count)) => {
                    self.buffer.drain(..count);
                    self.tell(Seen::Whole(request.short()));
                    self.within(false);
                    return Some(request);
                }
                Err(Stop::Wrong(what)) => {
                    self.tell(Seen::Wrong(format!("{what}: {}", self.buffer.escape_ascii())));
                    self.buffer.clear();
                    return None;
                }
                Err(Stop::Part) => {
                    self.within(!self.buffer.is_empty());
                    if !self.more() {
                        return None;
                    }
                }
            }
        }
    }

    /// Reads some; false if there is no more.
    pub(crate) fn more(&mut self) -> bool {
        let mut some = [0; 16 * 1024];
        match self.stream.read(&mut some) {
            Ok(count @ 1..) => {
                self.buffer.extend_from_slice(&some[..count]);
                true
            }
            _ => false,
        }
    }

    /// Whether the other side took it.
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    /// From here on, closing it tells the other side that something went wrong.
    pub(crate) fn reset_at_the_end(&self) {
        SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)).unwrap();
    }

    fn tell(&self, seen: Seen) {
        self.shared.seen.lock().unwrap().push(seen);
    }

    fn within(&mut self, now: bool) {
        if now != mem::replace(&mut self.within, now) {
            match now {
                true => self.shared.within.fetch_add(1, SeqCst),
                false => self.shared.within.fetch_sub(1, SeqCst),
            };
        }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if !self.buffer.is_empty() {
            self.tell(Seen::Part(self.buffer.escape_ascii().to_string()));
        }
        self.within(false);
        self.shared.open.lock().unwrap().remove(&self.number);
    }
}
