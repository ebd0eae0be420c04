//! Traffic meets a limit.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use dashpot::{Check, Key, ManualClock, MemoryStore, Policy, Reservation, Timestamp};

use crate::Arrival;
use crate::series::Series;
use crate::trailing::{Steps, Trailing, Worst};

/// When simulated time begins: the first of a year and of a month, a Monday, and midnight in UTC, so that most windows begin, too.
pub const START: Timestamp = Timestamp::from_secs(1_704_067_200);

/// How many bars a picture has.
const BARS: usize = 120;

/// How many columns a line has.
const COLUMNS: u64 = 600;

/// What else is to be known of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// How much time there is.
    pub length: Duration,
    /// How long a request takes to serve: it matters where limits are about how many there are at once.
    pub takes: Duration,
    /// The same seed makes the same traffic, on every machine.
    pub seed: u64,
}

impl Default for Setting {
    fn default() -> Self {
        Self { length: Duration::from_secs(60), takes: Duration::from_millis(100), seed: 1 }
    }
}

impl Setting {
    pub(crate) fn nanos(&self) -> u64 {
        nanos(self.length)
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Run {
    /// The limit.
    pub policy: Policy,
    /// How much time there was.
    pub length: Duration,
    /// How many asked.
    pub asked: u64,
    /// How many of them passed, if not at once.
    pub admitted: u64,
    /// How many did not.
    pub denied: u64,
    /// The most units that left for one caller within any window's length; of a concurrent limit, the most at once.
    pub worst: Worst,
    /// The time in which `worst` is counted.
    pub window: Duration,
    /// 99 of 100 that passed waited no longer than this.
    pub p99_delay: Duration,
    /// Nobody who passed waited longer than this.
    pub longest_delay: Duration,
    /// How many callers asked.
    pub callers: usize,
    /// How many of them were denied something.
    pub callers_denied: usize,
    /// Units of all callers, by when they left.
    pub series: Series,
    /// Units of caller 0 that left within the window's length before: when, and how many from then on.
    pub followed: Vec<(u64, u64)>,
}

impl Run {
    /// How many times the limit the worst window is; nothing if there is no limit.
    #[must_use]
    pub fn excess(&self) -> Option<f64> {
        let count = self.policy.quota().count().filter(|count| *count > 0)?;
        Some(self.worst.units as f64 / count as f64)
    }
}

/// Sends arrivals through a policy, in order.
pub fn run(policy: &Policy, arrivals: impl IntoIterator<Item = Arrival>, setting: &Setting) -> Run {
    run_with(policy, arrivals, setting, |_| {})
}

/// The same; now and then it is told how much time has passed.
pub fn run_with(
    policy: &Policy,
    arrivals: impl IntoIterator<Item = Arrival>,
    setting: &Setting,
    mut passed: impl FnMut(Duration),
) -> Run {
    let mut world = World::new(policy, setting);
    for arrival in arrivals {
        world.ask(arrival);
        if world.asked.is_multiple_of(4096) {
            passed(Duration::from_nanos(arrival.at));
        }
    }
    world.end()
}

struct World<'p> {
    policy: &'p Policy,
    clock: ManualClock,
    store: MemoryStore,
    takes: u64,
    length: u64,
    window: u64,
    /// Who is served, until when.
    served: BinaryHeap<Reverse<Served>>,
    asked: u64,
    admitted: u64,
    worst: Worst,
    /// Those who waited.
    delays: Vec<u64>,
    callers: HashMap<u32, Caller>,
    series: Series,
    followed: Steps,
}

struct Caller {
    trailing: Trailing,
    is_denied: bool,
}

struct Served {
    until: u64,
    reservation: Reservation,
}

impl PartialEq for Served {
    fn eq(&self, other: &Self) -> bool {
        self.until == other.until
    }
}
impl Eq for Served {}
impl PartialOrd for Served {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Served {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.until.cmp(&other.until)
    }
}

impl<'p> World<'p> {
    fn new(policy: &'p Policy, setting: &Setting) -> Self {
        let clock = ManualClock::new(START);
        let takes = nanos(setting.takes);
        let quota = policy.quota();
        let window = match quota.window() {
            Some(window) => nanos(window.length()),
            // A place is held for as long as it takes.
            None if quota.is_concurrent() => takes,
            None => 1_000_000_000,
        };
        Self {
            policy,
            store: MemoryStore::with_clock(clock.clone()),
            clock,
            takes,
            length: setting.nanos(),
            window,
            served: BinaryHeap::new(),
            asked: 0,
            admitted: 0,
            worst: Worst::default(),
            delays: Vec::new(),
            callers: HashMap::new(),
            series: Series::of(setting.nanos(), BARS),
            followed: Steps::of(setting.nanos(), COLUMNS),
        }
    }

    fn ask(&mut self, arrival: Arrival) {
        let Arrival { at, caller, cost } = arrival;
        self.give_back(at);
        self.clock.set(moment(at));
        self.asked += 1;
        let key = caller.to_be_bytes();
        let check = Check::new(self.policy, Key::new(&key)).cost(cost);
        let decision = self.store.decide_now(&[check]);
        let window = self.window;
        let known = self
            .callers
            .entry(caller)
            .or_insert_with(|| Caller { trailing: Trailing::new(window), is_denied: false });
        if !decision.is_allowed() {
            known.is_denied = true;
            if at < self.length {
                self.series.deny(at, cost);
            }
            return;
        }
        self.admitted += 1;
        let delay = nanos(decision.delay());
        if delay > 0 {
            self.delays.push(delay);
        }
        let leaves = at.saturating_add(delay);
        if self.policy.quota().is_concurrent()
            && let Some(reservation) = check.reservation(&decision)
        {
            self.served
                .push(Reverse(Served { until: leaves.saturating_add(self.takes), reservation }));
        }
        // Who only looks takes nothing along, and goes past those who wait.
        if cost == 0 {
            return;
        }
        let (followed, length) = (&mut self.followed, self.length);
        let units = known.trailing.pass(leaves, cost, |at, sum| {
            if caller == 0 && at < length {
                followed.step(at, sum);
            }
        });
        if units > self.worst.units {
            self.worst = Worst { units, at: leaves, caller };
        }
        // What leaves after the end is not in the picture.
        if leaves < self.length {
            self.series.pass(leaves, cost);
        }
    }

    /// Gives back the places of those who were served by then.
    fn give_back(&mut self, by: u64) {
        while self.served.peek().is_some_and(|Reverse(served)| served.until <= by) {
            if let Some(Reverse(Served { until, reservation })) = self.served.pop() {
                self.clock.set(moment(until));
                let cost = reservation.cost();
                self.store.settle_now(&reservation, cost);
            }
        }
    }

    fn end(mut self) -> Run {
        let (followed, length) = (&mut self.followed, self.length);
        if let Some(first) = self.callers.get_mut(&0) {
            first.trailing.forget(length, |at, sum| followed.step(at, sum));
        }
        self.delays.sort_unstable();
        Run {
            policy: self.policy.clone(),
            length: Duration::from_nanos(length),
            asked: self.asked,
            admitted: self.admitted,
            denied: self.asked - self.admitted,
            worst: self.worst,
            window: Duration::from_nanos(self.window),
            p99_delay: percentile(&self.delays, self.admitted, 99),
            longest_delay: Duration::from_nanos(self.delays.last().copied().unwrap_or(0)),
            callers: self.callers.len(),
            callers_denied: self.callers.values().filter(|caller| caller.is_denied).count(),
            series: self.series,
            followed: self.followed.into_points(),
        }
    }
}

/// The delay that so many in a hundred do not exceed. Those who did not wait are not in the list.
fn percentile(delays: &[u64], of: u64, percent: u64) -> Duration {
    let rank = (u128::from(of) * u128::from(percent)).div_ceil(100);
    let at_once = u128::from(of).saturating_sub(delays.len() as u128);
    let place = rank.checked_sub(at_once + 1).and_then(|place| usize::try_from(place).ok());
    Duration::from_nanos(place.and_then(|place| delays.get(place)).copied().unwrap_or(0))
}

fn moment(at: u64) -> Timestamp {
    START.after(Duration::from_nanos(at))
}

pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_count_those_who_did_not_wait() {
        let nanos = |delays: &[u64], of| percentile(delays, of, 99).as_nanos();
        assert_eq!(nanos(&[], 0), 0);
        assert_eq!(nanos(&[], 100), 0);
        assert_eq!(nanos(&[7], 100), 0);
        assert_eq!(nanos(&[7, 8], 100), 7);
        assert_eq!(nanos(&[7], 1), 7);
        assert_eq!(nanos(&(1..=200).collect::<Vec<_>>(), 200), 198);
    }
}
