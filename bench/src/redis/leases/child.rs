//! One of the processes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use dashpot::{Check, Consistency, MemoryStore, Policy, Quota, Store};
use dashpot_redis::RedisStore;
use hdrhistogram::Histogram;

use super::{WATCHED, WINDOWS};
use crate::machine;

/// Tasks that ask at the same time.
const TASKS: usize = 64;

/// How many checks a task makes before it lets others go on, as a server does between requests.
const TURN: usize = 64;

/// One in so many checks is timed.
const TIMED: usize = 16;

/// How many keys a task picks before it picks the same again.
const PICKS: usize = 1 << 14;

/// What is needed to ask.
struct Work<S> {
    store: S,
    policy: Policy,
    keys: Vec<String>,
    /// Which keys are asked about, in order.
    picks: Vec<u32>,
    /// How often each of the hottest was granted.
    granted: [AtomicU64; WATCHED],
    /// How often the hottest was granted in each second, by the store's clock.
    by_second: [AtomicU64; WINDOWS],
    ends: Instant,
}

/// Says how many checks there were, in how many seconds, in how many nanoseconds of a processor, p50 and p99 in
/// microseconds, how often each of the watched keys was granted, and the hottest in each second.
pub(crate) fn child(args: &[&str]) -> Vec<f64> {
    let [mode, url, algorithm, numbers @ ..] = args else { panic!("what to do, and numbers") };
    let number = |at: usize| numbers[at].parse::<u64>().expect("a number");
    let (keys, rate, process) = (number(0), number(1), number(2));
    let (begin, lasts) = (Duration::from_millis(number(3)), Duration::from_millis(number(4)));
    let consistency = mode.parse().unwrap_or(Consistency::Exact);
    let quota = Quota::per_second(rate);
    let policy = Policy::builder("hot", quota)
        .algorithm(algorithm.parse().expect("an algorithm"))
        .consistency(consistency)
        .build()
        .expect("a right policy");
    let named = (0..keys).map(|key| format!("user-{key:08}")).collect();
    let picks = picks(keys, process);
    // One thread each: four processes have more than enough to do on the cores of a usual machine.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        let granted = std::array::from_fn(|_| AtomicU64::new(0));
        let by_second = std::array::from_fn(|_| AtomicU64::new(0));
        let ends = Instant::now();
        let work = Work { store: (), policy, keys: named, picks, granted, by_second, ends };
        if *mode == "memory" {
            return ask(work, MemoryStore::new(), begin, lasts).await;
        }
        let store = RedisStore::builder(*url).deadline(Duration::from_secs(5)).start();
        let store = store.expect("a right URL");
        store.ready(Duration::from_secs(5)).await.expect("Redis answers");
        let figures = ask(work, store.clone(), begin, lasts).await;
        store.release().await;
        figures
    })
}

async fn ask<S: Store + Send + Sync + 'static>(
    work: Work<()>,
    store: S,
    begin: Duration,
    lasts: Duration,
) -> Vec<f64> {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    tokio::time::sleep(begin.saturating_sub(now)).await;
    let (start, before) = (Instant::now(), machine::on_cpu());
    let Work { policy, keys, picks, granted, by_second, .. } = work;
    let ends = start + lasts;
    let work = Arc::new(Work { store, policy, keys, picks, granted, by_second, ends });
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(task_of(work.clone(), task))).collect();
    let mut checks = 0;
    let mut times = Histogram::<u64>::new(3).expect("a histogram");
    for task in tasks {
        let (count, own) = task.await.expect("a task ends");
        checks += count;
        times.add(own).expect("the same range");
    }
    let (seconds, on_cpu) = (start.elapsed().as_secs_f64(), machine::on_cpu() - before);
    let quantile = |part: f64| times.value_at_quantile(part) as f64 / 1000.0;
    let granted = work.granted.iter().chain(&work.by_second);
    let granted = granted.map(|count| count.load(Ordering::Relaxed) as f64);
    let figures = [checks as f64, seconds, on_cpu, quantile(0.5), quantile(0.99)];
    figures.into_iter().chain(granted).collect()
}

async fn task_of<S: Store>(work: Arc<Work<S>>, task: usize) -> (u64, Histogram<u64>) {
    let mut times = Histogram::<u64>::new(3).expect("a histogram");
    let (mut checks, mut at) = (0, task * 257);
    while Instant::now() < work.ends {
        for turn in 0..TURN {
            let pick = work.picks[at % PICKS] as usize;
            at += 1;
            let check = Check::new(&work.policy, &work.keys[pick]);
            let timed = (turn % TIMED == 0).then(Instant::now);
            let decided = work.store.decide(&[check]).await.expect("Redis answers");
            if let Some(timed) = timed {
                let nanos = u64::try_from(timed.elapsed().as_nanos()).unwrap_or(u64::MAX);
                times.record(nanos).expect("it grows");
            }
            if decided.is_allowed()
                && let Some(count) = work.granted.get(pick)
            {
                count.fetch_add(1, Ordering::Relaxed);
                if pick == 0 {
                    let second = decided.at().as_nanos() / 1_000_000_000;
                    work.by_second[second as usize % WINDOWS].fetch_add(1, Ordering::Relaxed);
                }
            }
            checks += 1;
        }
        tokio::task::yield_now().await;
    }
    (checks, times)
}

/// Which keys are asked about: the first most often, by Zipf's law with an exponent of 1.1.
fn picks(keys: u64, process: u64) -> Vec<u32> {
    let weights = (1..=keys).scan(0.0, |sum, rank| {
        *sum += (rank as f64).powf(-1.1);
        Some(*sum)
    });
    let sums: Vec<f64> = weights.collect();
    let all = sums.last().copied().unwrap_or(1.0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(process + 1);
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..PICKS)
        .map(|_| {
            let draw = draw() * all;
            u32::try_from(sums.partition_point(|&sum| sum <= draw)).expect("a key")
        })
        .collect()
}
