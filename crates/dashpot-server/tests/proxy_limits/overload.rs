//! Under stress: so many at once, in an order, and limits that shrink; in front of a backend that takes its time.

mod adapting;
mod backends;
mod bodies;
mod classes;
mod door;
mod given_back;
mod hanging_up;
mod lowered;
mod permits;
mod reloads;
mod seen;
mod several;
mod shadow;
mod stage;
mod told;
mod watching;

use std::time::{Duration, Instant};

use dashpot_testkit::process::until;
use serde_json::Value;

use crate::backend::Backend;
use crate::caller::{Answer, Caller, PATIENCE, request};
use crate::proxy::Proxy;
use stage::Stage;

/// By a header, so that paths are free.
const CLASSES: &str = r#"
[[priority]]
name = "first"
match = { header = { x-class = "critical" } }
class = "critical"

[[priority]]
name = "last"
match = { header = { x-class = "background" } }
class = "background"

[[priority]]
name = "free"
match = { header = { x-class = "unlimited" } }
weight = "unlimited"
"#;

/// A rule called `worker` of this capacity.
fn worker(capacity: &str) -> String {
    format!("[[rule]]\nname = 'worker'\ncapacity = {{ {capacity} }}\n")
}

/// How it stands at the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Door {
    limit: u64,
    in_flight: u64,
    waiting: u64,
}

/// A gateway, and a backend that does as paths say (see [`Stage`]).
struct Scene {
    backend: Backend,
    proxy: Proxy,
    stage: Stage,
}

impl Scene {
    fn by(rules: &str) -> Self {
        Self::with(rules, &[])
    }

    fn with(rules: &str, flags: &[&str]) -> Self {
        let (stage, backend) = Stage::start();
        // Several threads, so that places go from one to another, whatever the machine has.
        let proxy = Proxy::with(&backend, rules, &[&["--threads", "3"], flags].concat());
        Self { backend, proxy, stage }
    }

    /// Sends a request, of a class if it is said, and does not wait.
    fn send(&self, path: &str, class: &str) -> Caller {
        let mut caller = self.proxy.caller();
        caller.send(asked(path, class));
        caller
    }

    #[track_caller]
    fn get(&self, path: &str, class: &str) -> Answer {
        self.send(path, class).answer()
    }

    /// Sends one that is held by the backend, and waits until it is there.
    #[track_caller]
    fn hold(&self, path: &str, class: &str) -> Caller {
        let before = self.backend.count();
        let caller = self.send(path, class);
        self.backend.await_count(before + 1);
        caller
    }

    /// Sends so many, and waits until their answers have begun. Nothing if that took longer than this: on a machine that stalls,
    /// nobody knows how long they took at the gateway.
    #[track_caller]
    fn begun_within(&self, time: Duration, count: usize, path: &str) -> Option<Vec<Caller>> {
        let sent = Instant::now();
        let mut callers: Vec<_> = (0..count).map(|_| self.send(path, "")).collect();
        let heads: Vec<_> = callers.iter_mut().map(|caller| caller.head().unwrap()).collect();
        if sent.elapsed() >= time {
            return None;
        }
        assert!(heads.iter().all(|head| head.status == 200), "{heads:?}");
        Some(callers)
    }

    /// Sends one that waits at the door, and waits until it does.
    #[track_caller]
    fn line_up(&self, path: &str, class: &str) -> Caller {
        let before = self.door().waiting;
        let caller = self.send(path, class);
        until("it to wait", PATIENCE, || (self.door().waiting == before + 1).then_some(()));
        caller
    }

    #[track_caller]
    fn door(&self) -> Door {
        self.door_of("worker")
    }

    #[track_caller]
    fn door_of(&self, rule: &str) -> Door {
        let health = self.health();
        let doors = health["capacity"].as_array().unwrap_or_else(|| panic!("{health}"));
        let door = doors.iter().find(|door| door["rule"] == rule);
        let door = door.unwrap_or_else(|| panic!("no {rule}: {health}"));
        let of = |name: &str| door[name].as_u64().unwrap_or_else(|| panic!("no {name}: {health}"));
        Door { limit: of("limit"), in_flight: of("in_flight"), waiting: of("waiting") }
    }

    fn health(&self) -> Value {
        self.proxy.admin_get("/v1/health").json()
    }

    /// Waits until so many are in, and so many wait.
    #[track_caller]
    fn await_door(&self, in_flight: u64, waiting: u64) {
        self.await_door_of("worker", in_flight, waiting);
    }

    #[track_caller]
    fn await_door_of(&self, rule: &str, in_flight: u64, waiting: u64) {
        let (begun, mut door) = (Instant::now(), self.door_of(rule));
        while (door.in_flight, door.waiting) != (in_flight, waiting) {
            assert!(
                begun.elapsed() < PATIENCE,
                "{door:?}, not {in_flight} in and {waiting} in line"
            );
            std::thread::sleep(Duration::from_millis(5));
            door = self.door_of(rule);
        }
    }

    /// Waits until the limit is so.
    #[track_caller]
    fn await_limit(&self, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
        until(what, PATIENCE, || Some(self.door().limit).filter(|limit| is_so(*limit)))
    }

    #[track_caller]
    fn factor(&self, rule: &str) -> f64 {
        self.proxy.metric(&format!("dashpot_rule_factor{{rule=\"{rule}\"}}"))
    }

    /// Tells it how it is, for an hour, and waits for what that comes to.
    #[track_caller]
    fn tell(&self, errors: u32, rule: &str, factor: f64) {
        let told = format!("{{\"errors\":{errors},\"for\":\"1h\"}}");
        assert_eq!(self.proxy.admin_post("/v1/health", &told).status, 200);
        until("the factor", PATIENCE, || (self.factor(rule) == factor).then_some(()));
    }

    /// How often a rule did this: `allowed`, `denied` and so on.
    #[track_caller]
    fn count(&self, rule: &str, what: &str) -> f64 {
        self.proxy.metric(&format!("dashpot_rule_{what}_total{{rule=\"{rule}\"}}"))
    }

    /// What is left of a policy, as the admin port tells.
    #[track_caller]
    fn left(&self, policy: &str) -> u64 {
        let answer = self.proxy.admin_post("/v1/keys/peek", r#"{"request":{"path":"/"}}"#).json();
        let policies = answer["policies"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let told = policies.iter().find(|told| told["policy"] == policy);
        told.unwrap_or_else(|| panic!("{answer}"))["remaining"].as_u64().unwrap()
    }

    #[track_caller]
    fn await_left(&self, policy: &str, wanted: u64) {
        until(&format!("{wanted} of {policy} to be left"), PATIENCE, || {
            (self.left(policy) == wanted).then_some(())
        });
    }
}

fn asked(path: &str, class: &str) -> String {
    match class {
        "" => request("GET", path, &[], ""),
        _ => request("GET", path, &[&format!("x-class: {class}")], ""),
    }
}

/// What whoever is turned away for want of room is told.
#[track_caller]
fn assert_no_room(answer: &Answer) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(answer.retry_after() >= 1, "{answer:?}");
    let told = answer.json();
    let kind = "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity";
    assert_eq!((&told["type"], &told["status"]), (&kind.into(), &503.into()), "{answer:?}");
}
