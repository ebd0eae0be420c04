//! Nothing is left behind: as many bytes live after a hundred million operations as after a few.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::thread;
use std::time::{Duration, Instant};

use dashpot::{Algorithm, Check, Limiter, ManualClock, MemoryStore, Window};
use dashpot_testkit::limit;

const OPERATIONS: u64 = 100_000_000;
const THREADS: u64 = 2;
const ROUNDS: u64 = 20;
/// Those in which everything that grows has grown to its size, give or take a page.
const WARM_UP: usize = 8;

const SECOND: Duration = Duration::from_secs(1);

struct Scene {
    store: Arc<MemoryStore>,
    clock: ManualClock,
    api: Limiter,
    others: Vec<Limiter>,
}

impl Scene {
    fn new() -> Self {
        let clock = ManualClock::default();
        let store = MemoryStore::builder().clock(clock.clone()).max_keys(12_000).build();
        let store = Arc::new(store);
        let limiter = |name, algorithm, count, window| {
            Limiter::on(limit(name, algorithm, count, window), store.clone())
        };
        let api = limiter("api", Algorithm::TokenBucket, 10, Window::SECOND);
        let one_of_each = Algorithm::ALL.into_iter();
        let others =
            one_of_each.map(|algorithm| limiter(algorithm.name(), algorithm, 3, Window::SECOND));
        let others = others.collect();
        Self { clock, api, others, store }
    }

    /// One of everything but the checks that are most of it, on this key. Says how many operations
    /// that was.
    fn rarities(&self, number: u64) -> u64 {
        let key = number.to_be_bytes();
        let limiter = &self.others[(number % 6) as usize];
        let _ = limiter.check(&key);
        if let Ok(reservation) = limiter.reserve(&key, 2) {
            limiter.settle(reservation, number % 5);
        }
        drop(self.others[5].acquire(&key));
        let checks = [&self.api, limiter, &self.others[3]];
        let checks = checks.map(|limiter| Check::new(limiter.policy(), &key));
        let _ = self.store.decide_now(&checks);
        limiter.block(&key, SECOND);
        limiter.unblock(&key);
        let waiting = pin!(limiter.until_ready(&key, 3, SECOND));
        let _ = waiting.poll(&mut Context::from_waker(Waker::noop()));
        limiter.reset(&key);
        if number.is_multiple_of(16) {
            limiter.block(&key, SECOND);
        }
        9
    }

    /// So many operations of one thread, on keys that come, stay for a while and go.
    fn work(&self, thread: u64, round: u64, operations: u64) {
        let (mut done, mut step) = (0, 0);
        let mut random = thread * ROUNDS + round + 1;
        // More keys at once than there is room for.
        for number in 0..20_000 {
            let key = u64::MAX - (round * THREADS + thread) * 20_000 - number;
            let _ = self.others[(number % 5) as usize].check(&key.to_be_bytes());
            done += 1;
        }
        while done < operations {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            step += 1;
            let newest = (round * operations + step) / 32;
            let key = newest + random % 8_000;
            let _ = self.api.check(&key.to_be_bytes());
            done += 1;
            if step % 128 == 0 {
                done += self.rarities(key);
            }
            if step % 4096 == 0 {
                // Some seconds in all for the keys that are in use at a time.
                self.clock.advance(SECOND / 4);
            }
        }
    }
}

/// The bytes that were left behind by all threads together in one round: what one allocates and
/// another frees adds up to nothing.
fn round(scene: &Scene, round: u64) -> i64 {
    let run = |thread| {
        let operations = OPERATIONS / ROUNDS / THREADS;
        allocation_counter::measure(|| scene.work(thread, round, operations)).bytes_current
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|thread| scope.spawn(move || run(thread))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

#[test]
fn nothing_is_left_behind() {
    let start = Instant::now();
    let scene = Scene::new();
    let mut live = Vec::new();
    for number in 0..ROUNDS {
        let before = live.last().copied().unwrap_or(0);
        live.push(before + round(&scene, number));
    }
    let usage = scene.store.usage();
    println!("{OPERATIONS} operations in {:?}, live bytes {live:?}, {usage:?}", start.elapsed());
    assert!(usage.reclaimed > 1_000_000, "keys came and went: {usage:?}");
    assert!(usage.overflowed > 0, "some found no room: {usage:?}");
    assert_eq!(scene.store.waiting(), 0);
    let most = *live[..WARM_UP].iter().max().unwrap();
    for later in &live[WARM_UP..] {
        assert!(*later <= most + most / 10, "{later} bytes live, {most} when it was warm");
    }
}
