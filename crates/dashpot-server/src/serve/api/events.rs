//! `GET /v1/events`: how it is going, once a second, for the dashboard.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use dashpot_rules::Tally;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Method, Response, StatusCode};
use http_body::Frame;
use http_body_util::Either;
use serde::Serialize;
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::admin::admit;
use super::health::Health;
use super::keys::{TopKey, top_keys};
use super::openapi::Documented;
use super::{Answered, Call, Route};
use crate::seconds::Seconds;
use crate::serve::connection::Progress;
use crate::serve::metrics::{Door, each_tally};
use crate::serve::service::{Service, Shared};
use crate::serve::wrong::Wrong;

pub(crate) const ROUTE: Route = Route {
    method: Method::GET,
    path: "/v1/events",
    door: Door::Other,
    handle: |service, call| Box::pin(async move { watch(service, call) }),
    documented: || {
        Documented::new("How it is going, once a second, as server-sent events")
            .gives_text(200, "Without the admin token, what /metrics tells, too", EVENTS)
            .wrong(503, "Too many watch")
    },
};

const EVENTS: &str = "text/event-stream";

/// How often it is told.
const EVERY: Duration = Duration::from_secs(1);

/// How long one is told before he has to ask again: what stands between us may keep a connection that nobody reads.
const LONGEST: Duration = Duration::from_secs(600);

/// How many may watch at once.
const WATCHERS: usize = 64;

/// Of more rules than this, the busiest are told of.
const RULES: usize = 500;

/// Of how many keys it is told.
const KEYS: usize = 20;

/// How many watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watchers(Arc<AtomicUsize>);

/// One who watches, until this is dropped.
struct Watcher(Watchers);

impl Watchers {
    fn enter(&self) -> Option<Watcher> {
        let room = |count: usize| (count < WATCHERS).then_some(count + 1);
        let entered = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        entered.is_ok().then(|| Watcher(self.clone()))
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is told each time.
#[derive(Serialize)]
struct State {
    version: &'static str,
    uptime: Seconds,
    stopping: bool,
    /// Whether the one who watches may administer.
    admin: bool,
    needs_token: bool,
    generation: u64,
    reloads: u64,
    failed_reloads: u64,
    connections: u64,
    health: Health,
    rules: Vec<RuleCounts>,
    /// Nothing for those who may not administer.
    top: Option<Vec<TopKey>>,
}

#[derive(Serialize)]
struct RuleCounts {
    name: String,
    allowed: u64,
    near_limit: u64,
    denied: u64,
    shadow_denied: u64,
    degraded: u64,
}

impl State {
    fn of(service: &Service, admin: bool) -> Self {
        let mut rules = Vec::new();
        each_tally(service, |name, tally| rules.push(RuleCounts::of(name, tally)));
        // Limits that are in no rule are told of once somebody asks about one.
        rules.retain(|rule| !rule.name.starts_with('(') || rule.allowed + rule.denied > 0);
        if rules.len() > RULES {
            rules.sort_by_key(|rule| std::cmp::Reverse(rule.allowed + rule.denied));
            rules.truncate(RULES);
        }
        let mut health = Health::of(service);
        if !admin {
            health.keep_to_ourselves();
        }
        let counters = &service.counters;
        let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
        Self {
            version: env!("CARGO_PKG_VERSION"),
            uptime: Seconds(service.began.elapsed()),
            stopping: service.is_stopping(),
            admin,
            needs_token: service.admin_token.is_some(),
            generation: service.rules.generation(),
            reloads: count(&counters.reloads),
            failed_reloads: count(&counters.failed_reloads),
            connections: count(&counters.open_connections),
            health,
            rules,
            top: admin.then(|| top_keys(service, KEYS)),
        }
    }
}

impl RuleCounts {
    fn of(name: &str, tally: &Tally) -> Self {
        Self {
            name: name.to_owned(),
            allowed: tally.allowed(),
            near_limit: tally.near_limit(),
            denied: tally.denied(),
            shadow_denied: tally.would_have_denied(),
            degraded: tally.degraded(),
        }
    }
}

fn watch(service: &Shared, call: &Call) -> Answered {
    let Some(watcher) = service.watchers.enter() else {
        return Err(Wrong::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "too many watch; close a dashboard",
        )
        .with(RETRY_AFTER, HeaderValue::from_static("10")));
    };
    let mut tick = interval(EVERY);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let events = Events {
        service: service.clone(),
        admin: admit(service, call).is_ok(),
        tick,
        until: Instant::now() + LONGEST,
        progress: None,
        _watcher: watcher,
    };
    let mut response = Response::new(Either::Right(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENTS));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// Events, made when they can be sent: who reads slowly gets fewer, and nothing waits for him.
pub(crate) struct Events {
    service: Shared,
    admin: bool,
    tick: Interval,
    until: Instant,
    progress: Option<Arc<Progress>>,
    _watcher: Watcher,
}

impl Events {
    /// The connection hears that somebody takes what it sends.
    pub(crate) fn on(&mut self, progress: &Arc<Progress>) {
        self.progress = Some(progress.clone());
    }
}

impl http_body::Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.tick.poll_tick(context));
        if let Some(progress) = &self.progress {
            progress.waiting();
        }
        if self.service.is_stopping() || Instant::now() >= self.until {
            return Poll::Ready(None);
        }
        // It is always JSON.
        let state =
            serde_json::to_string(&State::of(&self.service, self.admin)).unwrap_or_default();
        let event = format!("event: state\ndata: {state}\n\n");
        Poll::Ready(Some(Ok(Frame::data(event.into()))))
    }
}
