//! The rules that are kept among all that, and what their limits come to.

use crate::tally::Bound;

/// What those who share Redis keep to. `deadline` is what callers are promised.
pub(crate) const FLEET: &str = r#"
[store]
url = "STORE"
deadline = "50ms"
on_error = "deny"

[proxy]
upstream = "http://UPSTREAM"
connect_timeout = "1s"
response_timeout = "1s"

[[rule]]
name = "bucket"
match = { path = "/bucket" }
by = ["header:x-key"]
limits = ["20/s burst 10"]

[[rule]]
name = "log"
match = { path = "/log" }
by = ["header:x-key"]
limits = ["20/2s"]
algorithm = "sliding-log"

[[rule]]
name = "window"
match = { path = "/window" }
by = ["header:x-key"]
limits = ["30/3s"]
algorithm = "fixed-window"

[[rule]]
name = "sliding"
match = { path = "/sliding" }
by = ["header:x-key"]
limits = ["30/3s"]
algorithm = "sliding-window"

[[rule]]
name = "local"
match = { path = "/local" }
by = ["header:x-key"]
limits = ["6/s burst 6"]
on_store_error = "local"

[[rule]]
name = "leased"
match = { path = "/leased" }
by = ["header:x-key"]
limits = ["80/s burst 80"]
consistency = "leased"

[[rule]]
name = "each"
match = { path = "/both" }
by = ["header:x-key"]
limits = ["10/s", "600/min burst 30"]

[[rule]]
name = "everybody"
match = { path = "/both" }
limits = ["15/s"]

[[rule]]
name = "queue"
match = { path = "/queue" }
by = ["header:x-key"]
limits = ["20/s"]
algorithm = "leaky-bucket"
queue = 5

[[rule]]
name = "hour"
match = { path = "/hour" }
by = ["header:x-key"]
limits = ["5/h"]

[[rule]]
name = "hour-log"
match = { path = "/hour-log" }
by = ["header:x-key"]
limits = ["5/h"]
algorithm = "sliding-log"

[[rule]]
name = "year"
match = { path = "/year" }
by = ["header:x-key"]
limits = ["5/year"]
algorithm = "fixed-window"

[[rule]]
name = "grpc"
match = { fact = { domain = "grpc" } }
by = ["fact:who"]
limits = ["20/s burst 10"]

[[rule]]
name = "permits"
match = { path = "/permits" }
by = ["header:x-key"]
limits = ["4 concurrent"]

[[rule]]
name = "crowd"
match = { path = "/crowd" }
by = ["header:x-key"]
limits = ["5/s"]

[[rule]]
name = "polite"
match = { path = "/polite" }
by = ["header:x-key"]
limits = ["10/s burst 5"]

[[rule]]
name = "probe"
match = { path = "/probe" }
by = ["header:x-key"]
limits = ["10/s"]
"#;

/// Keys that there may be in memory: as many are made up within seconds.
pub(crate) const MAX_KEYS: f64 = 10_000.0;

/// What the one in memory keeps to, which remembers on disk.
pub(crate) const ALONE: &str = r#"
[memory]
max_keys = 10_000

[[rule]]
name = "alone"
match = { path = "/alone" }
by = ["header:x-key"]
limits = ["20/s burst 10"]

[[rule]]
name = "quota"
match = { path = "/quota" }
by = ["header:x-key"]
limits = ["40/year"]
algorithm = "fixed-window"
"#;

/// Instances that share Redis.
pub(crate) const INSTANCES: f64 = 3.0;

/// One limit, and how it is asked about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    /// What any interval may admit under one key.
    pub(crate) bound: Bound,
    /// Calls a second that each door gets: more than may pass, together.
    pub(crate) calls: f64,
    /// How long an answer may take by itself, in seconds.
    pub(crate) waits: f64,
    pub(crate) local: bool,
    /// The share of its rate that is let pass at least, whatever is broken.
    pub(crate) served: f64,
}

/// The capacity of those whose bound is another one.
pub(crate) const UNBOUNDED: f64 = 1e9;

const fn limit(name: &'static str, capacity: f64, per_second: f64, calls: f64) -> Limit {
    let bound = Bound { capacity, per_second };
    Limit { name, bound, calls, waits: 0.0, local: false, served: 0.3 }
}

/// By rules, at every door of the fleet. A window of L may admit L at its end and L after it, and its rate on
/// the whole; a log L in any time of its length.
pub(crate) const BY_RULES: [Limit; 6] = [
    limit("bucket", 10.0, 20.0, 15.0),
    limit("log", 20.0, 10.0, 8.0),
    limit("window", 60.0, 10.0, 8.0),
    limit("sliding", 60.0, 10.0, 8.0),
    Limit { local: true, ..limit("local", 6.0, 6.0, 18.0) },
    limit("leased", 80.0, 80.0, 45.0),
];

/// Two rules on each call: by key, and all together.
pub(crate) const EACH: Limit = limit("each", 10.0, 10.0, 3.0);
pub(crate) const EVERYBODY: Limit = limit("everybody", 15.0, 15.0, 3.0);

/// What Redis is to remember for longer than it all lasts, of one caller after another.
pub(crate) const LONG: [Limit; 3] = [
    Limit { served: 0.0, ..limit("hour", 5.0, 5.0 / 3600.0, 3.0) },
    Limit { served: 0.0, ..limit("hour-log", 5.0, 5.0 / 3600.0, 3.0) },
    Limit { served: 0.0, ..limit("year", 5.0, 0.0, 3.0) },
];

/// Held for a moment and given back: what is asked for a second says nothing about it.
pub(crate) const PERMITS: Limit = limit("permits", UNBOUNDED, 0.0, 4.0);
pub(crate) const PERMITS_AT_ONCE: u32 = 4;

/// At the gateway alone, which waits.
pub(crate) const QUEUE: Limit = Limit { waits: 0.25, ..limit("queue", 6.0, 20.0, 40.0) };
/// At the gateway alone, by two callers with manners, who wait for longer than trouble lasts.
pub(crate) const POLITE: Limit = Limit { served: 0.2, ..limit("polite", 5.0, 10.0, 0.0) };

/// Made up on the spot: as JSON, and as `CL.THROTTLE`.
pub(crate) const AD_HOC: Limit = limit("ad-hoc", 5.0, 15.0, 12.0);
pub(crate) const THROTTLE: Limit = limit("throttle", 10.0, 20.0, 15.0);
/// As Envoy asks.
pub(crate) const GRPC: Limit = limit("grpc", 10.0, 20.0, 15.0);

/// Callers who come once and never again, at those who live on: what is kept of each of them for ever would be seen.
pub(crate) const CROWD: Limit = limit("crowd", UNBOUNDED, 0.0, 100.0);

/// Alone, in memory.
pub(crate) const ALONE_BUCKET: Limit = limit("alone", 10.0, 20.0, 40.0);
/// Forty made-up keys a call, each once: the bound is of each, and never reached.
pub(crate) const FLOOD: Limit = limit("flood", UNBOUNDED, 0.0, 60.0);
pub(crate) const QUOTA: Limit = limit("quota", 40.0, 0.0, 20.0);
