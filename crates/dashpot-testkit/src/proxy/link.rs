use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use super::{Fault, Shared};

/// One connection through a proxy: the client's, and ours to the server.
#[derive(Debug)]
pub(super) struct Link {
    ends: Mutex<Ends>,
}

#[derive(Debug)]
struct Ends {
    sockets: Vec<TcpStream>,
    cut: bool,
}

/// Bytes on their way, and when they came.
type Piece = (Instant, Vec<u8>);

/// What to do with bytes whose turn it is.
enum Turn {
    Forward,
    Swallow,
    GiveUp,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Requests,
    Replies,
}

impl Link {
    pub(super) fn new(client: TcpStream) -> Self {
        Self { ends: Mutex::new(Ends { sockets: vec![client], cut: false }) }
    }

    /// Closes both ends now.
    pub(super) fn cut(&self) {
        let mut ends = self.ends();
        ends.cut = true;
        for socket in ends.sockets.drain(..) {
            let _ = socket.shutdown(Shutdown::Both);
        }
    }

    pub(super) fn is_cut(&self) -> bool {
        self.ends().cut
    }

    /// Forwards until both sides have said all, or it is cut.
    pub(super) fn run(&self, address: &str, shared: &Shared) {
        if let Some((client, server)) = self.open(address) {
            thread::scope(|scope| {
                scope.spawn(|| self.forward(&client, &server, Direction::Requests, shared));
                self.forward(&server, &client, Direction::Replies, shared);
            });
        }
        self.cut();
    }

    fn open(&self, address: &str) -> Option<(TcpStream, TcpStream)> {
        let server = TcpStream::connect(address).ok()?;
        let mut ends = self.ends();
        let client = ends.sockets.first()?.try_clone().ok()?;
        ends.sockets.push(server.try_clone().ok()?);
        client.set_nodelay(true).ok()?;
        server.set_nodelay(true).ok()?;
        Some((client, server))
    }

    fn forward(&self, from: &TcpStream, to: &TcpStream, direction: Direction, shared: &Shared) {
        let (sender, pieces) = sync_channel(4096);
        thread::scope(|scope| {
            scope.spawn(|| receive(from, sender));
            self.deliver(to, pieces, direction, shared);
        });
    }

    fn deliver(
        &self,
        mut to: &TcpStream,
        pieces: Receiver<Piece>,
        direction: Direction,
        shared: &Shared,
    ) {
        let (mut sent, mut wish) = (0, 0);
        for (came, piece) in pieces {
            match self.await_turn(Some(came), shared) {
                Turn::Forward => {}
                Turn::Swallow => continue,
                Turn::GiveUp => return,
            }
            let (limit, latest) = shared.state().cut_after;
            if wish != latest {
                (sent, wish) = (0, latest);
            }
            let room = limit.filter(|_| direction == Direction::Replies).map(|limit| limit - sent);
            let length = room.map_or(piece.len(), |room| piece.len().min(room as usize));
            let written = to.write_all(&piece[..length]);
            sent += length as u64;
            if written.is_err() || room == Some(length as u64) {
                return self.cut();
            }
        }
        // The end is the last thing that is forwarded.
        if matches!(self.await_turn(None, shared), Turn::Forward) {
            let _ = to.shutdown(Shutdown::Write);
        }
    }

    /// Waits as the fault of the moment demands, with bytes that came then or the end of them all,
    /// which is not swallowed but kept.
    fn await_turn(&self, came: Option<Instant>, shared: &Shared) -> Turn {
        let mut state = shared.state();
        loop {
            if self.is_cut() {
                return Turn::GiveUp;
            }
            state = match (state.fault, came) {
                (Fault::None | Fault::Refuse, _) | (Fault::Delay(_), None) => return Turn::Forward,
                (Fault::Drop, Some(_)) => return Turn::Swallow,
                (Fault::Hang, _) | (Fault::Drop, None) => {
                    shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
                }
                (Fault::Delay(delay), Some(came)) => {
                    let left = (came + delay).saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Turn::Forward;
                    }
                    let woken = shared.changed.wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
            };
        }
    }

    fn ends(&self) -> MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes what comes, until nothing more does.
fn receive(mut from: &TcpStream, pieces: SyncSender<Piece>) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match from.read(&mut buffer) {
            Ok(length @ 1..) => {
                if pieces.send((Instant::now(), buffer[..length].to_vec())).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}
