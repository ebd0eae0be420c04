//! What all workers share.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use dashpot::{
    Check, Cost, Decision, Key, Limiter, MemoryStore, Policy, Quota, Reservation, Store, StoreError,
};
use dashpot_rules::{LiveRules, LoadError, Plan, Reload, Ruling, Trust, decide_by_share};
use tracing::{debug, error, info, warn};

use crate::proxy::Gateway;
use crate::serve::api::events::Watchers;
use crate::serve::envoy::{LiveLimits, Others, Problems};
use crate::serve::limits::Limits;
use crate::serve::metrics::{Answered, Counters};
use crate::serve::outstanding::Outstanding;
use crate::serve::reservation::Taken;
use crate::serve::resp::Resp;
use crate::serve::secret::Secret;
use crate::serve::store::AnyStore;
use crate::serve::top::Top;

/// What all workers share.
pub(crate) struct Service {
    pub(crate) rules: LiveRules,
    /// The file they are read from.
    pub(crate) file: Option<PathBuf>,
    /// What Envoy's rate limit service is told by.
    pub(crate) envoy: LiveLimits,
    /// Health checking and reflection.
    pub(crate) grpc: Others,
    pub(crate) store: AnyStore,
    /// Counts while the store does not answer.
    pub(crate) local: Arc<MemoryStore>,
    /// What forwards, if something does.
    pub(crate) gateway: Option<Arc<Gateway>>,
    pub(crate) limits: Limits,
    pub(crate) outstanding: Outstanding,
    pub(crate) secret: Secret,
    /// Lets each reservation be settled once.
    pub(crate) once: Policy,
    pub(crate) admin_token: Option<String>,
    /// What clients of Redis's are told by.
    pub(crate) resp: Resp,
    /// Who may ask as a gateway if the rules trust nobody: the same machine.
    pub(crate) loopback: Trust,
    /// Tells this process from all others.
    pub(crate) process: u64,
    pub(crate) counters: Counters,
    pub(crate) answered: Vec<Answered>,
    pub(crate) top: Top,
    /// So many denials are logged.
    denial_log: Limiter,
    /// So many questions about nothing.
    unknown_log: Limiter,
    stopping: AtomicBool,
    /// When it began to serve.
    pub(crate) began: Instant,
    /// Who is told how it is going.
    pub(crate) watchers: Watchers,
    /// Held by who simulates: one at a time is enough.
    pub(crate) simulating: tokio::sync::Mutex<()>,
}

/// The parts that a service is made of.
pub(crate) struct Parts {
    pub(crate) rules: LiveRules,
    pub(crate) file: Option<PathBuf>,
    pub(crate) envoy: LiveLimits,
    pub(crate) store: AnyStore,
    pub(crate) secret: Secret,
    pub(crate) local: Arc<MemoryStore>,
    pub(crate) gateway: Option<Arc<Gateway>>,
    pub(crate) once: Policy,
    pub(crate) outstanding: Outstanding,
    pub(crate) admin_token: Option<String>,
    pub(crate) resp: Resp,
    pub(crate) workers: usize,
}

impl Service {
    pub(crate) fn new(parts: Parts) -> Self {
        let loopback = ["127.0.0.0/8", "::1/128"];
        Self {
            limits: Limits::new(matches!(parts.store, AnyStore::Memory(_))),
            secret: parts.secret,
            once: parts.once,
            rules: parts.rules,
            file: parts.file,
            envoy: parts.envoy,
            grpc: Others::new(),
            store: parts.store,
            local: parts.local,
            gateway: parts.gateway,
            outstanding: parts.outstanding,
            admin_token: parts.admin_token,
            resp: parts.resp,
            loopback: Trust::Proxies(loopback.iter().filter_map(|net| net.parse().ok()).collect()),
            process: fastrand::u64(..),
            counters: Counters::default(),
            answered: (0..parts.workers).map(|_| Answered::default()).collect(),
            top: Top::new(),
            denial_log: Limiter::new(Quota::per_second(10)),
            unknown_log: Limiter::new(Quota::per_minute(1)),
            stopping: AtomicBool::new(false),
            began: Instant::now(),
            watchers: Watchers::default(),
            simulating: tokio::sync::Mutex::new(()),
        }
    }

    /// Whether it is about to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Asks the store, at once if it can.
    pub(crate) async fn decide<'r>(&self, plan: &Plan<'r>) -> Ruling<'r> {
        let mut ruling = Ruling::default();
        if !plan.decide_at_once(&self.store, &self.local, &mut ruling) {
            ruling = plan.decide(&self.store, &self.local).await;
        }
        ruling
    }

    /// Decides by what this process has counted itself, of which it may grant its share.
    pub(crate) fn decide_locally<'p>(
        &self,
        wholes: &[Check<'_, '_>],
        shares: &'p [Policy],
    ) -> Decision<'p> {
        let checks: Vec<Check<'p, '_>> = { shares.iter().zip(wholes) }
            .map(|(share, whole)| Check::new(share, whole.key).cost(whole.cost))
            .collect();
        decide_by_share(&self.local, &checks, wholes.iter().map(|whole| whole.policy))
    }

    /// Logs, now and then, that somebody asks about what nothing limits.
    pub(crate) fn note_unknown(&self, domain: &str) {
        if self.unknown_log.check("").is_allowed() {
            let domain: String = domain.chars().take(64).collect();
            warn!(
                domain,
                "nothing limits this domain: it is in no YAML, and no rule is about what was asked"
            );
        }
    }

    /// Counts and logs who was denied by rules.
    pub(crate) fn note_denied(&self, plan: &Plan<'_>, ruling: &Ruling<'_>) {
        for (rule, key) in plan.denied(ruling) {
            self.note_one(rule.name(), key);
        }
    }

    /// Counts and logs who was denied; by no rule, if it has no name.
    pub(crate) fn note_one(&self, rule: &str, key: Key<'_>) {
        self.note_times(rule, key, 1);
    }

    /// The same for who was denied so many times.
    pub(crate) fn note_times(&self, rule: &str, key: Key<'_>, times: u64) {
        self.top.count(rule, key.as_bytes(), times);
        // A flood of denials is not to become a flood of lines.
        if tracing::enabled!(tracing::Level::INFO) && self.denial_log.check("").is_allowed() {
            info!(rule, key = self.secret.hide(rule, key.as_bytes()), "denied");
        }
    }

    /// Reads the rules again.
    pub(crate) fn reload(&self) -> Option<Result<Reload, LoadError>> {
        let reload = self.rules.reload(self.file.as_ref()?);
        self.note_reload(&reload);
        Some(reload)
    }

    /// Counts and logs that rules were read again.
    pub(crate) fn note_reload(&self, reload: &Result<Reload, LoadError>) {
        match reload {
            Ok(reload) => {
                self.counters.reloads.fetch_add(1, Ordering::Relaxed);
                info!(generation = reload.generation, "the rules were read again");
                for change in &reload.changes {
                    let sections = ["[store]", "[memory]", "[serve]", "[proxy]"];
                    if sections.iter().any(|section| change.starts_with(section)) {
                        warn!("{change}: that takes a restart");
                    } else {
                        info!("{change}");
                    }
                }
                self.warn_of_permits();
            }
            Err(error) => {
                self.counters.failed_reloads.fetch_add(1, Ordering::Relaxed);
                error!("the rules cannot be read, and the last good ones stay: {error}");
            }
        }
    }

    /// Reads envoyproxy/ratelimit's YAML again.
    pub(crate) fn reload_envoy(&self) -> Result<(), Problems> {
        let reloaded = self.envoy.reload();
        match &reloaded {
            Ok(()) if self.envoy.place().is_some() => {
                self.counters.reloads.fetch_add(1, Ordering::Relaxed);
                info!("the YAML was read again");
                self.warn_of_envoy();
            }
            Ok(()) => {}
            Err(problems) => {
                self.counters.failed_reloads.fetch_add(1, Ordering::Relaxed);
                error!("the YAML cannot be read, and the last good one stays: {problems}");
            }
        }
        reloaded
    }

    /// Some of the YAML may be meant to do what it does not.
    pub(crate) fn warn_of_envoy(&self) {
        for advice in &self.envoy.current().advice {
            warn!("{advice}");
        }
    }

    /// Some rules cannot be kept behind a gateway that only asks.
    pub(crate) fn warn_of_permits(&self) {
        // The gateway sees every response.
        if self.gateway.is_some() {
            return;
        }
        for rule in self.rules.current().rules() {
            if *rule.settle() != dashpot_rules::Settle::Never {
                warn!(
                    rule = rule.name(),
                    "what this rule counts depends on the response, which /v1/forward-auth never sees: there it \
                     charges always, and limits no concurrency; ask /v1/check with \"reserve\", or use the layer"
                );
            }
            if rule.gate().is_some() {
                warn!(
                    rule = rule.name(),
                    "a capacity is for who serves requests: the service, which is only asked about them, leaves it out; use \
                     the gateway or the layer"
                );
            }
        }
    }

    /// Gives permits back that nobody settled in time.
    pub(crate) async fn give_back_lapsed(&self) {
        for taken in self.outstanding.lapsed() {
            // A clock that is set back is not to let it be settled once more.
            if self.is_first(&taken).await.is_ok_and(|is_first| !is_first) {
                continue;
            }
            self.counters.lapsed.fetch_add(1, Ordering::Relaxed);
            warn!("a reservation was not settled in time; its permits are given back");
            for part in taken.parts(self.process).filter(|part| part.is_permit()) {
                let Some(reservation) = part.reservation() else { continue };
                // What fails now, the store tries again itself.
                let _ = self.settle(&reservation, part.local, reservation.cost()).await;
            }
        }
    }

    /// Whether nobody has settled it before, here or elsewhere: the store lets each pass once.
    pub(crate) async fn is_first(&self, taken: &Taken) -> Result<bool, StoreError> {
        let id = taken.id.to_be_bytes();
        let once = [Check::new(&self.once, Key::new(&id))];
        if taken.is_local() {
            return Ok(self.local.decide_now(&once).is_allowed());
        }
        Ok(self.store.decide(&once).await?.is_allowed())
    }

    /// Settles what was taken: here, if the store did not answer then.
    pub(crate) async fn settle(
        &self,
        reservation: &Reservation,
        local: bool,
        used: Cost,
    ) -> Result<(), StoreError> {
        if local {
            self.local.settle_now(reservation, used);
            return Ok(());
        }
        let settled = self.store.settle(reservation, used).await;
        settled.map(drop).inspect_err(|error| debug!(%error, "could not settle"))
    }

    /// Whether an address is of this machine.
    pub(crate) fn is_here(address: IpAddr) -> bool {
        address.to_canonical().is_loopback()
    }
}

/// What all doors are handed.
pub(crate) type Shared = Arc<Service>;
