//! Redis against memory on real time: the same questions at the same moments get the same answers, but for
//! waits, which a clock that shows microseconds rounds up.

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Cost, Decision, Key, KeyOperation, ManualClock, MemoryStore, Outcome, Policy,
    PolicyStatus, Quota, Reservation, Store, Window,
};
use dashpot_redis::RedisStore;
use dashpot_testkit::RedisServer;
use fastrand::Rng;

/// Whatever happens beside it.
const PATIENT: Duration = Duration::from_secs(20);
/// How long a trace is.
const CALLS: usize = 12_000;
const KEYS: [&str; 4] = ["a", "b", "c", ""];

/// The two, and what is to be settled on both.
struct Pair {
    redis: RedisStore,
    memory: MemoryStore,
    clock: ManualClock,
    open: Vec<(Reservation, Reservation)>,
    /// How often the answer was yes, and no.
    answers: [usize; 2],
}

/// What a status says, with waits rounded up to microseconds.
#[derive(Debug, PartialEq)]
struct Told {
    outcome: Outcome,
    never: bool,
    limit: u64,
    remaining: u64,
    reset_after: Duration,
    retry_after: Option<Duration>,
    available_after: Option<Duration>,
    delay: Duration,
}

fn told(status: &PolicyStatus<'_>) -> Told {
    let micros = |wait: Duration| Duration::from_micros(wait.as_nanos().div_ceil(1000) as u64);
    Told {
        outcome: status.outcome(),
        never: status.is_never(),
        limit: status.limit(),
        remaining: status.remaining(),
        reset_after: micros(status.reset_after()),
        retry_after: status.retry_after().map(micros),
        available_after: status.available_after().map(micros),
        delay: micros(status.delay()),
    }
}

fn compare(redis: &Decision<'_>, memory: &Decision<'_>) -> Result<(), String> {
    let theirs: Vec<_> = redis.statuses().iter().map(told).collect();
    let ours: Vec<_> = memory.statuses().iter().map(told).collect();
    if redis.outcome() == memory.outcome() && theirs == ours {
        return Ok(());
    }
    Err(format!("at {:?}\nredis {theirs:#?}\nmemory {ours:#?}", redis.at()))
}

impl Pair {
    async fn ask(&mut self, checks: &[Check<'_, '_>], keep: bool) -> Result<(), String> {
        let redis = self.redis.decide(checks).await.map_err(|error| format!("{error:?}"))?;
        self.clock.set(redis.at());
        let memory = self.memory.decide(checks).await.unwrap();
        compare(&redis, &memory)?;
        self.answers[usize::from(!redis.is_allowed())] += 1;
        // Of those that are merged, which one is settled is not said.
        let alone = |check: &&Check<'_, '_>| {
            let same = |other: &&Check<'_, '_>| {
                other.policy.name() == check.policy.name() && other.key == check.key
            };
            // Nor how it is rounded if a window has changed since.
            let is_plain = !check.policy.is_any_window();
            is_plain && check.cost > Cost::PEEK && checks.iter().filter(same).count() == 1
        };
        // A permit that is never settled stays out for ever.
        let kept =
            |check: &&Check<'_, '_>| keep || check.policy.algorithm() == Algorithm::Concurrency;
        for check in checks.iter().filter(alone).filter(kept) {
            self.open.extend(check.reservation(&redis).zip(check.reservation(&memory)));
        }
        Ok(())
    }

    async fn settle(&mut self, which: usize, used: Cost) -> Result<(), String> {
        let (theirs, ours) = self.open.swap_remove(which % self.open.len());
        let settled = self.redis.settle(&theirs, used).await;
        self.clock.set(settled.map_err(|error| format!("{error:?}"))?);
        self.memory.settle(&ours, used).await.unwrap();
        Ok(())
    }

    async fn manage(
        &mut self,
        policy: &Policy,
        key: &str,
        operation: KeyOperation,
    ) -> Result<(), String> {
        let key = Key::from(key);
        let redis = self.redis.manage(policy, key, operation).await;
        let redis = redis.map_err(|error| format!("{error:?}"))?;
        self.clock.set(redis.at());
        let memory = self.memory.manage(policy, key, operation).await.unwrap();
        compare(&redis, &memory)
    }
}

/// Some policies of an algorithm: tight ones, over in a moment.
fn policies(algorithm: Algorithm, random: &mut Rng) -> Vec<Policy> {
    let micros = [1000, 2500, 3333, 7919, 20_000, 50_000];
    let policy = |number: usize| {
        let name = format!("{}-{number}", algorithm.name());
        let length = Duration::from_micros(micros[random.usize(..micros.len())]);
        let rate = Quota::new(random.u64(1..=9), Window::new(length).unwrap());
        let build = |quota| Policy::builder(name, quota).algorithm(algorithm);
        let builder = match (algorithm, random.u8(..3)) {
            (Algorithm::Concurrency, _) => build(Quota::concurrent(random.u64(1..=9))),
            (Algorithm::TokenBucket | Algorithm::LeakyBucket, 0) => {
                build(rate.burst(random.u64(1..=20)))
            }
            (Algorithm::LeakyBucket, 1) => {
                let queue = random.u64(1..=12);
                build(rate).queue(queue).undelayed(random.u64(0..=queue))
            }
            _ => build(rate),
        };
        builder.build().unwrap()
    };
    (0..3).map(policy).collect()
}

/// Some definitions of one bucket that any window will do for, no two of them as deep.
fn any_window(algorithm: Algorithm, random: &mut Rng) -> Vec<Policy> {
    let micros = [1000, 2500, 3333, 7919, 20_000, 50_000];
    let policy = |depth: u64| {
        let length = Duration::from_micros(micros[random.usize(..micros.len())]);
        let count = [1, 3, 7, 11, 13, 90][random.usize(..6)];
        let quota = Quota::new(count, Window::new(length).unwrap());
        let name = format!("{}-any", algorithm.name());
        let build = |quota| Policy::builder(name, quota).algorithm(algorithm).any_window();
        let builder = match (algorithm, random.bool()) {
            (Algorithm::LeakyBucket, true) => {
                build(quota).queue(depth - 1).undelayed(random.u64(0..depth))
            }
            _ => build(quota.burst(depth)),
        };
        builder.build().unwrap()
    };
    [2, 5, 8, 12].map(policy).to_vec()
}

/// Asks the two the same, this many times, and more often the more they have to say.
async fn play(pair: &mut Pair, policies: &[Policy], random: &mut Rng) -> Result<(), String> {
    for call in 0..CALLS {
        let (policy, key) = (random.choice(policies).unwrap(), KEYS[random.usize(..KEYS.len())]);
        let cost = |random: &mut Rng| if random.u8(..4) > 0 { 1 } else { random.u64(0..=10) };
        let result = match random.u8(..100) {
            0..60 => {
                let check = Check::new(policy, key).cost(cost(random));
                pair.ask(&[check], random.u8(..4) == 0).await
            }
            60..80 => {
                let checks: Vec<_> = (0..random.usize(2..=5))
                    .map(|_| {
                        let key = if random.bool() { key } else { KEYS[random.usize(..4)] };
                        Check::new(random.choice(policies).unwrap(), key).cost(cost(random))
                    })
                    .collect();
                pair.ask(&checks, random.u8(..4) == 0).await
            }
            80..96 if !pair.open.is_empty() => {
                let which = random.usize(..pair.open.len());
                let cost = pair.open[which].0.cost().units();
                let used = [0, cost, cost / 2, cost + 1, random.u64(0..=cost + 3)];
                pair.settle(which, Cost::new(used[random.usize(..used.len())])).await
            }
            96 => pair.manage(policy, key, KeyOperation::Peek).await,
            97 => pair.manage(policy, key, KeyOperation::Reset).await,
            98 if random.u8(..8) == 0 => {
                let until = pair.memory.now().after(Duration::from_micros(random.u64(0..5000)));
                pair.manage(policy, key, KeyOperation::Block(until)).await
            }
            98 => pair.manage(policy, key, KeyOperation::Unblock).await,
            99 => {
                tokio::time::sleep(Duration::from_micros(random.u64(0..20_000))).await;
                Ok(())
            }
            _ => Ok(()),
        };
        result.map_err(|difference| format!("call {call}: {difference}"))?;
    }
    Ok(())
}

async fn equals_memory(algorithms: &[Algorithm]) {
    let mut random = Rng::new();
    let of_all = algorithms.iter().flat_map(|algorithm| policies(*algorithm, &mut random));
    let policies = of_all.collect();
    equal(policies, random).await;
}

async fn equal(policies: Vec<Policy>, mut random: Rng) {
    let server = RedisServer::start();
    let redis = RedisStore::builder(server.url()).deadline(PATIENT);
    let redis = redis.connect_timeout(PATIENT).denial_memory(Duration::ZERO).start().unwrap();
    redis.ready(Duration::from_secs(5)).await.unwrap();
    let seed = random.get_seed();
    let clock = ManualClock::default();
    let memory = MemoryStore::with_clock(clock.clone());
    let mut pair = Pair { redis, memory, clock, open: Vec::new(), answers: [0; 2] };
    // Else it says little: on a slow machine more time passes between two calls, and less is denied.
    let is_enough = |answers: &[usize; 2]| answers.iter().all(|count| *count > CALLS / 20);
    for _ in 0..5 {
        let played = play(&mut pair, &policies, &mut random).await;
        assert!(played.is_ok(), "seed {seed}, {policies:?}\n{}", played.unwrap_err());
        if is_enough(&pair.answers) {
            break;
        }
    }
    let often = is_enough(&pair.answers);
    assert!(often, "seed {seed}, {policies:?}: yes and no {:?} times", pair.answers);
    eprintln!("yes and no {:?} times", pair.answers);
    assert!(server.keys_without_ttl().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_bucket_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::TokenBucket]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leaky_bucket_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::LeakyBucket]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn buckets_of_any_window_equal_those_in_memory() {
    let mut random = Rng::new();
    let buckets = [Algorithm::TokenBucket, Algorithm::LeakyBucket].into_iter();
    let policies = buckets.flat_map(|algorithm| any_window(algorithm, &mut random)).collect();
    equal(policies, random).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fixed_window_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::FixedWindow]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_log_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::SlidingLog]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sliding_window_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::SlidingWindow]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrency_equals_the_one_in_memory() {
    equals_memory(&[Algorithm::Concurrency]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_algorithms_together_equal_those_in_memory() {
    equals_memory(&Algorithm::ALL).await;
}
