//! Times of stress: the layer sheds, adapts, and gives back.

mod adapting;
mod answer;
mod bodies;
mod classes;
mod crowds;
mod doors;
mod given_back;
mod leaving;
mod lines;
mod lowered;
mod measured;
mod privileged;
mod queues;
mod redis;
mod reload;
mod several;
mod stores;
mod turned_away;
mod wire;
mod work;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use dashpot::{GateStatus, ManualClock, MemoryStore, Percent, Store, Vitals};
use dashpot_http::{LiveRules, RateLimitLayer, RuleSet};
use dashpot_rules::{Adaptive, Fact, Facts, Rule};
use http::{Request, Response};
use http_body_util::BodyExt;
use tokio::sync::Semaphore;
use tower::util::BoxCloneService;
use tower::{Layer, ServiceExt, service_fn};

use answer::{Answer, Answering};
use work::{Fed, Feeder, Work};

use crate::common::rules;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);

/// A priority above the others, and one below.
const CLASSES: &str = "
[[priority]]
name = 'pay'
match.path = '/pay'
class = 'critical'
[[priority]]
name = 'reports'
match.path = '/reports'
class = 'background'
";

type Limited = BoxCloneService<Request<Body>, Response<Body>, &'static str>;

/// A service under rules, by a clock that stands still.
struct Scene {
    service: Limited,
    live: LiveRules,
    clock: ManualClock,
    store: Arc<MemoryStore>,
    work: Arc<Work>,
}

impl Scene {
    fn new(text: &str) -> Self {
        let clock = ManualClock::new(dashpot::Timestamp::from_secs(crate::common::START));
        let store = Arc::new(MemoryStore::with_clock(clock.clone()));
        Self::on(text, clock, store.clone(), store)
    }

    /// The same, with [classes](CLASSES).
    fn classed(text: &str) -> Self {
        Self::new(&format!("{CLASSES}{text}"))
    }

    /// The same on another store.
    fn on(
        text: &str,
        clock: ManualClock,
        memory: Arc<MemoryStore>,
        store: impl Store + Clone + 'static,
    ) -> Self {
        let live = LiveRules::new(rules(text).with_clock(clock.clone()));
        let work = Arc::new(Work { go: Some(Semaphore::new(0)), ..Work::default() });
        let inner = work.clone();
        let inner = service_fn(move |request| inner.clone().serve(request));
        let service = RateLimitLayer::from_rules(live.clone(), store).layer(inner).boxed_clone();
        Self { service, live, clock, store: memory, work }
    }

    fn replace(&self, text: &str) {
        self.live.replace(rules(text).with_clock(self.clock.clone()));
    }

    /// Sends a request, and lets it come as far as it does.
    async fn begin(&self, request: Request<Body>) -> Answering {
        let service = self.service.clone();
        let answering = tokio::spawn(async move {
            let (head, body) = service.oneshot(request).await?.into_parts();
            let body = body.collect().await.expect("a body").to_bytes();
            Ok(Answer { status: head.status.as_u16(), headers: head.headers, body })
        });
        settle().await;
        answering
    }

    /// Sends a request, and does not read the body of the answer.
    async fn open(&self, request: Request<Body>) -> Response<Body> {
        let response = self.service.clone().oneshot(request).await.expect("an error");
        settle().await;
        response
    }

    /// One that is held until it may go on.
    async fn hold(&self, path: &str) -> Answering {
        self.begin(get(path, "hold")).await
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        Answer::of(self.begin(request).await).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.send(get(path, "")).await
    }

    /// The statuses of so many requests, one after another.
    async fn statuses(&self, path: &str, count: usize) -> Vec<u16> {
        let mut statuses = Vec::new();
        for _ in 0..count {
            statuses.push(self.get(path).await.status);
        }
        statuses
    }

    /// Lets so many of those who are held go on.
    async fn go(&self, count: usize) {
        self.work.go.as_ref().unwrap().add_permits(count);
        settle().await;
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        settle().await;
    }

    fn called(&self) -> u64 {
        self.work.called.load(Ordering::Relaxed)
    }

    fn names(&self) -> Vec<String> {
        self.work.names.lock().unwrap().clone()
    }

    /// The one gate of the rules, or the first.
    fn gate(&self) -> GateStatus {
        self.live.current().rules().iter().find_map(Rule::gate).expect("a gate").status()
    }

    fn gate_of(&self, name: &str) -> GateStatus {
        named(&self.live.current(), name).gate().expect("a gate").status()
    }

    /// How many are in, and how many wait.
    fn inside(&self) -> (u64, u64) {
        (self.gate().in_flight, self.gate().waiting)
    }

    fn adaptive(&self) -> Arc<Adaptive> {
        let current = self.live.current();
        current.rules().iter().find_map(Rule::adaptive).expect("it adapts").clone()
    }

    /// Suffers until there is so much of the limits, and stays so.
    fn suffer(&self, percent: u8) {
        let errors = |percent| {
            let part = |percent| Some(Percent::new(percent));
            Vitals { cpu: part(60), errors: part(percent), slow: None }
        };
        self.adaptive().push(errors(90), HOUR);
        while self.adaptive().percent() > percent {
            self.clock.advance(SECOND);
        }
        assert_eq!(self.adaptive().percent(), percent);
        self.adaptive().push(errors(3), HOUR);
    }

    fn recover(&self) {
        let none = Some(Percent::new(0));
        self.adaptive().push(Vitals { cpu: none, errors: none, slow: none }, HOUR);
        while self.adaptive().percent() < 100 {
            self.clock.advance(SECOND);
        }
    }

    /// Allowed, denied and would have been denied, by this rule.
    fn tally(&self, name: &str) -> (u64, u64, u64) {
        let current = self.live.current();
        let tally = named(&current, name).tally();
        (tally.allowed(), tally.denied(), tally.would_have_denied())
    }

    /// Allowed and denied, by this priority.
    fn priority(&self, name: &str) -> (u64, u64) {
        let current = self.live.current();
        let found = current.priorities().find(|(known, _)| *known == name).expect("a priority");
        (found.1.allowed(), found.1.denied())
    }

    /// What is left of the first limit that a request to this path is held to. Nothing is taken.
    async fn left(&self, path: &str) -> u64 {
        self.all_left(path).await[0]
    }

    /// The same of all limits.
    async fn all_left(&self, path: &str) -> Vec<u64> {
        let request = Facts::new().with(Fact::Path, path);
        let current = self.live.current();
        let plan = current.select(&request).plan(&request).times(0);
        let ruling = plan.decide(&self.store, &self.store).await;
        let asked = plan.asked(&ruling);
        asked.iter().flat_map(|one| one.statuses).map(|status| status.remaining()).collect()
    }
}

fn named<'r>(rules: &'r RuleSet, name: &str) -> &'r Rule {
    rules.rules().iter().find(|rule| rule.name() == name).expect("a rule of that name")
}

/// Whatever can be done now is done.
async fn settle() {
    for _ in 0..20 {
        tokio::task::yield_now().await;
    }
}

/// Waits until something is so that takes real time.
async fn until(what: impl Fn() -> bool) {
    for _ in 0..4000 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("it never came to that");
}

/// A request that is served as these words say.
fn get(path: &str, words: &str) -> Request<Body> {
    Request::get(path).header("x-do", words).body(Body::empty()).unwrap()
}

/// One that is held, by a name.
fn hold_as(path: &str, name: &str) -> Request<Body> {
    let request = Request::get(path).header("x-do", "hold").header("x-name", name);
    request.body(Body::empty()).unwrap()
}

async fn is_done(answering: &Answering) -> bool {
    settle().await;
    answering.is_finished()
}
