//! `dashpot serve`: the decision service.

pub(crate) mod api;
pub(crate) mod body;
pub(crate) mod common;
pub(crate) mod connection;
pub(crate) mod envoy;
mod greet;
mod limits;
mod listen;
mod lively;
pub(crate) mod log;
pub(crate) mod metrics;
mod outstanding;
pub(crate) mod question;
mod received;
mod reservation;
pub(crate) mod resp;
mod secret;
mod service;
mod settings;
pub(crate) mod store;
mod streams;
pub(crate) mod text;
pub(crate) mod tls;
pub(crate) mod top;
pub(crate) mod wrong;

use std::future::Future;
use std::io::Write;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use dashpot::Key;
use dashpot_rules::{Listen, LiveRules, LoadError, Reload, Rule, Watch};
use tokio::net::TcpSocket;
use tokio::runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{interval, sleep};
use tracing::{error, info, warn};

use crate::Exit;
use crate::proxy::{self, Gateway};
use common::{Common, Failure};
use connection::Protocol;
use envoy::LiveLimits;
use greet::greet;
use listen::{Listening, Workers};
use outstanding::Outstanding;
use resp::Resp;
use secret::Secret;
use service::{Parts, Service, Shared};
use tls::Tls;

pub(crate) use settings::Args;

/// How often permits are looked for whose time is over.
const LOOK: Duration = Duration::from_secs(1);

pub(crate) fn run(args: &Args) -> Exit {
    run_with(&args.common, serve(args))
}

/// Runs until it is told to end. Tells how the command ends.
pub(crate) fn run_with(
    common: &Common,
    serving: impl Future<Output = Result<(), Failure>>,
) -> Exit {
    log::start(common.log_format, common.log_level);
    // One file for each connection, and the usual limit is low.
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    let runtime = runtime::Builder::new_current_thread().enable_all().build();
    let served = match runtime {
        Ok(runtime) => runtime.block_on(serving),
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
    let told = Told::default();
    let (rules, file, watch) = args.common.rules(told.of_reloads())?;
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
    if tls.is_some() {
        doors.iter_mut().for_each(|door| door.is_secure = true);
    }
    let prepared = Prepared { told, rules, file, watch, envoy, resp, doors, tls, proxy: None };
    run_until_told(&args.common, prepared).await
}

/// The service, once there is one, for who has to tell it something.
#[derive(Clone, Default)]
pub(crate) struct Told(Arc<OnceLock<Weak<Service>>>);

impl Told {
    pub(crate) fn service(&self) -> Option<Shared> {
        self.0.get().and_then(Weak::upgrade)
    }

    /// Tells it that rules were read again.
    pub(crate) fn of_reloads(&self) -> impl FnMut(Result<Reload, LoadError>) + Send + 'static {
        let told = self.clone();
        move |reload| {
            if let Some(service) = told.service() {
                service.note_reload(&reload);
            }
        }
    }
}

/// What a command that serves has prepared.
pub(crate) struct Prepared {
    pub(crate) told: Told,
    pub(crate) rules: LiveRules,
    pub(crate) file: Option<PathBuf>,
    pub(crate) watch: Option<Watch>,
    pub(crate) envoy: LiveLimits,
    pub(crate) resp: Resp,
    pub(crate) doors: Vec<Listening>,
    pub(crate) tls: Option<Tls>,
    pub(crate) proxy: Option<(proxy::Settings, Option<proxy::Log>)>,
}

/// Serves at all doors until it is told to end, and ends in order.
pub(crate) async fn run_until_told(common: &Common, prepared: Prepared) -> Result<(), Failure> {
    let Prepared { told, rules, file, watch, envoy, resp, doors, tls, proxy } = prepared;
    let set = rules.current();
    let (store, kept) = common.store(&set)?;
    let admin_token = common.admin_token(&set)?;
    let local = common.stand_in(&set);
    let gateway = proxy.map(|(settings, log)| {
        let told = told.clone();
        let on_denied = move |rule: &Rule, key: Key<'_>| {
            if let Some(service) = told.service() {
                service.note_one(rule.name(), key);
            }
        };
        let (rules, store, local) = (rules.clone(), store.clone(), local.clone());
        Arc::new(Gateway::new(settings, log, rules, store, local, on_denied))
    });
    let service = Arc::new(Service::new(Parts {
        secret: Secret::new(admin_token.as_deref(), &common.place(&set))
            .ok_or_else(|| Failure::usage("the system has no randomness to sign with"))?,
        admin_token,
        resp,
        rules,
        file,
        envoy,
        store,
        once: common.once()?,
        outstanding: Outstanding::new(common.reservation_ttl),
        workers: common.threads(),
        local,
        gateway,
    }));
    let _ = told.0.set(Arc::downgrade(&service));
    service.warn_of_permits();
    service.warn_of_envoy();
    let reading = service.clone();
    let envoy_watch = service.envoy.watch(move || drop(reading.reload_envoy()));
    let envoy_watch = envoy_watch.map_err(|error| Failure::usage(error.to_string()))?;
    let workers = Workers::start(&service, common.max_connections)
        .map_err(|error| Failure::usage(format!("cannot start threads: {error}")))?;
    let mut signals = Signals::new().map_err(|error| Failure::usage(error.to_string()))?;
    service.grpc.start().await;
    greet(&service, &doors);
    tokio::select! {
        () = workers.accept(&service, &doors, tls.as_ref()) => {}
        () = housekeep(&service) => {}
        () = signals.obey(&service, tls.as_ref()) => {}
    }
    // Those who ask whether to send requests hear it before the door is shut.
    service.stop();
    service.grpc.stop().await;
    info!("stopping");
    let is_urgent = tokio::select! {
        () = sleep(common.drain_delay) => false,
        () = workers.accept(&service, &doors, tls.as_ref()) => false,
        () = signals.end() => true,
    };
    drop(doors);
    service.grpc.hang_up().await;
    let patience = if is_urgent { Duration::ZERO } else { common.drain_timeout };
    let is_urgent = tokio::select! {
        () = workers.drain(patience) => is_urgent,
        () = signals.end() => true,
    };
    if is_urgent {
        warn!("told twice, so nobody was waited for");
    }
    drop((watch, envoy_watch));
    if let (store::AnyStore::Redis(store), false) = (&service.store, is_urgent) {
        // Others can have it at once.
        store.release().await;
    }
    if let Some(kept) = kept {
        kept.keeper.close().map_err(|error| Failure::usage(error.to_string()))?;
        info!("counts are saved");
    }
    info!("stopped");
    Ok(())
}

/// Listens, with room for many who come at once. `fix` is what to do if that cannot be.
pub(crate) fn bind(
    address: SocketAddr,
    protocol: Protocol,
    fix: &str,
) -> Result<Listening, Failure> {
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
    Ok(Listening { listener, address, protocol, is_secure: false })
}

/// Does what is to be done now and then, for ever.
async fn housekeep(service: &Shared) {
    let mut look = interval(LOOK);
    loop {
        look.tick().await;
        service.give_back_lapsed().await;
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
