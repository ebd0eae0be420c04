//! A network that misbehaves on demand.

mod link;

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::process::free_port;
use link::Link;

/// What a [`Proxy`] does to what passes through it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    #[default]
    None,
    /// Everything takes so much longer, in each direction. As much gets through as without.
    Delay(Duration),
    /// Connections are accepted and nothing is forwarded, but it is kept until that changes.
    Hang,
    /// Everything is swallowed, silently.
    Drop,
    /// Connections are closed as soon as they are made, and those there are at once.
    Refuse,
}

/// Stands between a client and a server, on a port of its own.
///
/// Its threads and connections end with it.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    listener: Option<JoinHandle<()>>,
}

/// What the threads of a proxy know of.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    fault: Fault,
    /// After how many bytes of replies connections are cut, and the how manieth such wish it is.
    cut_after: (Option<u64>, u64),
    links: Vec<Arc<Link>>,
    accepted: usize,
    closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// In front of `address`, which is "127.0.0.1:PORT". It need not be there yet.
    ///
    /// # Panics
    /// If there is no free port.
    #[must_use]
    pub fn to(address: &str) -> Self {
        let listener = (0..100).find_map(|_| TcpListener::bind(local(free_port())).ok());
        let listener = listener.expect("there is a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let shared = Arc::new(Shared::default());
        let (ours, address) = (shared.clone(), address.to_owned());
        let listener = Some(thread::spawn(move || accept(&listener, &address, &ours)));
        Self { port, shared, listener }
    }

    /// The port it listens on.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// `127.0.0.1:PORT`
    #[must_use]
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What it does from now on, to old connections and new ones.
    pub fn set(&self, fault: Fault) {
        self.shared.state().fault = fault;
        self.shared.changed.notify_all();
        if fault == Fault::Refuse {
            self.cut();
        }
    }

    /// Closes all connections there are, whatever is under way. New ones can be made.
    pub fn cut(&self) {
        let links = std::mem::take(&mut self.shared.state().links);
        links.iter().for_each(|link| link.cut());
        // Who saw that it was not cut is waiting once the state can be had.
        drop(self.shared.state());
        self.shared.changed.notify_all();
    }

    /// Closes each connection once it has forwarded so many bytes of replies from now on, which
    /// may be in the middle of one; after `None`, no more.
    pub fn cut_after(&self, bytes: impl Into<Option<u64>>) {
        let mut state = self.shared.state();
        let (_, wishes) = state.cut_after;
        state.cut_after = (bytes.into(), wishes + 1);
    }

    /// How many connections were ever accepted, refused ones included.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.state().accepted
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().closed = true;
        self.cut();
        // Wakes the listener up, which waits for its connections' threads.
        let _ = TcpStream::connect(local(self.port));
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

fn local(port: u16) -> (Ipv4Addr, u16) {
    (Ipv4Addr::LOCALHOST, port)
}

fn accept(listener: &TcpListener, address: &str, shared: &Shared) {
    thread::scope(|scope| {
        for client in listener.incoming().flatten() {
            let mut state = shared.state();
            if state.closed {
                return;
            }
            state.accepted += 1;
            if state.fault == Fault::Refuse {
                continue;
            }
            let link = Arc::new(Link::new(client));
            state.links.retain(|link| !link.is_cut());
            state.links.push(link.clone());
            drop(state);
            scope.spawn(move || link.run(address, shared));
        }
    });
}
