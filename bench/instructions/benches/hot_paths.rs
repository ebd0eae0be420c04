//! The paths that are taken by the million, to have their instructions counted.
//!
//! What is counted is the body of each function below. What it works on is made before, and handed
//! back so that it is dropped after.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use dashpot::Algorithm::{
    self, Concurrency, FixedWindow, LeakyBucket, SlidingLog, SlidingWindow, TokenBucket,
};
use dashpot::{Check, Clock, Limiter, MemoryStore, Policy, Quota, Reservation, Timestamp};
use dashpot_resp::{Limits, Next, Policies, Reader, Session, Surroundings};
use gungraun::{Callgrind, LibraryBenchmarkConfig};
use gungraun::{library_benchmark, library_benchmark_group, main};

/// How often each path is taken at least, so that what surrounds it does not count.
const TIMES: usize = 1000;

/// A limiter, and the keys to ask it about.
struct Work {
    limiter: Limiter,
    keys: Vec<String>,
}

/// Time that is the same in every run, and a microsecond later each time it is read.
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(self.0.fetch_add(1000, Ordering::Relaxed))
    }
}

fn ticking() -> MemoryStore {
    let start = Timestamp::from_secs(1_700_000_000).as_nanos();
    MemoryStore::with_clock(Ticking(AtomicU64::new(start)))
}

/// A limiter that knows so many keys, to be asked about each in turn.
fn work(quota: &str, algorithm: Algorithm, keys: usize) -> Work {
    on(ticking(), quota, algorithm, keys)
}

/// The same by the machine's clock.
fn by_the_clock(quota: &str, algorithm: Algorithm, keys: usize) -> Work {
    on(MemoryStore::new(), quota, algorithm, keys)
}

fn on(store: MemoryStore, quota: &str, algorithm: Algorithm, keys: usize) -> Work {
    let limiter = Limiter::on(policy("counted", quota, algorithm), store);
    let keys: Vec<String> = (0..TIMES.max(keys)).map(|number| key(number % keys)).collect();
    for key in &keys {
        // Inserts it, and uses up a limit of one.
        let _ = limiter.check(key);
    }
    Work { limiter, keys }
}

fn policy(name: &str, quota: &str, algorithm: Algorithm) -> Policy {
    let quota: Quota = quota.parse().expect("a quota");
    Policy::builder(name, quota).algorithm(algorithm).build().expect("a quota that fits")
}

fn key(number: usize) -> String {
    format!("user-{number:08}")
}

#[library_benchmark(setup = work)]
#[bench::allow_1_key("100/s burst 1M", TokenBucket, 1)]
#[bench::allow_10_000_keys("100/s burst 1M", TokenBucket, 10_000)]
#[bench::deny_1_key("1/h", TokenBucket, 1)]
#[bench::deny_10_000_keys("1/h", TokenBucket, 10_000)]
#[bench::awkward_rate_allow("7/s burst 1M", TokenBucket, 1)]
#[bench::awkward_rate_deny("7/h burst 1", TokenBucket, 1)]
#[bench::leaky_bucket("100/s burst 1M", LeakyBucket, 1)]
#[bench::fixed_window("1M/h", FixedWindow, 1)]
#[bench::sliding_window("1M/h", SlidingWindow, 1)]
#[bench::sliding_log("10k/h", SlidingLog, 1)]
#[bench::concurrency("1M concurrent", Concurrency, 1)]
#[bench::by_the_clock_allow(args = ("100/s burst 1M", TokenBucket, 1), setup = by_the_clock)]
#[bench::by_the_clock_deny(args = ("1/h", TokenBucket, 1), setup = by_the_clock)]
fn check(work: Work) -> Work {
    for key in &work.keys {
        let _ = black_box(work.limiter.check(black_box(key)));
    }
    work
}

/// A store, three policies, and the keys to ask it about.
type ThreeLimits = (MemoryStore, [Policy; 3], Vec<String>);

/// Several stores with many keys, because the way to three slots is not the same for every hash.
fn three(stores: usize) -> Vec<ThreeLimits> {
    let work = |_| {
        let policies = ["a", "b", "c"].map(|name| policy(name, "100/s burst 1M", TokenBucket));
        (ticking(), policies, (0..TIMES).map(key).collect())
    };
    decide_three((0..stores).map(work).collect())
}

fn decide_three(work: Vec<ThreeLimits>) -> Vec<ThreeLimits> {
    for (store, policies, keys) in &work {
        for key in keys {
            let checks = policies.each_ref().map(|policy| Check::new(policy, black_box(key)));
            let _ = black_box(store.decide_now(&checks));
        }
    }
    work
}

#[library_benchmark(setup = three)]
#[bench::allow(16)]
fn three_limits(work: Vec<ThreeLimits>) -> Vec<ThreeLimits> {
    decide_three(work)
}

/// Several limiters, because each store hashes by a seed of its own, and when a table grows goes by
/// the hashes: one insert of ten thousand keys costs up to 7 % more than another, the mean of 32 hardly.
fn newcomers(limiters: usize, keys: usize) -> Vec<Work> {
    let work = |_| Work {
        limiter: Limiter::on(policy("counted", "1/h", TokenBucket), ticking()),
        keys: (0..keys).map(key).collect(),
    };
    (0..limiters).map(work).collect()
}

#[library_benchmark(setup = newcomers)]
#[bench::new_keys(32, 4000)]
fn insert(work: Vec<Work>) -> Vec<Work> {
    for Work { limiter, keys } in &work {
        for key in keys {
            let _ = black_box(limiter.check(black_box(key)));
        }
    }
    work
}

/// A server of Redis's protocol without a connection, and a pipeline to send it.
struct Pipeline {
    store: MemoryStore,
    session: Session,
    policies: Policies,
    reader: Reader,
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Open;
impl Surroundings for Open {}

/// A pipeline of so many commands, sent before.
fn pipeline(terms: &str, keys: usize) -> Pipeline {
    let mut input = Vec::new();
    for number in 0..TIMES {
        let key = key(number % keys);
        let words = ["CL.THROTTLE", &key].into_iter().chain(terms.split(' '));
        let words: Vec<&str> = words.collect();
        input.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            input.extend_from_slice(format!("${}\r\n{word}\r\n", word.len()).as_bytes());
        }
    }
    let pipeline = Pipeline {
        store: ticking(),
        session: Session::new(1, &Open),
        policies: Policies::new("(throttle)"),
        reader: Reader::default(),
        input,
        output: Vec::with_capacity(64 * 1024),
    };
    answer_all(pipeline)
}

fn answer_all(mut pipeline: Pipeline) -> Pipeline {
    let Pipeline { store, session, policies, reader, input, output } = &mut pipeline;
    output.clear();
    let mut rest = black_box(input.as_slice());
    while let Ok(Some((request, length))) = reader.read(rest, Limits::KNOWN) {
        rest = &rest[length..];
        if let Next::Throttle(asked) = session.answer(request, &Open, output) {
            let policy = policies.get(&asked.terms, |_| Ok(())).expect("a policy");
            let decision = store.decide_now(&[Check::new(policy, asked.key).cost(asked.quantity)]);
            asked.answer(&decision, output);
        }
    }
    assert!(rest.is_empty());
    pipeline
}

#[library_benchmark(setup = pipeline)]
#[bench::allow_1_key("1000000 100 1", 1)]
#[bench::allow_1000_keys("1000000 100 1", 1000)]
#[bench::deny_1_key("0 1 3600", 1)]
#[bench::awkward_rate("1000000 7 1", 1)]
fn throttle(work: Pipeline) -> Pipeline {
    answer_all(work)
}

fn reserved(quota: &str, algorithm: Algorithm) -> (MemoryStore, Vec<Reservation>) {
    let (store, key) = (ticking(), key(0));
    let policy = policy("counted", quota, algorithm);
    let check = Check::new(&policy, &key).cost(10);
    let reserve = |_| check.reservation(&store.decide_now(&[check])).expect("allowed");
    let reservations = (0..TIMES).map(reserve).collect();
    (store, reservations)
}

#[library_benchmark(setup = reserved)]
#[bench::token_bucket("100/s burst 1M", TokenBucket)]
#[bench::concurrency("1M concurrent", Concurrency)]
fn settle(work: (MemoryStore, Vec<Reservation>)) -> (MemoryStore, Vec<Reservation>) {
    let (store, reservations) = &work;
    for reservation in reservations {
        store.settle_now(black_box(reservation), 5.into());
    }
    work
}

library_benchmark_group!(
    name = hot_paths,
    benchmarks = [check, three_limits, insert, throttle, settle]
);

main!(
    // Instructions are all that is kept; simulated caches would take twice the time.
    config = LibraryBenchmarkConfig::default().tool(Callgrind::with_args(["cache-sim=no"])),
    library_benchmark_groups = hot_paths
);
