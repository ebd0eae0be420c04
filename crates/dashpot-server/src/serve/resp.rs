//! Redis's protocol: one connection after the other, each with many commands.
//!
//! All that has been read is answered, and then written in one go. With the counts in memory, that takes no task and no allocation for
//! a command; what a far store has to be asked about waits in line, and so do the answers after it.

mod conversation;
mod desk;
mod throttle;

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dashpot_resp::Surroundings;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;
use tracing::debug;

use crate::serve::connection::{Worker, linger};
use crate::serve::metrics::Door;
use crate::serve::secret::same;
use crate::serve::service::{Service, Shared};
use conversation::{Conversation, End, PATIENCE};

/// What clients of Redis's are told by.
#[derive(Debug)]
pub(crate) struct Resp {
    password: Option<String>,
    began: Instant,
    /// How many there have been, and how many there are.
    clients: AtomicU64,
    open: AtomicU64,
}

impl Resp {
    pub(crate) fn new(password: Option<String>) -> Self {
        let (clients, open) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { password, began: Instant::now(), clients, open }
    }

    pub(crate) const fn has_password(&self) -> bool {
        self.password.is_some()
    }
}

/// Serves a connection until either side has enough.
pub(crate) async fn serve(
    worker: Arc<Worker>,
    mut stream: impl AsyncRead + AsyncWrite + Unpin + Send,
    peer: SocketAddr,
    mut stopping: watch::Receiver<bool>,
) {
    let here = Here::new(&worker.service);
    let mut conversation = Conversation::new(&worker, here.number);
    let mut told = pin!(stopping.wait_for(|stopping| *stopping));
    let ended = poll_fn(|context| conversation.poll(&mut stream, told.as_mut(), context)).await;
    drop(conversation);
    match ended {
        // To close while something is unread takes back what was answered. So it is read, within reason.
        End::Said => linger(&mut stream).await,
        End::Over => {
            let _ = timeout(PATIENCE, stream.shutdown()).await;
        }
        End::Cut(why) => debug!(%peer, "{why}"),
    }
}

/// A client that is here.
struct Here {
    service: Shared,
    number: u64,
}

impl Here {
    fn new(service: &Shared) -> Self {
        service.resp.open.fetch_add(1, Ordering::Relaxed);
        let number = service.resp.clients.fetch_add(1, Ordering::Relaxed) + 1;
        Self { service: service.clone(), number }
    }
}

impl Drop for Here {
    fn drop(&mut self) {
        self.service.resp.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Surroundings for Service {
    fn has_password(&self) -> bool {
        self.resp.has_password()
    }

    fn is_password(&self, said: &[u8]) -> bool {
        let said = std::str::from_utf8(said);
        said.is_ok_and(|said| self.resp.password.as_ref().is_some_and(|own| same(own, said)))
    }

    fn sections(&self) -> &'static [&'static str] {
        &["server", "clients", "persistence", "stats", "replication", "cluster", "throttle"]
    }

    fn info(&self, section: &str, out: &mut String) {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let mut line = |name: &str, value: &dyn std::fmt::Display| {
            out.push_str(&format!("{name}:{value}\r\n"));
        };
        match section {
            "server" => {
                // Whose commands these are; tools look for it.
                line("redis_version", &"7.2.0");
                line("server_name", &"dashpot");
                line("dashpot_version", &env!("CARGO_PKG_VERSION"));
                line("redis_mode", &"standalone");
                line("process_id", &std::process::id());
                line("uptime_in_seconds", &self.resp.began.elapsed().as_secs());
            }
            "clients" => line("connected_clients", &load(&self.resp.open)),
            "persistence" => line("loading", &0),
            "stats" => {
                line("total_connections_received", &load(&self.resp.clients));
                let commands: u64 = self.answered.iter().map(|one| one.at(Door::Resp)).sum();
                line("total_commands_processed", &commands);
            }
            "replication" => {
                line("role", &"master");
                line("connected_slaves", &0);
            }
            "cluster" => line("cluster_enabled", &0),
            "throttle" => {
                let tally = &self.counters.throttle;
                line("store", &self.store.name());
                line("allowed", &tally.allowed());
                line("denied", &tally.denied());
                line("degraded", &tally.degraded());
            }
            _ => {}
        }
    }
}
