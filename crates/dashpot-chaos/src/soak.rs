//! What all parts of a soak know of: the time, what is broken, what was admitted, and what went wrong.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::deadline::Deadlines;
use crate::fleet::{Door, Fleet};
use crate::pace::Pace;
use crate::permits::Held;
use crate::recovery;
use crate::rules::{INSTANCES, Limit};
use crate::tally::{Allowance, Bound, Tally};
use crate::troubles::{Trouble, Troubles};

/// So many mistakes are told; more of them tell nothing new.
const TOLD: usize = 20;

pub(crate) struct Soak {
    begun: Instant,
    length: Duration,
    pub(crate) seed: u64,
    pub(crate) runtime: Handle,
    pub(crate) fleet: Fleet,
    pub(crate) troubles: Troubles,
    pub(crate) pace: Pace,
    limits: Mutex<HashMap<String, Counted>>,
    pub(crate) calls: Mutex<BTreeMap<&'static str, Calls>>,
    pub(crate) faults: Mutex<BTreeMap<&'static str, Vec<f64>>>,
    pub(crate) deadlines: Mutex<Deadlines>,
    pub(crate) permits: Mutex<BTreeMap<&'static str, Held>>,
    wrong: Mutex<(usize, Vec<String>)>,
    late: AtomicUsize,
    over: AtomicBool,
}

/// One key of a limit.
#[derive(Debug)]
pub(crate) struct Counted {
    pub(crate) limit: Limit,
    pub(crate) in_memory: bool,
    pub(crate) tally: Tally,
}

impl Counted {
    pub(crate) fn new(limit: Limit, door: Door) -> Self {
        Self { limit, in_memory: door == Door::Alone, tally: Tally::new(limit.bound) }
    }
}

/// What came of calls to one limit.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Calls {
    pub(crate) admitted: u64,
    pub(crate) denied: u64,
    /// Since Redis, the backend or the one who was asked was not there.
    pub(crate) excused: u64,
    /// By callers with manners.
    pub(crate) given_up: u64,
    /// The longest that nothing excuses, in seconds.
    pub(crate) longest: f64,
}

impl Soak {
    pub(crate) fn new(fleet: Fleet, seed: u64, length: Duration, runtime: Handle) -> Self {
        let begun = Instant::now();
        Self {
            begun,
            length,
            seed,
            runtime,
            fleet,
            troubles: Troubles::default(),
            pace: Pace::watch(begun),
            limits: Mutex::default(),
            calls: Mutex::default(),
            faults: Mutex::default(),
            deadlines: Mutex::default(),
            permits: Mutex::default(),
            wrong: Mutex::default(),
            late: AtomicUsize::new(0),
            over: AtomicBool::new(false),
        }
    }

    /// Seconds since it began.
    pub(crate) fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Whether no more faults are to begin.
    pub(crate) fn is_late(&self) -> bool {
        self.begun.elapsed() >= self.length
    }

    /// How long faults begin, in seconds.
    pub(crate) fn length(&self) -> f64 {
        self.length.as_secs_f64()
    }

    /// How much of its time has passed: 1 is all.
    pub(crate) fn part(&self) -> f64 {
        self.now() / self.length()
    }

    /// Whether nobody is to call any more.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Something that must never be.
    pub(crate) fn wrong(&self, what: &str) {
        let told = format!("{:8.3} s  WRONG  {what}", self.now());
        let mut wrong = lock(&self.wrong);
        wrong.0 += 1;
        if wrong.1.len() < TOLD {
            println!("{told}");
            wrong.1.push(told);
        }
    }

    /// Redis did not answer in time though nobody did anything to it: on a busy machine that may be, now and then.
    pub(crate) fn late_without_reason(&self) {
        self.late.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn how_often_late(&self) -> usize {
        self.late.load(Ordering::Relaxed)
    }

    /// How often, and the first of them.
    pub(crate) fn all_wrong(&self) -> (usize, Vec<String>) {
        lock(&self.wrong).clone()
    }

    pub(crate) fn limits(&self) -> MutexGuard<'_, HashMap<String, Counted>> {
        lock(&self.limits)
    }

    /// A key that will be asked about: what is allowed besides, from now on, is allowed to it as well.
    pub(crate) fn expect(&self, key: &str, limit: Limit, door: Door) {
        self.limits().entry(key.to_owned()).or_insert_with(|| Counted::new(limit, door));
    }

    /// Somebody was admitted under this key.
    pub(crate) fn admitted(&self, key: &str, limit: Limit, door: Door, sent: f64, received: f64) {
        let mut limits = self.limits();
        let counted = limits.entry(key.to_owned()).or_insert_with(|| Counted::new(limit, door));
        if let Err(excess) = counted.tally.admit(sent, received) {
            drop(limits);
            self.wrong(&format!("{key}: {excess}"));
        }
    }

    /// Redis forgets what it has: each limit there may be used once more. Tells how to end that.
    pub(crate) fn redis_forgets(&self, times: f64) -> Besides {
        self.besides(|limit| {
            let capacity = limit.bound.capacity * times;
            Some(Bound { capacity, per_second: 0.0 })
        })
    }

    /// Redis cannot be asked, by one at least: those limits that are local then are granted by each for itself.
    pub(crate) fn decided_locally(&self) -> Besides {
        self.besides(|limit| {
            let Bound { capacity, per_second } = limit.bound;
            // One that starts meanwhile takes itself for the only one.
            let all = Bound { capacity: capacity * INSTANCES, per_second: per_second * INSTANCES };
            limit.local.then_some(all)
        })
    }

    fn besides(&self, bound: impl Fn(&Limit) -> Option<Bound>) -> Besides {
        let from = self.now();
        let mut limits = self.limits();
        let on_redis = limits.iter_mut().filter(|(_, counted)| !counted.in_memory);
        let numbers = on_redis.filter_map(|(key, counted)| {
            let bound = bound(&counted.limit)?;
            Some((key.clone(), counted.tally.allow(Allowance { from, to: None, bound })))
        });
        Besides(numbers.collect())
    }

    pub(crate) fn no_more(&self, besides: &Besides) {
        let now = self.now();
        let mut limits = self.limits();
        for (key, number) in &besides.0 {
            if let Some(counted) = limits.get_mut(key) {
                counted.tally.allow_no_more(*number, now);
            }
        }
    }

    /// The one in memory forgets what it admitted from then on.
    pub(crate) fn memory_forgets(&self, since: f64) {
        let now = self.now();
        for counted in self.limits().values_mut().filter(|counted| counted.in_memory) {
            // And what is under way, of the one who calls; but no more than it could ever forget.
            let answered = counted.tally.answered_since(since) as f64 + 1.0;
            let capacity = answered.min(counted.limit.bound.capacity);
            let bound = Bound { capacity, per_second: 0.0 };
            counted.tally.allow(Allowance { from: since, to: Some(now), bound });
        }
    }

    /// Waits, unless it ends before.
    pub(crate) fn sleep(&self, seconds: f64) {
        let until = self.now() + seconds;
        while self.now() < until && !self.is_over() {
            std::thread::sleep(Duration::from_secs_f64((until - self.now()).clamp(0.0, 0.05)));
        }
    }

    /// A fault that is over, and how long it took until all was well again.
    pub(crate) fn recovered(&self, fault: &'static str, seconds: f64, at_most: f64) {
        let now = self.now();
        self.recovered_by(fault, now - seconds, now, at_most);
    }

    /// The same, if it was well a moment ago.
    pub(crate) fn recovered_by(&self, fault: &'static str, from: f64, to: f64, at_most: f64) {
        let seconds = (to - from).max(0.0);
        println!("{:8.3} s  {fault}: well again after {seconds:.3} s", self.now());
        lock(&self.faults).entry(fault).or_default().push(seconds);
        let machine = self.pace.late(from, to);
        if let Err(late) = recovery::judge(fault, seconds, at_most, machine) {
            self.wrong(&late);
        }
    }

    /// Whether a door is not itself in trouble, nor was a moment ago.
    pub(crate) fn is_open(&self, door: Door) -> bool {
        let now = self.now();
        let its = [Trouble::Gone(door), Trouble::Slow(door), Trouble::Finding(door)];
        !its.into_iter().any(|trouble| self.troubles.touched(trouble, now, now))
    }
}

/// What keys may admit besides, by number, for as long as something is broken.
pub(crate) struct Besides(Vec<(String, usize)>);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
