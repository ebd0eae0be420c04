//! What a server that dies, hangs or is cut off costs those who ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dashpot::{Check, Policy, Quota, Store};
use dashpot_redis::RedisStore;
use dashpot_testkit::{Fault, Proxy, RedisServer};
use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::runtime;
use crate::Scale;
use crate::results::{self, Wanted};
use crate::table::{Table, count, number};

const TASKS: usize = 64;
const DEADLINE: Duration = Duration::from_millis(20);
const LIMIT: u64 = 5_000;

struct Scene {
    name: &'static str,
    begin: fn(&RedisServer, &Proxy),
    end: fn(&RedisServer, &Proxy),
    /// Whether the server loses what it counted.
    loses: bool,
}

const SCENES: [Scene; 6] = [
    Scene {
        name: "killed, started again empty",
        begin: |server, _| server.kill(),
        end: |server, _| server.restart(),
        loses: true,
    },
    Scene {
        name: "hung (SIGSTOP)",
        begin: |server, _| server.hang(),
        end: |server, _| server.resume(),
        loses: false,
    },
    Scene {
        name: "network swallows all",
        begin: |_, proxy| proxy.set(Fault::Drop),
        end: |_, proxy| proxy.set(Fault::None),
        loses: false,
    },
    Scene {
        name: "200 ms slower",
        begin: |_, proxy| proxy.set(Fault::Delay(Duration::from_millis(200))),
        end: |_, proxy| proxy.set(Fault::None),
        loses: false,
    },
    Scene {
        name: "connections cut once",
        begin: |_, proxy| proxy.cut(),
        end: |_, _| {},
        loses: false,
    },
    Scene {
        name: "scripts flushed",
        begin: |server, _| drop(server.command(&["SCRIPT", "FLUSH"])),
        end: |_, _| {},
        loses: false,
    },
];

pub(crate) fn report(scale: Scale) {
    let outage = Duration::from_secs(if scale == Scale::Quick { 1 } else { 3 });
    let mut table = Table::new([
        "what happens",
        "p50",
        "p99",
        "p99.9",
        "max",
        "once open p99",
        "back after",
        "errors",
        "admitted",
        "at most",
    ]);
    for scene in &SCENES {
        let seen = play(scene, outage);
        let millis = |histogram: &Histogram<u64>, quantile: f64| {
            number(histogram.value_at_quantile(quantile) as f64 / 1e6)
        };
        let allowed = if scene.loses { 2 * LIMIT } else { LIMIT };
        tell(scene, &seen, allowed);
        table.row([
            scene.name.to_owned(),
            millis(&seen.all, 0.5),
            millis(&seen.all, 0.99),
            millis(&seen.all, 0.999),
            number(seen.all.max() as f64 / 1e6),
            if seen.open.is_empty() { "–".to_owned() } else { millis(&seen.open, 0.99) },
            seen.back.map_or("–".to_owned(), |back| number(back.as_secs_f64() * 1e3)),
            count(seen.errors as f64),
            count(seen.admitted as f64),
            count(allowed as f64),
        ]);
    }
    table.print(
        "When Redis fails under load",
        "Milliseconds of every single decision from a second before to a second after, as 64 tasks see it that ask \
         without a pause; deadline 20 ms. `once open`: those that began 100 ms into the outage or later. `back \
         after`: from the end of the outage to the first answer. Wanted: p99.9 at most 25, back within 1000, and \
         never more admitted than there is.",
    );
}

fn tell(scene: &Scene, seen: &Seen, allowed: u64) {
    let name = scene.name;
    let late = seen.all.value_at_quantile(0.999) as f64 / 1e6;
    results::goal("P12", format!("p99.9, {name}"), Wanted::AtMost(25.0), late, "ms");
    if !seen.open.is_empty() {
        let open = seen.open.value_at_quantile(0.99) as f64 / 1e3;
        results::goal("P12", format!("p99 once open, {name}"), Wanted::AtMost(50.0), open, "µs");
    }
    let back = seen.back.map_or(f64::NAN, |back| back.as_secs_f64() * 1e3);
    results::goal("P12", format!("back after, {name}"), Wanted::AtMost(1000.0), back, "ms");
    let admitted = seen.admitted as f64 / allowed as f64;
    results::goal(
        "P12",
        format!("admitted, {name}"),
        Wanted::AtMost(1.0),
        admitted,
        "of the limit",
    );
}

struct Seen {
    all: Histogram<u64>,
    open: Histogram<u64>,
    back: Option<Duration>,
    errors: u64,
    admitted: u64,
}

fn play(scene: &Scene, outage: Duration) -> Seen {
    let server = RedisServer::start();
    let proxy = Proxy::to(&server.address());
    let (asking_on, server_on) = (runtime(), &server);
    let policy = Policy::new("api", Quota::per_day(LIMIT)).expect("a right policy");
    let state = Arc::new(State::default());
    asking_on.block_on(async {
        let store = RedisStore::builder(format!("redis://{}", proxy.address()))
            .deadline(DEADLINE)
            .denial_memory(Duration::ZERO)
            .start()
            .expect("a right URL");
        store.ready(Duration::from_secs(5)).await.expect("Redis answers");
        for _ in 0..TASKS {
            tokio::spawn(ask(store.clone(), policy.clone(), state.clone()));
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        let begun = Instant::now();
        *state.open_from.lock() = Some(begun + Duration::from_millis(100));
        (scene.begin)(server_on, &proxy);
        tokio::time::sleep(outage).await;
        *state.open_from.lock() = None;
        *state.ended.lock() = Some(Instant::now());
        (scene.end)(server_on, &proxy);
        tokio::time::sleep(Duration::from_secs(2)).await;
        state.stop.store(true, Ordering::Relaxed);
        tokio::time::sleep(DEADLINE * 3).await;
    });
    Seen {
        all: state.all.lock().clone(),
        open: state.open.lock().clone(),
        back: *state.back.lock(),
        errors: state.errors.load(Ordering::Relaxed),
        admitted: state.admitted.load(Ordering::Relaxed),
    }
}

struct State {
    all: Mutex<Histogram<u64>>,
    open: Mutex<Histogram<u64>>,
    open_from: Mutex<Option<Instant>>,
    ended: Mutex<Option<Instant>>,
    back: Mutex<Option<Duration>>,
    errors: AtomicU64,
    admitted: AtomicU64,
    stop: AtomicBool,
}

impl Default for State {
    fn default() -> Self {
        let histogram =
            || Mutex::new(Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("right bounds"));
        Self {
            all: histogram(),
            open: histogram(),
            open_from: Mutex::default(),
            ended: Mutex::default(),
            back: Mutex::default(),
            errors: AtomicU64::new(0),
            admitted: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }
}

async fn ask(store: RedisStore, policy: Policy, state: Arc<State>) {
    while !state.stop.load(Ordering::Relaxed) {
        let start = Instant::now();
        let answer = store.decide(&[Check::new(&policy, "everybody")]).await;
        let took = start.elapsed();
        let nanos = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        state.all.lock().saturating_record(nanos);
        let open_from = *state.open_from.lock();
        if open_from.is_some_and(|from| start > from) && answer.is_err() {
            state.open.lock().saturating_record(nanos);
        }
        match answer {
            Ok(decision) => {
                if decision.is_allowed() {
                    state.admitted.fetch_add(1, Ordering::Relaxed);
                }
                let ended = *state.ended.lock();
                if let Some(ended) = ended.filter(|&ended| start > ended) {
                    state.back.lock().get_or_insert_with(|| ended.elapsed());
                }
            }
            Err(_) => {
                state.errors.fetch_add(1, Ordering::Relaxed);
                // Who is not answered serves somebody meanwhile.
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}
