//! `dashpot serve`: the decision service.

pub(crate) mod api;
mod connection;
mod limits;
mod listen;
mod log;
mod metrics;
mod outstanding;
mod question;
mod reservation;
mod secret;
mod service;
mod settings;
mod store;
mod text;
mod tls;
mod top;
mod wrong;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::net::{TcpListener, TcpSocket};
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{interval, sleep};
use tracing::{error, info, warn};

use crate::Exit;
use listen::Workers;
use outstanding::Outstanding;
use secret::Secret;
use service::{Parts, Service, Shared};
use settings::Failure;
use store::AnyStore;
use tls::Tls;

pub(crate) use settings::Args;

/// How often permits are looked for whose time is over.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args) -> Exit {
    log::start(args.log_format, args.log_level);
    // One file for each connection, and the usual limit is low.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serve(args)),
        Err(error) => Err(Failure::usage(format!("cannot start: {error}"))),
    };
    match served {
        Ok(()) => Exit::Fine,
        Err(failure) => {
            // Nobody may be there to read it.
            let _ = writeln!(std::io::stderr(), "error: {}", failure.message);
            failure.exit
        }
    }
}

async fn serve(args: &Args) -> Result<(), Failure> {
    let told = Arc::new(OnceLock::<Weak<Service>>::new());
    let (rules, file, watch) = args.rules({
        let told = told.clone();
        move |reload| {
            if let Some(service) = told.get().and_then(Weak::upgrade) {
                service.note_reload(&reload);
            }
        }
    })?;
    let set = rules.current();
    let (listen, tls) = (args.listen(&set), args.tls(&set)?);
    // First, so that nothing is changed on disk if somebody else serves here.
    let listener = bind(listen).map_err(|error| {
        Failure::usage(format!("cannot listen on {listen}: {error}; choose another with --listen"))
    })?;
    let address = listener.local_addr().unwrap_or(listen);
    let (store, kept) = args.store(&set)?;
    let admin_token = args.admin_token(&set)?;
    let service = Arc::new(Service::new(Parts {
        secret: Secret::new(admin_token.as_deref(), &args.place(&set))
            .ok_or_else(|| Failure::usage("the system has no randomness to sign with"))?,
        admin_token,
        rules,
        file,
        store,
        once: args.once()?,
        outstanding: Outstanding::new(args.reservation_ttl),
        workers: args.threads(),
        local: args.stand_in(&set),
    }));
    let _ = told.set(Arc::downgrade(&service));
    service.warn_of_permits();
    let workers = Workers::start(&service, args.max_connections)
        .map_err(|error| Failure::usage(format!("cannot start threads: {error}")))?;
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    greet(&service, address, tls.is_some());
    tokio::select! {
        () = workers.accept(&service, &listener, tls.as_ref()) => {}
        () = housekeep(&service, &workers) => {}
        () = signals.obey(&service, tls.as_ref()) => {}
    }
    // Those who ask whether to send requests hear it before the door is shut.
    service.stop();
    info!("stopping");
    let is_urgent = tokio::select! {
        () = sleep(args.drain_delay) => false,
        () = workers.accept(&service, &listener, tls.as_ref()) => false,
        () = signals.end() => true,
    };
    drop(listener);
    let patience = if is_urgent { Duration::ZERO } else { args.drain_timeout };
    let is_urgent = tokio::select! {
        () = workers.drain(patience) => is_urgent,
        () = signals.end() => true,
    };
    if is_urgent {
        warn!("told twice, so nobody was waited for");
    }
    drop(watch);
    if let Some(kept) = kept {
        kept.keeper.close().map_err(|error| Failure::usage(error.to_string()))?;
        info!("counts are saved");
    }
    info!("stopped");
    Ok(())
}

/// Listens, with room for many who come at once.
fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // What a process before this one left half closed is not in the way.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(4096)
}

/// Says where it listens, and what to try.
fn greet(service: &Service, address: SocketAddr, is_secure: bool) {
    let scheme = if is_secure { "https" } else { "http" };
    let rules = service.rules.current().rules().len();
    let words = match rules {
        0 => "no rules".to_owned(),
        1 => "1 rule".to_owned(),
        many => format!("{many} rules"),
    };
    let store = match service.store {
        AnyStore::Memory(_) => "in memory",
        AnyStore::Redis(_) => "on Redis",
    };
    let base = format!("{scheme}://{address}");
    let text = format!(
        "dashpot {}, {store}, {words}\nlistening on {base}\n\n  curl -i {base}/v1/check -d \
         '{{\"key\":\"alice\",\"limit\":\"10/s\"}}'\n\n",
        env!("CARGO_PKG_VERSION"),
    );
    // Whoever started it may not read it.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if !address.ip().is_loopback() && service.admin_token.is_none() {
        info!("there is no admin token: /v1/keys and /v1/rules answer to this machine only");
    }
}

/// Does what is to be done now and then, for ever.
async fn housekeep(service: &Shared, workers: &Workers) {
    let mut look = interval(LOOK);
    loop {
        look.tick().await;
        service.give_back_lapsed().await;
        service.counters.open_connections.store(workers.open() as u64, Ordering::Relaxed);
    }
}

/// What the system tells us.
struct Signals {
    hang_up: Signal,
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            hang_up: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    /// Reads files again when told to, until told to end.
    async fn obey(&mut self, service: &Shared, tls: Option<&Tls>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hang_up.recv() => {
                    let reading = service.clone();
                    // It tells itself what came of it.
                    let _ = tokio::task::spawn_blocking(move || drop(reading.reload())).await;
                    match tls.map(Tls::reload) {
                        Some(Err(wrong)) => error!("the last good certificate stays: {wrong}"),
                        Some(Ok(())) => info!("the certificate was read again"),
                        None => {}
                    }
                }
            }
        }
    }

    /// Waits to be told to end.
    async fn end(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}
