//! Several of them on one Redis, where one key is asked about so often that its units are leased.

mod both_ways;
mod doors;
mod ending;
mod hot;
mod managed;
mod outages;
mod reloads;
mod told;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use dashpot_testkit::RedisServer;

use crate::client::{Answer, Client};
use crate::service::{Directory, Service, until};

/// How long what comes by itself may take.
const NOTICED: Duration = Duration::from_secs(30);
/// What is asked again and again.
const ASKED: &str = r#"{"request":{"path":"/"}}"#;
const LOOK: &str = r#"{"request":{"path":"/"},"cost":0}"#;
/// So patient that a busy machine is not taken for a server that is down. A lease is at least eight of it.
const PATIENT: &str = "deadline = '2s'\nlease = '16s'\n";
/// Leases that are over soon.
const SHORT: &str = "deadline = '200ms'\nlease = '1600ms'\n";

/// One counter for all. What Redis is not asked about is denied, so that nothing passes uncounted.
fn rules(redis: &RedisServer, store: &str, rule: &str) -> String {
    let url = redis.url();
    format!("[store]\nurl = '{url}'\non_error = 'deny'\n{store}[[rule]]\nname = 'all'\n{rule}\n")
}

/// One with a directory of its own, so that its rules can change alone.
struct Instance {
    service: Service,
    home: Directory,
}

impl Instance {
    fn start(rules: &str) -> Self {
        let home = Directory::new();
        let service = Service::with_rules(&home, rules, &["--log-level", "warn"]);
        let instance = Self { service, home };
        until("the store", NOTICED, || (instance.health()["up"] == true).then_some(()));
        instance
    }

    fn fleet(count: usize, rules: &str) -> Vec<Self> {
        let fleet: Vec<_> = (0..count).map(|_| Self::start(rules)).collect();
        for instance in &fleet {
            until("them to know of each other", NOTICED, || {
                (instance.health()["instances"] == count).then_some(())
            });
        }
        fleet
    }

    fn client(&self) -> Client {
        self.service.client()
    }

    fn health(&self) -> serde_json::Value {
        self.client().get("/v1/health").json()
    }

    fn leased_keys(&self) -> u64 {
        self.health()["leased_keys"].as_u64().unwrap()
    }

    /// Waits until it holds nothing any more, and says what is left.
    fn left_when_cold(&self) -> u64 {
        until("the key to be cold", NOTICED, || (self.leased_keys() == 0).then_some(()));
        self.client().check(LOOK).remaining()
    }
}

/// Whether it was granted, and not without asking. A store that takes its time is no reason to fail.
#[track_caller]
fn passes(answer: &Answer) -> bool {
    match answer.status {
        200 => !answer.body.contains("\"degraded\":true"),
        429 | 503 => false,
        _ => panic!("{answer:?}"),
    }
}

/// What came of asking all of them at once, from two connections each.
struct Crowd {
    admitted: AtomicU64,
    denied: AtomicU64,
    is_over: AtomicBool,
    begun: Instant,
}

impl Crowd {
    fn new() -> Self {
        let zero = AtomicU64::default;
        Self { admitted: zero(), denied: zero(), is_over: false.into(), begun: Instant::now() }
    }

    /// Asks while something else is done.
    fn during<T>(&self, fleet: &[Instance], meanwhile: impl FnOnce() -> T) -> T {
        self.asking(fleet, ASKED, meanwhile)
    }

    fn asking<T>(&self, fleet: &[Instance], asked: &str, meanwhile: impl FnOnce() -> T) -> T {
        self.is_over.store(false, Ordering::SeqCst);
        let over = Over(&self.is_over);
        thread::scope(|scope| {
            for instance in fleet.iter().chain(fleet) {
                scope.spawn(move || {
                    let mut client = instance.client();
                    while !self.is_over.load(Ordering::SeqCst) {
                        self.count(passes(&client.check(asked)));
                    }
                });
            }
            let done = meanwhile();
            drop(over);
            done
        })
    }

    fn count(&self, passed: bool) {
        let count = if passed { &self.admitted } else { &self.denied };
        count.fetch_add(1, Ordering::SeqCst);
    }

    fn admitted(&self) -> u64 {
        self.admitted.load(Ordering::SeqCst)
    }

    /// Waits for so many more denials: then nobody finds anything.
    fn until_denied(&self, more: u64) {
        let before = self.denied.load(Ordering::SeqCst);
        let denied = || self.denied.load(Ordering::SeqCst) - before;
        until("denials", NOTICED, || (denied() >= more).then_some(()));
    }

    fn until_admitted(&self, more: u64) {
        let before = self.admitted();
        until("admissions", NOTICED, || (self.admitted() - before >= more).then_some(()));
    }

    /// At most so much at once, and so much in a second since it began.
    #[track_caller]
    fn is_within(&self, burst: u64, per_second: u64) {
        let took = self.begun.elapsed();
        let most = burst + (took.as_secs_f64() * per_second as f64).ceil() as u64;
        let admitted = self.admitted();
        println!("{admitted} of at most {most} in {took:?}");
        assert!(admitted <= most, "{admitted} of at most {most} in {took:?}");
    }
}

/// The crowd goes home, also when something panics meanwhile.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

fn until_leased(instance: &Instance) {
    until("units to be leased", NOTICED, || (instance.leased_keys() > 0).then_some(()));
}
