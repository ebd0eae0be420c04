//! What Prometheus hears. Labels are names of rules and doors, never of keys.

mod overload;

use std::fmt::{Debug, Error, Formatter, Result as FmtResult};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use dashpot_rules::{Rule, Tally};
use http::StatusCode;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::proxy::{Gateway, Log};
use crate::seconds::Seconds;
use crate::serve::service::Service;
use crate::serve::store::AnyStore;

/// What the rules that are made up on the spot are called. No rule of a file can be called so.
const AD_HOC: &str = "(ad-hoc)";
/// What those are called that come with a request of Envoy's.
pub(crate) const OVERRIDE: &str = "(override)";
/// What those are called that come with a `CL.THROTTLE`.
pub(crate) const THROTTLE: &str = "(throttle)";

/// Ways in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Check,
    Settle,
    ForwardAuth,
    Envoy,
    Resp,
    Proxy,
    Admin,
    Other,
}

impl Door {
    const ALL: [Self; 8] = [
        Self::Check,
        Self::Settle,
        Self::ForwardAuth,
        Self::Envoy,
        Self::Resp,
        Self::Proxy,
        Self::Admin,
        Self::Other,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Settle => "settle",
            Self::ForwardAuth => "forward-auth",
            Self::Envoy => "envoy",
            Self::Resp => "resp",
            Self::Proxy => "proxy",
            Self::Admin => "admin",
            Self::Other => "other",
        }
    }
}

/// Upper ends of the buckets of times, in microseconds.
const BUCKETS: [u64; 14] = [
    25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 1_000_000,
];

/// What one worker has answered. Workers have one each, so that none writes where another does.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Answered {
    doors: [DoorCounts; Door::ALL.len()],
}

#[derive(Debug, Default)]
struct DoorCounts {
    /// By the first digit of the status.
    statuses: [AtomicU64; 6],
    nanos: AtomicU64,
    buckets: [AtomicU64; BUCKETS.len() + 1],
}

impl Answered {
    pub(crate) fn count(&self, door: Door, status: StatusCode, took: Duration) {
        self.count_many(door, status, took, 1);
    }

    /// Counts so many that were answered together, and took so long each.
    pub(crate) fn count_many(&self, door: Door, status: StatusCode, took: Duration, many: u64) {
        let Some(counts) = self.doors.get(door as usize) else { return };
        let add = |count: Option<&AtomicU64>, much| {
            if let Some(count) = count {
                count.fetch_add(much, Ordering::Relaxed);
            }
        };
        add(counts.statuses.get(usize::from(status.as_u16() / 100)), many);
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        add(Some(&counts.nanos), nanos.saturating_mul(many));
        let micros = took.as_micros();
        let bucket = BUCKETS.iter().position(|end| micros <= u128::from(*end));
        add(counts.buckets.get(bucket.unwrap_or(BUCKETS.len())), many);
    }

    /// How many were answered at a door.
    pub(crate) fn at(&self, door: Door) -> u64 {
        let counts = self.doors.get(door as usize).into_iter().flat_map(|counts| &counts.statuses);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }
}

/// Counts that belong to no rule and no worker.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Limits that were made up on the spot.
    pub(crate) ad_hoc: Tally,
    /// Limits that came with a request of Envoy's.
    pub(crate) overrides: Arc<Tally>,
    /// Limits that came with a `CL.THROTTLE`.
    pub(crate) throttle: Tally,
    pub(crate) reloads: AtomicU64,
    pub(crate) failed_reloads: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) open_connections: AtomicU64,
    pub(crate) lapsed: AtomicU64,
}

/// Everything there is to tell, as Prometheus reads it.
pub(crate) fn text(service: &Arc<Service>) -> Result<String, Error> {
    let mut registry = Registry::with_prefix("dashpot");
    registry.register_collector(Box::new(Told(Arc::downgrade(service))));
    let mut text = String::with_capacity(8 * 1024);
    encode(&mut text, &registry)?;
    Ok(text)
}

/// What came of each rule, and of limits that are in none.
pub(crate) fn each_tally(service: &Service, mut each: impl FnMut(&str, &Tally)) {
    let (rules, envoy) = (service.rules.current(), service.envoy.current());
    let counters = &service.counters;
    let others = [
        (AD_HOC, &counters.ad_hoc),
        (OVERRIDE, &*counters.overrides),
        (THROTTLE, &counters.throttle),
    ];
    let tallies = rules.rules().iter().map(|rule: &Rule| (rule.name(), rule.tally()));
    // A rule of the file may be called like one of the YAML, and no name comes twice.
    let is_other = |name: &str| rules.rules().iter().all(|rule| rule.name() != name);
    let envoy = envoy.tallies().filter(|(name, _)| is_other(name));
    for (rule, tally) in tallies.chain(envoy).chain(others) {
        each(rule, tally);
    }
}

struct Told(Weak<Service>);

impl Debug for Told {
    fn fmt(&self, f: &mut Formatter<'_>) -> FmtResult {
        f.write_str("Told")
    }
}

impl Collector for Told {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> FmtResult {
        let Some(service) = self.0.upgrade() else { return Ok(()) };
        let mut out = Out(encoder);
        out.rules(&service)?;
        out.overload(&service)?;
        out.doors(&service)?;
        out.process(&service)?;
        if let Some(gateway) = &service.gateway {
            out.gateway(gateway)?;
        }
        match &service.store {
            AnyStore::Memory(_) => {}
            AnyStore::Redis(store) => out.redis(&store.health())?,
        }
        out.memory(&service)
    }
}

struct Out<'e>(DescriptorEncoder<'e>);

/// What a rule's tally says, and what that is called.
type RuleCount = (&'static str, &'static str, fn(&Tally) -> u64);

const RULE_COUNTS: [RuleCount; 5] = [
    ("rule_allowed", "Requests that a rule let pass", Tally::allowed),
    (
        "rule_near_limit",
        "Requests that a rule let pass, and left less than a fifth of a limit",
        Tally::near_limit,
    ),
    ("rule_denied", "Requests that a rule denied", Tally::denied),
    (
        "rule_shadow_denied",
        "Requests that a rule would have denied, were it enforced",
        Tally::would_have_denied,
    ),
    ("rule_degraded", "Requests that a rule judged without the store", Tally::degraded),
];

impl Out<'_> {
    fn counter(&mut self, name: &str, help: &str, value: u64) -> FmtResult {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        metric.encode_counter::<NoLabelSet, u64, u64>(&value, None)
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) -> FmtResult {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        metric.encode_gauge(&value)
    }

    /// A counter for each of several.
    fn counters<'l>(
        &mut self,
        (name, help, label): (&str, &str, &str),
        values: impl Iterator<Item = (&'l str, f64)>,
    ) -> FmtResult {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (of, value) in values {
            let labels = [(label, of)];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, f64, u64>(&value, None)?;
        }
        Ok(())
    }

    fn rules(&mut self, service: &Service) -> FmtResult {
        for (name, help, value) in RULE_COUNTS {
            let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
            let mut told = Ok(());
            each_tally(service, |rule, tally| {
                let labels = [("rule", rule)];
                let told_one = metric.encode_family(&labels).and_then(|mut one| {
                    one.encode_counter::<NoLabelSet, u64, u64>(&value(tally), None)
                });
                told = told.and(told_one);
            });
            told?;
        }
        Ok(())
    }

    fn doors(&mut self, service: &Service) -> FmtResult {
        let sum = |count: &dyn Fn(&Answered) -> Option<&AtomicU64>| -> u64 {
            let counts = service.answered.iter().filter_map(count);
            counts.map(|count| count.load(Ordering::Relaxed)).sum()
        };
        let help = "Answers by door and class of status";
        let mut metric =
            self.0.encode_descriptor("http_answers", help, None, MetricType::Counter)?;
        for door in Door::ALL {
            for (class, word) in (2_usize..).zip(["2xx", "3xx", "4xx", "5xx"]) {
                let count = sum(&|one| one.doors.get(door as usize)?.statuses.get(class));
                let labels = [("door", door.name()), ("status", word)];
                let mut one = metric.encode_family(&labels)?;
                one.encode_counter::<NoLabelSet, u64, u64>(&count, None)?;
            }
        }
        let help = "How long an answer took, from the end of the request's head";
        let mut metric =
            self.0.encode_descriptor("http_seconds", help, None, MetricType::Histogram)?;
        for door in Door::ALL {
            let nanos = sum(&|one| Some(&one.doors.get(door as usize)?.nanos));
            let mut buckets = Vec::new();
            let ends = BUCKETS.iter().map(|end| Seconds(Duration::from_micros(*end)).as_f64());
            for (bucket, end) in ends.chain([f64::INFINITY]).enumerate() {
                buckets.push((end, sum(&|one| one.doors.get(door as usize)?.buckets.get(bucket))));
            }
            let count = buckets.iter().map(|(_, count)| count).sum();
            let labels = [("door", door.name())];
            let mut one = metric.encode_family(&labels)?;
            let sum = Seconds(Duration::from_nanos(nanos)).as_f64();
            one.encode_histogram::<NoLabelSet>(sum, count, &buckets, None)?;
        }
        Ok(())
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
    fn process(&mut self, service: &Service) -> FmtResult {
        let counters = &service.counters;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.gauge(
            "rules_generation",
            "How many sets of rules there have been",
            service.rules.generation() as f64,
        )?;
        self.counter("reloads", "Times that rules were read again", load(&counters.reloads))?;
        self.counter(
            "failed_reloads",
            "Times that rules were wrong and the last good ones stayed",
            load(&counters.failed_reloads),
        )?;
        self.counter("connections", "Connections that were accepted", load(&counters.connections))?;
        self.gauge(
            "open_connections",
            "Connections that are open",
            load(&counters.open_connections) as f64,
        )?;
        self.gauge(
            "reservations_with_permits",
            "Reservations with permits that are not settled",
            service.outstanding.len() as f64,
        )?;
        self.counter(
            "lapsed_reservations",
            "Reservations whose permits were given back because nobody settled them in time",
            load(&counters.lapsed),
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
    fn gateway(&mut self, gateway: &Gateway) -> FmtResult {
        let counters = &gateway.counters;
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        self.counter(
            "upstream_connections",
            "Connections to the backend that were made",
            load(&counters.connections),
        )?;
        self.counters(
            ("upstream_failures", "Requests without an answer of the backend's", "reason"),
            counters.failures().into_iter().map(|(reason, count)| (reason, count as f64)),
        )?;
        self.counter(
            "upstream_retries",
            "Requests that were sent again, over another connection",
            load(&counters.retries),
        )?;
        self.gauge("tunnels", "Connections that were upgraded", load(&counters.tunnels) as f64)?;
        self.gauge(
            "queued",
            "Requests that wait for their turn in a queue",
            gateway.layer.queued() as f64,
        )?;
        let dropped = gateway.log.as_ref().map_or(0, Log::dropped);
        self.counter("access_log_dropped", "Lines that nobody could read in time", dropped)
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
    fn memory(&mut self, service: &Service) -> FmtResult {
        let usage = match &service.store {
            AnyStore::Memory(store) => store.usage(),
            // What is counted here while Redis does not answer.
            AnyStore::Redis(_) => service.local.usage(),
        };
        self.gauge("memory_keys", "Keys in memory", usage.keys as f64)?;
        self.gauge("memory_max_keys", "Keys there may be in memory", usage.max_keys as f64)?;
        self.gauge("memory_cells", "Overflow cells in use", usage.cells as f64)?;
        self.gauge("memory_bytes", "Bytes in pages of keys", usage.bytes as f64)?;
        self.counter(
            "memory_reclaimed",
            "Keys as good as new that made room for others",
            usage.reclaimed,
        )?;
        self.counter(
            "memory_overflowed",
            "Times that a key found no room and was counted in an overflow cell",
            usage.overflowed,
        )
    }

    #[expect(clippy::cast_precision_loss, reason = "nobody counts that far")]
    fn redis(&mut self, health: &dashpot_redis::Health) -> FmtResult {
        self.gauge(
            "store_instances",
            "Instances that share the store",
            health.instances.get() as f64,
        )?;
        self.gauge(
            "store_leased_keys",
            "Keys that are leased or counted here",
            health.leased_keys as f64,
        )?;
        let help = "Calls about keys that are leased or counted here";
        self.counter("store_lease_calls", help, health.lease_calls)?;
        let help = "Whether a server is asked";
        let mut metric = self.0.encode_descriptor("store_up", help, None, MetricType::Gauge)?;
        for server in &health.servers {
            let labels = [("server", server.address.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&u64::from(server.is_up))?;
        }
        let each = |value: fn(&dashpot_redis::ServerHealth) -> f64| {
            health.servers.iter().map(move |server| (server.address.as_str(), value(server)))
        };
        self.counters(
            ("store_late", "Calls that were not answered in time", "server"),
            each(|one| one.late as f64),
        )?;
        self.counters(
            ("store_failed", "Calls that failed with the connection", "server"),
            each(|one| one.failed as f64),
        )?;
        self.counters(
            ("store_refused", "Calls that were not tried, because the server was down", "server"),
            each(|one| one.refused as f64),
        )?;
        self.counters(
            ("store_outages", "Times that a server was down", "server"),
            each(|one| one.outages as f64),
        )?;
        self.counters(
            ("store_down_seconds", "How long a server was down", "server"),
            each(|one| Seconds(one.down_for).as_f64()),
        )
    }
}
