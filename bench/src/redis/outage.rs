//! What a server that dies, hangs or is cut off costs those who ask.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use dashpot::{Check, MemoryStore, Policy, Quota, Store};
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

/// Who is asked in this time from the beginning on is asked before all is known.
const SURPRISE: Duration = Duration::from_millis(100);

struct Scene {
    name: &'static str,
    begin: fn(&RedisServer, &Proxy),
    /// None of what is over at once.
    end: Option<fn(&RedisServer, &Proxy)>,
    /// Whether the server loses what it counted.
    loses: bool,
}

const SCENES: [Scene; 6] = [
    Scene {
        name: "killed, started again empty",
        begin: |server, _| server.kill(),
        end: Some(|server, _| server.restart()),
        loses: true,
    },
    Scene {
        name: "hung (SIGSTOP)",
        begin: |server, _| server.hang(),
        end: Some(|server, _| server.resume()),
        loses: false,
    },
    Scene {
        name: "network swallows all",
        begin: |_, proxy| proxy.set(Fault::Drop),
        end: Some(|_, proxy| proxy.set(Fault::None)),
        loses: false,
    },
    Scene {
        name: "200 ms slower",
        begin: |_, proxy| proxy.set(Fault::Delay(Duration::from_millis(200))),
        end: Some(|_, proxy| proxy.set(Fault::None)),
        loses: false,
    },
    Scene { name: "connections cut once", begin: |_, proxy| proxy.cut(), end: None, loses: false },
    Scene {
        name: "scripts flushed",
        begin: |server, _| drop(server.command(&["SCRIPT", "FLUSH"])),
        end: None,
        loses: false,
    },
];

pub(crate) fn report(scale: Scale) {
    let outage = Duration::from_secs(if scale == Scale::Quick { 1 } else { 3 });
    let mut table = Table::new([
        "what happens",
        "p50",
        "p99",
        "at first p99.9",
        "max",
        "once open p99, µs",
        "in memory p99, µs",
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
            millis(&seen.first, 0.999),
            number(seen.all.max() as f64 / 1e6),
            number(p99_micros(&seen.open)),
            number(p99_micros(&seen.memory)),
            seen.back.map_or("–".to_owned(), |back| number(back.as_secs_f64() * 1e3)),
            count(seen.errors as f64),
            count(seen.admitted as f64),
            count(allowed as f64),
        ]);
    }
    table.print(
        "When Redis fails under load",
        "Milliseconds of every single decision from a second before to two seconds after, as 64 tasks see it that ask \
         without a pause; deadline 20 ms. Who is told that there is no answer asks a store in memory. `at first`: those that were \
         under way when it began, or began within 100 ms of that. `once open`: those that began later and got no answer, with what \
         the store in memory took; `in memory` is that part alone. `back after`: from the end of the outage (or where it is over at \
         once, from its beginning) to the first answer. Wanted: at first p99.9 at most 25, once open at most twice the time in memory, \
         back within 1000, and never more admitted than there is.",
    );
}

fn p99_micros(histogram: &Histogram<u64>) -> f64 {
    if histogram.is_empty() { f64::NAN } else { histogram.value_at_quantile(0.99) as f64 / 1e3 }
}

fn tell(scene: &Scene, seen: &Seen, allowed: u64) {
    let name = scene.name;
    let late = seen.first.value_at_quantile(0.999) as f64 / 1e6;
    results::goal("P12", format!("p99.9 at first, {name}"), Wanted::AtMost(25.0), late, "ms");
    let open = p99_micros(&seen.open);
    if scene.end.is_some() {
        let work = format!("p99 once open, {name}");
        let ratio = open / p99_micros(&seen.memory);
        results::goal("P12", work, Wanted::AtMost(2.0), ratio, "× memory's");
    }
    let back = seen.back.map_or(f64::NAN, |back| back.as_secs_f64() * 1e3);
    results::samples(
        format!(
            "outage, {name}: p99.9 at first ms, max ms, once open p99 µs, in memory p99 µs, back ms"
        ),
        vec![late, seen.all.max() as f64 / 1e6, open, p99_micros(&seen.memory), back],
    );
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
    first: Histogram<u64>,
    open: Histogram<u64>,
    memory: Histogram<u64>,
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
        *state.begun.lock() = Some(begun);
        if scene.end.is_none() {
            *state.ended.lock() = Some(begun);
        }
        (scene.begin)(server_on, &proxy);
        tokio::time::sleep(outage).await;
        if let Some(end) = scene.end {
            *state.ended.lock() = Some(Instant::now());
            end(server_on, &proxy);
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        state.stop.store(true, Ordering::Relaxed);
        tokio::time::sleep(DEADLINE * 3).await;
    });
    Seen {
        all: state.all.lock().clone(),
        first: state.first.lock().clone(),
        open: state.open.lock().clone(),
        memory: state.memory.lock().clone(),
        back: *state.back.lock(),
        errors: state.errors.load(Ordering::Relaxed),
        admitted: state.admitted.load(Ordering::Relaxed),
    }
}

struct State {
    all: Mutex<Histogram<u64>>,
    first: Mutex<Histogram<u64>>,
    open: Mutex<Histogram<u64>>,
    memory: Mutex<Histogram<u64>>,
    /// Who is asked when Redis does not answer.
    local: MemoryStore,
    begun: Mutex<Option<Instant>>,
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
            first: histogram(),
            open: histogram(),
            memory: histogram(),
            local: MemoryStore::new(),
            begun: Mutex::default(),
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
        let check = [Check::new(&policy, "everybody")];
        let answer = store.decide(&check).await;
        let told = Instant::now();
        let is_failed = answer.is_err();
        if is_failed {
            let _ = black_box(state.local.decide_now(&check));
        }
        let end = Instant::now();
        let nanos = |from: Instant| u64::try_from((end - from).as_nanos()).unwrap_or(u64::MAX);
        state.all.lock().saturating_record(nanos(start));
        if let Some(begun) = *state.begun.lock() {
            if end > begun && start < begun + SURPRISE {
                state.first.lock().saturating_record(nanos(start));
            }
            // Those of the first moments are no more than there are tasks.
            if is_failed && start > begun + SURPRISE {
                state.open.lock().saturating_record(nanos(start));
                state.memory.lock().saturating_record(nanos(told));
            }
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
