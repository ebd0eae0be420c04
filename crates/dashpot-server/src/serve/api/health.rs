//! How the service is doing.

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Serialize;

use super::admin::admit;
use super::openapi::Documented;
use super::vitals::{AdaptiveRule, CapacityRule};
use super::{Answered, Call, Route, json, text};
use crate::seconds::Seconds;
use crate::serve::metrics::{self, Door};
use crate::serve::service::{Service, Shared};
use crate::serve::store::AnyStore;
use crate::serve::wrong::Wrong;

pub(crate) const HEALTHZ: Route = Route {
    method: Method::GET,
    path: "/healthz",
    door: Door::Other,
    handle: |_, _| Box::pin(async { text(StatusCode::OK, PLAIN, "ok\n".to_owned()) }),
    documented: || Documented::new("Whether it runs").gives_text(200, "It does", PLAIN),
};

pub(crate) const READYZ: Route = Route {
    method: Method::GET,
    path: "/readyz",
    door: Door::Other,
    handle: |service, _| Box::pin(async move { ready(service) }),
    documented: || {
        Documented::new("Whether to send it requests").gives_text(200, "Do", PLAIN).gives_text(
            503,
            "It is about to stop",
            PLAIN,
        )
    },
};

pub(crate) const METRICS: Route = Route {
    method: Method::GET,
    path: "/metrics",
    door: Door::Other,
    handle: |service, _| Box::pin(async move { told(service) }),
    documented: || {
        Documented::new("What Prometheus reads").gives_text(200, "The metrics", OPENMETRICS)
    },
};

pub(crate) const HEALTH: Route = Route {
    method: Method::GET,
    path: "/v1/health",
    door: Door::Admin,
    handle: |service, call| Box::pin(async move { health(service, call) }),
    documented: || {
        Documented::new("How the store and the memory are doing").gives::<Health>(200, "So").admin()
    },
};

const PLAIN: &str = "text/plain; charset=utf-8";
const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

fn ready(service: &Shared) -> Answered {
    if service.is_stopping() {
        return text(StatusCode::SERVICE_UNAVAILABLE, PLAIN, "stopping\n".to_owned());
    }
    text(StatusCode::OK, PLAIN, "ready\n".to_owned())
}

fn told(service: &Shared) -> Answered {
    let told = metrics::text(service)
        .map_err(|error| Wrong::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
    text(StatusCode::OK, OPENMETRICS, told)
}

/// How the service is doing.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Health {
    version: &'static str,
    stopping: bool,
    /// `memory` or `redis`.
    store: &'static str,
    /// Whether the store answers.
    up: bool,
    /// How many instances share it, as far as is known.
    instances: u64,
    /// How many keys are leased, or counted here.
    leased_keys: usize,
    servers: Vec<Server>,
    memory: Memory,
    /// Reservations with permits that are not settled.
    reservations: usize,
    /// The rules that adapt.
    adaptive: Vec<AdaptiveRule>,
    /// The rules with a capacity, where requests are served.
    capacity: Vec<CapacityRule>,
}

/// A server of the store.
#[derive(Debug, Serialize, JsonSchema)]
struct Server {
    address: String,
    up: bool,
    reason: Option<String>,
    late: u64,
    failed: u64,
    refused: u64,
    outages: u64,
    down_seconds: Seconds,
}

/// What is kept in memory; with a store on Redis, while that does not answer.
#[derive(Debug, Serialize, JsonSchema)]
struct Memory {
    keys: u64,
    max_keys: u64,
    cells: u64,
    bytes: u64,
    reclaimed: u64,
    overflowed: u64,
}

fn health(service: &Shared, call: &Call) -> Answered {
    admit(service, call)?;
    json(StatusCode::OK, &Health::of(service))
}

impl Health {
    /// Nothing that only administrators are told.
    pub(super) fn keep_to_ourselves(&mut self) {
        self.servers.clear();
    }

    pub(super) fn of(service: &Service) -> Self {
        let (usage, health) = match &service.store {
            AnyStore::Memory(store) => (store.usage(), None),
            AnyStore::Redis(store) => (service.local.usage(), Some(store.health())),
        };
        let server = |server: &dashpot_redis::ServerHealth| Server {
            address: server.address.clone(),
            up: server.is_up,
            reason: server.reason.clone(),
            late: server.late,
            failed: server.failed,
            refused: server.refused,
            outages: server.outages,
            down_seconds: Seconds(server.down_for),
        };
        let rules = service.rules.current();
        Self {
            version: env!("CARGO_PKG_VERSION"),
            stopping: service.is_stopping(),
            store: service.store.name(),
            up: health.as_ref().is_none_or(dashpot_redis::Health::is_up),
            instances: health.as_ref().map_or(1, |health| health.instances.get()),
            leased_keys: health.as_ref().map_or(0, |health| health.leased_keys),
            servers: health.iter().flat_map(|health| health.servers.iter().map(server)).collect(),
            memory: Memory {
                keys: usage.keys,
                max_keys: usage.max_keys,
                cells: usage.cells,
                bytes: usage.bytes,
                reclaimed: usage.reclaimed,
                overflowed: usage.overflowed,
            },
            reservations: service.outstanding.len(),
            adaptive: AdaptiveRule::all(&rules),
            capacity: if service.gateway.is_some() {
                CapacityRule::all(&rules)
            } else {
                Vec::new()
            },
        }
    }
}
