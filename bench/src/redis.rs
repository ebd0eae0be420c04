//! dashpot on Redis: how much one server decides, and what a dead one costs.

mod leases;
mod outage;

use std::process::Command;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Policy, Quota, Store, Window};
use dashpot_redis::RedisStore;
use dashpot_testkit::{RedisServer, limit};
use tokio::runtime::Runtime;

use crate::Scale;
use crate::results::{self, Wanted};
use crate::table::{Table, count, median, number, ratio};

pub(crate) use leases::{child, report as report_leases};
pub(crate) use outage::report as report_outages;

/// The least that a limiter on Redis does: one key, one number, one clock.
pub(crate) const MINIMAL: &str = "
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tat = tonumber(redis.call('GET', KEYS[1]) or now)
local unit, depth = tonumber(ARGV[1]), tonumber(ARGV[2])
if tat < now then tat = now end
local new = tat + unit
if new - depth > now then return {0, string.format('%.0f', new - depth - now)} end
redis.call('SET', KEYS[1], string.format('%.0f', new), 'PX', math.ceil((new - now) / 1000))
return {1, string.format('%.0f', new - now)}";

/// What dashpot calls for one check.
const DECIDE: &str = concat!(
    include_str!("../../crates/dashpot-redis/src/lua/convert.lua"),
    include_str!("../../crates/dashpot-redis/src/lua/held.lua"),
    include_str!("../../crates/dashpot-redis/src/lua/checks.lua"),
    include_str!("../../crates/dashpot-redis/src/lua/decide.lua")
);

const KEYS: usize = 10_000;

pub(crate) fn runtime() -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2).enable_all().build().expect("a runtime")
}

pub(crate) fn report(scale: Scale) {
    let rounds = if scale == Scale::Full { 5 } else { 3 };
    let server = RedisServer::start();
    let mut figures: Vec<Vec<f64>> = vec![Vec::new(); SUBJECTS.len()];
    for _ in 0..rounds {
        for (subject, figures) in SUBJECTS.iter().zip(&mut figures) {
            server.command(&["FLUSHALL"]);
            figures.push((subject.run)(&server));
        }
    }
    for (subject, figures) in SUBJECTS.iter().zip(&figures) {
        results::samples(format!("redis, {}", subject.name), figures.clone());
    }
    let medians: Vec<f64> = figures.into_iter().map(median).collect();
    let (same, minimal) = (medians[0], medians[1]);
    // A few tasks, and as many as redis-benchmark has calls under way.
    for (tasks, own) in [(256, medians[2]), (800, medians[3])] {
        let work = format!("exact checks on one Redis, {tasks} tasks");
        results::goal("P10", work.clone(), Wanted::AtLeast(0.85), own / same, "× the same script");
        results::goal("P10", work, Wanted::AtLeast(0.6), own / minimal, "× a minimal script");
    }
    results::rate("Redis + Lua", minimal);
    let named = SUBJECTS.iter().map(|one| one.name.replace("redis-benchmark", "benchmark"));
    let bars = named.zip(medians.iter().copied());
    results::chart("redis", "Exact checks on one Redis", "checks a second", bars);
    let mut table = Table::new(["who asks", "checks/s", "÷ same script", "÷ minimal script"]);
    for (subject, &figure) in SUBJECTS.iter().zip(&medians) {
        let cells = [ratio(figure, medians[0]), ratio(figure, medians[1])];
        table.row([subject.name.to_owned(), count(figure)].into_iter().chain(cells));
    }
    table.print(
        "Exact checks on one Redis",
        "Checks a second, all allowed, 10 000 keys, the server and whoever asks on the same two cores; medians. \
         Wanted: dashpot at least 0.85 of what redis-benchmark gets from the same script, pipelined, and 0.6 of \
         what it gets from a minimal one. 800 tasks ask for as much at once as redis-benchmark does.",
    );
    bytes();
}

struct Subject {
    name: &'static str,
    run: fn(&RedisServer) -> f64,
}

const SUBJECTS: [Subject; 9] = [
    Subject {
        name: "redis-benchmark, same script, 50 × 16",
        run: |server| {
            let call = "1 b _ 10000 0 990000000 0 1000";
            let call: Vec<_> =
                call.split(' ').map(|one| one.replace('_', " 0 1:10000000")).collect();
            benchmark(server, DECIDE, &call)
        },
    },
    Subject {
        name: "redis-benchmark, minimal script, 50 × 16",
        run: |server| benchmark(server, MINIMAL, &["10000".to_owned(), "1000000000".to_owned()]),
    },
    Subject { name: "dashpot, 256 tasks", run: |server| dashpot(server, 256, 1) },
    Subject { name: "dashpot, 800 tasks", run: |server| dashpot(server, 800, 1) },
    Subject { name: "dashpot, 16 tasks", run: |server| dashpot(server, 16, 1) },
    Subject { name: "dashpot, 1 task", run: |server| dashpot(server, 1, 1) },
    Subject {
        name: "dashpot, 256 tasks, three limits each",
        run: |server| dashpot(server, 256, 3),
    },
    Subject {
        name: "one connection per task (50), no pipeline",
        run: |server| naive(server, false),
    },
    Subject { name: "one connection per check, 50 tasks", run: |server| naive(server, true) },
];

/// What redis-benchmark gets from a script, in calls a second.
fn benchmark(server: &RedisServer, script: &str, arguments: &[String]) -> f64 {
    let hash = server.command(&["SCRIPT", "LOAD", script]).text();
    let errors = || server.info("total_error_replies");
    let errors_before = errors();
    let output = Command::new("redis-benchmark")
        .args(["-p", &server.port().to_string(), "-n", "200000", "-c", "50", "-P", "16", "--csv"])
        .args([
            "-r",
            &KEYS.to_string(),
            "EVALSHA",
            &hash,
            "1",
            "dashpot:{user-__rand_int__}:api:t1",
        ])
        .args(arguments)
        .output()
        .expect("redis-benchmark is installed: scripts/redis installs it");
    // It does not look at what it is told.
    assert_eq!(errors(), errors_before, "scripts are answered");
    let text = String::from_utf8_lossy(&output.stdout);
    let last = text.lines().last().and_then(|line| line.split("\",\"").nth(1));
    last.and_then(|rate| rate.trim_matches('"').parse().ok()).unwrap_or(f64::NAN)
}

/// So many tasks on one store, in calls a second.
fn dashpot(server: &RedisServer, tasks: usize, limits: usize) -> f64 {
    let runtime = runtime();
    runtime.block_on(async {
        let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(5)).start();
        let store = store.expect("a right URL");
        store.ready(Duration::from_secs(5)).await.expect("Redis answers");
        let names = ["second", "minute", "hour"];
        let policies = names.map(|name| {
            Policy::new(name, Quota::per_second(100).burst(100_000)).expect("a right policy")
        });
        let calls = if tasks == 1 { 20_000 } else { 150_000 };
        let each = calls / tasks;
        let start = Instant::now();
        let asking: Vec<_> = (0..tasks)
            .map(|task| {
                let (store, policies) = (store.clone(), policies.clone());
                tokio::spawn(async move {
                    for call in 0..each {
                        let key = format!("user-{:012}", (task * 7919 + call * 31) % KEYS);
                        let checks: Vec<_> =
                            policies.iter().take(limits).map(|one| Check::new(one, &key)).collect();
                        let decision = store.decide(&checks).await.expect("Redis answers");
                        assert!(decision.is_allowed(), "limits are too high to reach");
                    }
                })
            })
            .collect();
        for one in asking {
            one.await.expect("no panic");
        }
        (each * tasks) as f64 / start.elapsed().as_secs_f64()
    })
}

/// What people write: a connection for each task, or for each check.
fn naive(server: &RedisServer, per_check: bool) -> f64 {
    let runtime = runtime();
    let hash = server.command(&["SCRIPT", "LOAD", MINIMAL]).text();
    let client = redis::Client::open(server.url()).expect("a right URL");
    let (tasks, each) = if per_check { (50, 40) } else { (50, 1000) };
    runtime.block_on(async {
        let start = Instant::now();
        let asking: Vec<_> = (0..tasks)
            .map(|task: usize| {
                let (client, hash) = (client.clone(), hash.clone());
                tokio::spawn(async move {
                    let mut connection = connect(&client).await;
                    for call in 0..each {
                        if per_check && call > 0 {
                            connection = connect(&client).await;
                        }
                        let key = format!("user-{:012}", (task * 7919 + call * 31) % KEYS);
                        let mut check = redis::cmd("EVALSHA");
                        check.arg(&hash).arg(1).arg(key).arg(10_000).arg(1_000_000_000);
                        let _: redis::Value =
                            check.query_async(&mut connection).await.expect("Redis answers");
                    }
                })
            })
            .collect();
        for one in asking {
            one.await.expect("no panic");
        }
        (tasks * each) as f64 / start.elapsed().as_secs_f64()
    })
}

async fn connect(client: &redis::Client) -> redis::aio::MultiplexedConnection {
    client.get_multiplexed_async_connection().await.expect("Redis answers")
}

/// What a key takes on the server.
fn bytes() {
    let server = RedisServer::start();
    let mut table = Table::new(["algorithm", "bytes per key"]);
    let runtime = runtime();
    for algorithm in Algorithm::ALL {
        server.command(&["FLUSHALL"]);
        let policy = limit("api", algorithm, 100, Window::HOUR);
        let used =
            |server: &RedisServer| server.info("used_memory").parse::<f64>().unwrap_or(f64::NAN);
        let before = used(&server);
        runtime.block_on(async {
            let store = RedisStore::builder(server.url()).deadline(Duration::from_secs(5)).start();
            let store = store.expect("a right URL");
            for number in 0..KEYS {
                let key = format!("user-{number:08}");
                let decision = store.decide(&[Check::new(&policy, &key)]).await;
                assert!(decision.expect("Redis answers").is_allowed());
            }
        });
        let each = (used(&server) - before) / KEYS as f64;
        results::samples(format!("a key on Redis, {}, bytes", algorithm.name()), vec![each]);
        table.row([algorithm.name().to_owned(), number(each)]);
    }
    table.print(
        "A key on Redis",
        "Growth of used_memory for 10 000 keys of one check each, key names of some 35 bytes and the table of \
         keys included. A sliding log takes more with every instant it remembers, concurrency with every permit.",
    );
}
