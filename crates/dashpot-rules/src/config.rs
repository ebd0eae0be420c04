//! A rule file as it is written. What it means is in `compile`.

mod alternatives;
mod overload;
mod values;

use std::net::SocketAddr;
use std::time::Duration;

use dashpot::{Algorithm, Class, Consistency, Quota, Zone};
use ipnet::IpNet;

pub(crate) use alternatives::{Alternative, Alternatives};
pub(crate) use overload::{AdaptiveSection, BandText, CapacitySection, ClassesSection};
pub(crate) use values::{HeaderText, NameText, SettleText, Wrong, is_token};

use crate::matching::{HostPattern, MethodName, PathPattern};
use crate::problem::Problems;
use crate::read::{List, Map, Tables, read_file, section, texts, words};
use crate::source::{Source, Written};
use crate::weight::Weight;
use crate::{Absent, AccessLog, Fact, HeaderStyle, Listen, MaxBody, OnStoreError, Upstream};

section! {
    /// A rule file of dashpot: which limits apply to a request, and by what it is counted.
    Config requires [] {
        /// Where counts are kept. In memory if left out.
        store: StoreSection,
        /// The store in memory.
        memory: MemorySection,
        /// How `dashpot serve` listens.
        serve: ServeSection,
        /// How `dashpot proxy` listens and forwards.
        proxy: ProxySection,
        /// How a request becomes facts, and whom to believe.
        identity: IdentitySection,
        /// How a decision is told to the caller.
        headers: HeadersSection,
        /// Who is never limited: values by fact, for `ip` networks, for secrets their SHA-256.
        allow: Map<List<String>>,
        /// Who is always refused, even if also allowed: values by fact, as in `allow`.
        block: Map<List<String>>,
        /// Requests that weigh more or less than others. The first that matches counts.
        priority: Tables<PrioritySection>,
        /// The rules. All that match apply together, all or nothing.
        rule: Tables<RuleSection>,
    }

    /// Where counts are kept.
    StoreSection requires [] {
        /// `redis://`, `rediss://`, `redis-cluster://a,b,c` or `redis-sentinel://a,b/master`; several are independent servers to which keys are hashed.
        url: List<String>,
        /// What the names of all its keys begin with.
        prefix: String,
        /// How long to wait for an answer before `on_error` decides.
        deadline: Duration,
        /// What to do when the store cannot answer. A rule may say otherwise.
        on_error: OnStoreError,
        /// How long units are leased under rules that are `leased`, unless renewed: what an instance that died had comes back after that.
        lease: Duration,
        /// How often is told what was counted under rules that are `approximate`.
        reconcile: Duration,
    }

    /// The store in memory.
    MemorySection requires [] {
        /// The most keys to remember.
        max_keys: u64,
        /// The file in which counts outlive a restart.
        state_file: String,
    }

    /// How `dashpot serve` listens. Its flags say otherwise if they are given.
    ServeSection requires [] {
        /// Where to listen, as in `127.0.0.1:8080`.
        listen: SocketAddr,
        /// Where to listen for gRPC, as in `127.0.0.1:8081`; `off` does without.
        grpc_listen: Listen,
        /// Where to listen for Redis's protocol, as in `127.0.0.1:6380`; `off` does without.
        resp_listen: Listen,
        /// The file with the password that clients of Redis's say.
        resp_password_file: String,
        /// The file with the certificate and those it is signed by (PEM): then HTTPS is served.
        tls_certificate: String,
        /// The file with the certificate's private key (PEM).
        tls_key: String,
        /// The file with the token that administrators show.
        admin_token_file: String,
    }

    /// How `dashpot proxy` listens and forwards. Its flags say otherwise if they are given.
    ProxySection requires [] {
        /// Where to listen, as in `127.0.0.1:8000`.
        listen: SocketAddr,
        /// The backend, as in `http://127.0.0.1:3000`.
        upstream: Upstream,
        /// Where the API is served, as in `127.0.0.1:8090`; `off` does without.
        admin_listen: Listen,
        /// The file with the certificate and those it is signed by (PEM): then HTTPS is served.
        tls_certificate: String,
        /// The file with the certificate's private key (PEM).
        tls_key: String,
        /// How long the backend may take to accept a connection.
        connect_timeout: Duration,
        /// How long the backend may take to begin its answer, and to go on with it.
        response_timeout: Duration,
        /// How long a caller may take for the head of a request, to go on with its body, and to go on reading the answer.
        client_timeout: Duration,
        /// How long a caller's connection may be without a request.
        idle_timeout: Duration,
        /// How long an upgraded connection may be silent.
        tunnel_timeout: Duration,
        /// The longest body of a request, in bytes, or `unlimited`.
        max_body: MaxBody,
        /// Where requests are noted: a file, `-` for the standard output, or `off`.
        access_log: AccessLog,
    }

    /// How a request becomes facts, and whom to believe. Nobody, unless told otherwise.
    IdentitySection requires [] {
        /// The networks of proxies whose word about others counts.
        trusted_proxies: List<IpNet>,
        /// How many proxies there always are in front; instead of `trusted_proxies`.
        hops: u64,
        /// The header in which proxies say who asked: `x-forwarded-for`, `forwarded`, or one with a single address.
        client_ip_header: HeaderText,
        /// How many bits of an IPv6 address tell callers apart.
        ipv6_prefix: u64,
        /// Where the user is told.
        user: Fact,
        /// Where the API key is told.
        api_key: Fact,
        /// Where the tier is told.
        tier: Fact,
        /// The tier of those of whom nothing is known.
        default_tier: String,
        /// A file of keys that were handed out: SHA-256 of the key = { user, tier }.
        api_keys_file: String,
        /// How to verify tokens for `jwt:` facts.
        jwt: JwtSection,
        /// The most that is read of a body to find a field in it, in bytes.
        max_body: u64,
    }

    /// How to verify JSON Web Tokens.
    JwtSection requires ["algorithm", "key_file"] {
        /// The one algorithm that is accepted, as in `RS256` or `HS256`.
        algorithm: String,
        /// The file with the public key (PEM), or the shared secret for HS256, HS384 and HS512.
        key_file: String,
        /// The issuer a token must name.
        issuer: String,
        /// The audience a token must name.
        audience: String,
        /// Where the token is told; `header:authorization` (after `Bearer`) if left out.
        token: Fact,
        /// How far clocks may differ.
        leeway: Duration,
    }

    /// How a decision is told to the caller.
    HeadersSection requires [] {
        /// The header styles; at most one of `ietf`, `draft-07` and `draft-06`, which share field names.
        styles: List<StyleText>,
        /// Up to so much is added to Retry-After at random, so that those who wait do not all come back at once.
        jitter: Duration,
        /// Whether scripts of other origins may read the headers (CORS).
        expose: bool,
    }

    /// Requests that weigh more or less than others.
    PrioritySection requires ["name"] {
        /// Its name; with a weight, its counters are its own.
        name: NameText,
        /// Which requests it is about. All, if left out.
        r#match: MatchSection,
        /// What limits are multiplied by, or `unlimited`. If left out, limits are everybody's.
        weight: Weight,
        /// Who goes first when not all can: `critical`, then `normal`, then `background`.
        class: Class,
    }

    /// Which limits apply to which requests, and by what they are counted.
    RuleSection requires ["name"] {
        /// Its name, by which its counters are known.
        name: NameText,
        /// Which requests it is about. All, if left out.
        r#match: MatchSection,
        /// By which facts to count: one counter for each combination. `a | b` is the first that is present. One counter in all, if left out.
        by: List<Alternatives>,
        /// The limits, all of which must pass.
        limits: List<Quota>,
        /// The limits by tier, instead of `limits`.
        tiers: Map<List<Quota>>,
        /// How limits are enforced.
        algorithm: Algorithm,
        /// How limits shrink while the service suffers.
        adaptive: AdaptiveSection,
        /// How many requests this process takes at once, instead of `limits`.
        capacity: CapacitySection,
        /// How much of a `concurrent` limit or a `capacity` each class may fill.
        classes: ClassesSection,
        /// How closely instances that share a store keep to the limits: `exact` asks every time, `leased` takes units in batches and never grants too much, `approximate` counts in each instance and tells every so often.
        consistency: Consistency,
        /// The places in a leaky bucket's queue, in which requests wait.
        queue: u64,
        /// How many of the places proceed at once.
        undelayed: u64,
        /// The time zone of days, weeks and months, for a fixed window.
        zone: Zone,
        /// What a request costs.
        cost: u64,
        /// The response header that says what a request really cost, as in `header:x-tokens-used`, or `bytes` for those of the response's body. Until then `cost` is reserved.
        settle: SettleText,
        /// The response statuses that count. All others are given back.
        charge_on: List<u64>,
        /// Count, but never deny.
        shadow: bool,
        /// Enforce it for so many of a hundred keys, and only count for the others.
        enforce_percent: u64,
        /// What to do when the store cannot answer.
        on_store_error: OnStoreError,
        /// What to do with requests that lack a fact: they share one counter, skip the rule, or are denied.
        absent: Absent,
        /// What to answer instead of the usual 429.
        on_deny: OnDenySection,
    }

    /// Which requests something is about. Everything that is said must hold; one of several values is enough.
    MatchSection requires [] {
        /// The methods. GET covers HEAD.
        method: List<MethodName>,
        /// The paths. `{name}` and `*` stand for one segment, `*` at the end for all that follow.
        path: List<PathPattern>,
        /// The hosts, without port. `*.example.com` covers all below.
        host: List<HostPattern>,
        /// Request headers and their values; `*` is any.
        header: Map<String>,
        /// Facts and their values, as in `tier`, or by a name of the application's own; `*` is any.
        fact: Map<String>,
        /// Facts that must be absent, as in `user` for those who are not logged in.
        without: List<Fact>,
    }

    /// What to answer instead of the usual 429.
    OnDenySection requires [] {
        /// The status.
        status: u64,
        /// The body.
        body: String,
        /// The body's type.
        content_type: String,
        /// Where to send the caller, e.g. to a captcha.
        redirect: String,
    }

    /// Whose key it is.
    KeySection requires [] {
        /// The user.
        user: String,
        /// The tier.
        tier: String,
    }
}

/// A file of keys.
pub(crate) type KeysConfig = Map<KeySection>;

words! {
    Algorithm, "an algorithm", Self::ALL.map(|algorithm| (algorithm.name(), algorithm)).into();
    Consistency, "a consistency", Self::ALL.map(|consistency| (consistency.name(), consistency)).into();
    OnStoreError, "a choice here", vec![
        ("allow", Self::Allow),
        ("deny", Self::Deny),
        ("local", Self::Local),
    ];
    Absent, "a choice here", vec![
        ("share", Self::Share),
        ("skip", Self::Skip),
        ("deny", Self::Deny),
    ];
    StyleText, "a header style", {
        let styles = HeaderStyle::ALL.iter().map(|style| (style.name(), Self(Some(*style))));
        styles.chain([("none", Self(None))]).collect()
    };
}

/// A header style, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StyleText(pub(crate) Option<HeaderStyle>);

texts! {
    Quota, "a limit, as in \"100/min\"", "100/min", "10/s burst 20", "5/5min", "unlimited";
    Fact, "a fact, as in \"ip\"", "ip", "user", "header:x-api-key", "json:email";
    Alternatives, "a fact, as in \"ip\"", "ip", "api_key | user | ip", "json:email";
    SocketAddr, "an address and a port, as in \"127.0.0.1:8080\"", "127.0.0.1:8080", "[::1]:8080";
    Listen, "an address and a port, or \"off\"", "127.0.0.1:8081", "[::1]:8081", "off";
    Upstream, "the URL of a backend, as in \"http://127.0.0.1:3000\"", "http://127.0.0.1:3000";
    AccessLog, "a file, \"-\" or \"off\"", "-", "off", "access.log";
    SettleText, "a response header, as in \"header:x-tokens-used\", or \"bytes\"", "header:x-tokens-used", "bytes";
    IpNet, "a network, as in \"10.0.0.0/8\"", "10.0.0.0/8", "2001:db8::/32";
    Zone, "a time zone, as in \"Europe/Berlin\"", "UTC", "Europe/Berlin";
    NameText, "a name", "api", "login-ip";
    HeaderText, "the name of a header", "x-forwarded-for", "forwarded", "x-real-ip";
    MethodName, "a method, as in \"POST\"", "GET", "POST";
    PathPattern, "a path, as in \"/api/*\"", "/login", "/users/{id}", "/api/*";
    HostPattern, "a host, as in \"example.com\"", "example.com", "*.example.com";
}

impl Config {
    /// Reads all sources, as if they were one file. Nothing may be said twice.
    pub(crate) fn read(sources: &[Source], problems: &mut Problems) -> Self {
        let mut whole = Self::default();
        for source in 0..sources.len() {
            let Some(part) = read_file::<Self>(sources, source, problems) else { continue };
            let mut once = Once { sources, problems };
            once.set(&mut whole.store, part.store, "[store]");
            once.set(&mut whole.memory, part.memory, "[memory]");
            once.set(&mut whole.serve, part.serve, "[serve]");
            once.set(&mut whole.proxy, part.proxy, "[proxy]");
            once.set(&mut whole.identity, part.identity, "[identity]");
            once.set(&mut whole.headers, part.headers, "[headers]");
            once.set(&mut whole.allow, part.allow, "[allow]");
            once.set(&mut whole.block, part.block, "[block]");
            more(&mut whole.priority, part.priority);
            more(&mut whole.rule, part.rule);
        }
        whole
    }

    pub(crate) fn rules(&self) -> &[Written<RuleSection>] {
        self.rule.as_ref().map_or(&[], |rules| &rules.value.0)
    }

    pub(crate) fn priorities(&self) -> &[Written<PrioritySection>] {
        self.priority.as_ref().map_or(&[], |priorities| &priorities.value.0)
    }
}

/// Takes each section of the first file that has it.
struct Once<'o> {
    sources: &'o [Source],
    problems: &'o mut Problems,
}

impl Once<'_> {
    fn set<T>(&mut self, whole: &mut Option<Written<T>>, part: Option<Written<T>>, what: &str) {
        match (&whole, part) {
            (_, None) => {}
            (None, part) => *whole = part,
            (Some(known), Some(part)) => {
                let place = known.span.seen_from(&part.span, self.sources);
                self.problems
                    .error(&part.span, format!("{what} is in another file already ({place})"));
            }
        }
    }
}

fn more<T>(whole: &mut Option<Written<Tables<T>>>, part: Option<Written<Tables<T>>>) {
    match (whole, part) {
        (_, None) => {}
        (Some(whole), Some(part)) => whole.value.0.extend(part.value.0),
        (whole, part) => *whole = part,
    }
}
