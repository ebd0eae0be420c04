//! `dashpot serve`: the decision service.

pub(crate) mod api;
mod connection;
pub(crate) mod envoy;
mod limits;
mod listen;
mod lively;
mod log;
mod metrics;
mod outstanding;
mod question;
mod received;
mod reservation;
mod resp;
mod scarcest;
mod secret;
mod service;
mod settings;
mod store;
mod streams;
mod text;
mod tls;
mod top;
mod wrong;

use std::io::Write;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use dashpot_rules::Listen;
use tokio::net::TcpSocket;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{interval, sleep};
use tracing::{error, info, warn};

use crate::Exit;
use connection::Protocol;
use listen::{Listening, Workers};
use outstanding::Outstanding;
use resp::Resp;
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
    let envoy = args.envoy(&set)?;
    let tls = args.tls(&set)?;
    // First, so that nothing is changed on disk if somebody else serves here.
    let mut doors = vec![bind(args.listen(&set), Protocol::Http, "choose another with --listen")?];
    if let Listen::At(address) = args.grpc_listen(&set) {
        let fix = "choose another with --grpc-listen, or do without: --grpc-listen off";
        doors.push(bind(address, Protocol::Grpc, fix)?);
    }
    if let Listen::At(address) = args.resp_listen(&set) {
        let fix = "choose another with --resp-listen, or do without: --resp-listen off";
        doors.push(bind(address, Protocol::Resp, fix)?);
    }
    // Without the door, nobody says a password.
    let has_resp = doors.iter().any(|door| door.protocol == Protocol::Resp);
    let resp = if has_resp { args.resp(&set)? } else { Resp::new(None) };
    let (store, kept) = args.store(&set)?;
    let admin_token = args.admin_token(&set)?;
    let service = Arc::new(Service::new(Parts {
        secret: Secret::new(admin_token.as_deref(), &args.place(&set))
            .ok_or_else(|| Failure::usage("the system has no randomness to sign with"))?,
        admin_token,
        resp,
        rules,
        file,
        envoy,
        store,
        once: args.once()?,
        outstanding: Outstanding::new(args.reservation_ttl),
        workers: args.threads(),
        local: args.stand_in(&set),
    }));
    let _ = told.set(Arc::downgrade(&service));
    service.warn_of_permits();
    service.warn_of_envoy();
    let reading = service.clone();
    let envoy_watch = service.envoy.watch(move || drop(reading.reload_envoy()));
    let envoy_watch = envoy_watch.map_err(|error| Failure::usage(error.to_string()))?;
    let workers = Workers::start(&service, args.max_connections)
        .map_err(|error| Failure::usage(format!("cannot start threads: {error}")))?;
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    service.grpc.start().await;
    greet(&service, &doors, tls.is_some());
    tokio::select! {
        () = workers.accept(&service, &doors, tls.as_ref()) => {}
        () = housekeep(&service, &workers) => {}
        () = signals.obey(&service, tls.as_ref()) => {}
    }
    // Those who ask whether to send requests hear it before the door is shut.
    service.stop();
    service.grpc.stop().await;
    info!("stopping");
    let is_urgent = tokio::select! {
        () = sleep(args.drain_delay) => false,
        () = workers.accept(&service, &doors, tls.as_ref()) => false,
        () = signals.end() => true,
    };
    drop(doors);
    service.grpc.hang_up().await;
    let patience = if is_urgent { Duration::ZERO } else { args.drain_timeout };
    let is_urgent = tokio::select! {
        () = workers.drain(patience) => is_urgent,
        () = signals.end() => true,
    };
    if is_urgent {
        warn!("told twice, so nobody was waited for");
    }
    drop((watch, envoy_watch));
    if let Some(kept) = kept {
        kept.keeper.close().map_err(|error| Failure::usage(error.to_string()))?;
        info!("counts are saved");
    }
    info!("stopped");
    Ok(())
}

/// Listens, with room for many who come at once. `fix` is what to do if that cannot be.
fn bind(address: SocketAddr, protocol: Protocol, fix: &str) -> Result<Listening, Failure> {
    let listen = || {
        let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
        // What a process before this one left half closed is not in the way.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(4096)
    };
    let wrong = |error: std::io::Error| {
        Failure::usage(format!("cannot listen on {address}: {error}; {fix}"))
    };
    let listener = listen().map_err(wrong)?;
    let address = listener.local_addr().map_err(wrong)?;
    Ok(Listening { listener, address, protocol })
}

/// Says where it listens, and what to try.
fn greet(service: &Service, doors: &[Listening], is_secure: bool) {
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
    let mut text = format!("dashpot {}, {store}, {words}", env!("CARGO_PKG_VERSION"));
    if service.envoy.place().is_some() {
        let limits = service.envoy.current().rules().len();
        let words = if limits == 1 { "limit" } else { "limits" };
        text.push_str(&format!(", {limits} {words} of Envoy's YAML"));
    }
    text.push('\n');
    for door in doors {
        text.push_str(&match door.protocol {
            Protocol::Http => format!("listening on {scheme}://{}\n", door.address),
            Protocol::Grpc => format!("gRPC on {}\n", door.address),
            Protocol::Resp => format!("RESP on {}\n", door.address),
        });
    }
    let http = doors.iter().find(|door| door.protocol == Protocol::Http);
    let base = http.map_or(String::new(), |http| format!("{scheme}://{}", http.address));
    text.push_str(&format!(
        "\n  curl -i {base}/v1/check -d \
         '{{\"key\":\"alice\",\"limit\":\"10/s\"}}'\n\n",
    ));
    // Whoever started it may not read it.
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if http.is_some_and(|http| !http.address.ip().is_loopback()) && service.admin_token.is_none() {
        info!("there is no admin token: /v1/keys and /v1/rules answer to this machine only");
    }
    let resp = doors.iter().find(|door| door.protocol == Protocol::Resp);
    if resp.is_some_and(|resp| !resp.address.ip().is_loopback()) && !service.resp.has_password() {
        warn!("Redis's protocol is served to others without a password: see --resp-password-file");
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
                    let read = move || {
                        drop(reading.reload());
                        drop(reading.reload_envoy());
                    };
                    let _ = tokio::task::spawn_blocking(read).await;
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
