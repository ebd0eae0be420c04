//! One key that is asked about often: the units at hand, what was agreed about them, and when to ask for more.
//!
//! Nothing here waits, sends, or looks at a clock: it is told the time, by this machine's clock in nanoseconds, and
//! what was answered. So the same code runs in simulations.

mod asking;
mod standing;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use dashpot::{Consistency, Policy, Timestamp};
use parking_lot::Mutex;
use smallvec::SmallVec;
use tokio::sync::Notify;

use super::purse::{Aside, MOST, Purse};
use crate::failure::Failure;
use crate::question::Question;
use crate::recall::Recalled;
use crate::topology::Spot;

/// Nanoseconds by this machine's clock.
pub(crate) type Nanos = u64;

const MILLI: Nanos = 1_000_000;

/// Who did not get all that was wanted asks again neither sooner nor later than that.
const PACE: [Nanos; 2] = [MILLI, 20 * MILLI];

/// While Redis does not answer, nobody asks more often.
const TROUBLE: Nanos = 10 * MILLI;

/// The first lease of a key; from then on they follow demand.
const FIRST: u64 = 16;

/// The most that is leased at a time.
const LARGEST: u64 = MOST / 4;

/// A lease that lasts less long than this was too small, and one that lasts longer than that too large.
const LASTS: [Nanos; 2] = [50 * MILLI, 500 * MILLI];

/// How leases are to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// How long a lease lasts.
    pub(crate) lease: Duration,
    /// How often what was counted here is told.
    pub(crate) interval: Duration,
    /// How long a denial is repeated.
    pub(crate) denial_memory: Duration,
}

/// A key that is asked about often.
pub(crate) struct Slot {
    pub(crate) policy: Policy,
    /// The caller.
    pub(crate) key: Box<[u8]>,
    /// Where Redis keeps it.
    pub(crate) name: Vec<u8>,
    /// Who keeps it there.
    pub(crate) spot: Spot,
    /// By what Redis knows who has leased.
    pub(crate) holder: String,
    purse: Purse,
    /// When something was last asked for.
    used: AtomicU64,
    /// How much to ask for next.
    size: AtomicU64,
    /// How much is waited for.
    waiting: AtomicU64,
    /// Who did not get all that was wanted does not ask again sooner.
    pace: Nanos,
    is_asking: AtomicBool,
    /// Whether it was given back for good.
    is_gone: AtomicBool,
    /// How often was asked: Redis tells late calls by it.
    calls: AtomicU64,
    terms: ArcSwap<Terms>,
    trouble: Mutex<Option<(Nanos, Failure)>>,
    /// Told when an answer has come, or none will.
    pub(crate) answered: Notify,
}

/// What was agreed when Redis last answered.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    /// The units that it takes to be out with this holder; if they are only counted here, those that may be
    /// granted before it is told.
    units: u64,
    /// Until when they may be spent.
    ends: Nanos,
    /// From how many on to ask for more.
    low: u64,
    heard: Nanos,
    /// What its clock showed.
    at: Timestamp,
    recalled: Recalled,
    /// Not to be asked again before, unless somebody waits for units.
    ask_at: Nanos,
    /// Nor then: there were too few for somebody who waited.
    refuses_until: Nanos,
    /// If less than that is left, nobody asks for single units.
    floor: u64,
    /// When the window closes that the units are of, if that is soon.
    closes: Nanos,
    /// How who asks for a unit is refused that is not at hand, once somebody was.
    refused: OnceLock<Option<Refused>>,
}

/// How a unit is refused. Moments are by Redis's clock.
#[derive(Clone, Copy, Debug)]
struct Refused {
    /// When it could be had.
    room_at: u64,
    /// When the key is as good as new.
    new_at: u64,
    /// What was left when Redis answered.
    remaining: u64,
}

/// What is asked of Redis about a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    /// Units that are kept.
    pub(crate) kept: u64,
    /// Units spent since it last answered.
    pub(crate) spent: u64,
    /// Units that somebody waits for.
    pub(crate) need: u64,
    /// Units that would be welcome.
    pub(crate) want: u64,
    /// When it was asked.
    pub(crate) asked: Nanos,
    /// The how manieth call it is.
    pub(crate) number: u64,
    /// How many instances there are.
    pub(crate) instances: u64,
}

/// What Redis answers.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) at: Timestamp,
    pub(crate) recalled: Recalled,
    /// Whether it knew of what was kept.
    pub(crate) is_known: bool,
    /// Units that were given.
    pub(crate) units: u64,
    /// Whether that is less than was wanted.
    pub(crate) is_short: bool,
    /// For how long.
    pub(crate) lasts: Duration,
    /// Whether that is when their window closes.
    pub(crate) is_cut: bool,
}

/// What came of asking for units.
#[derive(Debug)]
pub(crate) enum Taken {
    /// There they are, and so many are left.
    Spent { left: u64, is_low: bool },
    /// There are none, and there is no use in asking.
    Refused,
    /// Redis is to be asked.
    Dry,
}

impl Slot {
    pub(crate) fn new(
        policy: Policy,
        key: &[u8],
        (name, spot): (Vec<u8>, Spot),
        holder: u64,
        now: Nanos,
    ) -> Self {
        Self {
            pace: pace(&policy),
            policy,
            key: key.into(),
            name,
            spot,
            holder: format!("{holder:016x}"),
            purse: Purse::default(),
            used: AtomicU64::new(now),
            size: AtomicU64::new(FIRST),
            waiting: AtomicU64::new(0),
            is_asking: AtomicBool::new(false),
            is_gone: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            terms: ArcSwap::from_pointee(Terms {
                units: 0,
                ends: 0,
                low: 0,
                heard: 0,
                at: Timestamp::EPOCH,
                recalled: Recalled::NOTHING,
                ask_at: 0,
                refuses_until: 0,
                floor: 0,
                closes: Nanos::MAX,
                refused: OnceLock::new(),
            }),
            trouble: Mutex::default(),
            answered: Notify::new(),
        }
    }

    pub(crate) fn terms(&self) -> Guard<Arc<Terms>> {
        self.terms.load()
    }

    fn is_leased(&self) -> bool {
        self.policy.consistency() == Consistency::Leased
    }

    /// Spends units, if they are at hand. Says when.
    pub(crate) fn spend(
        &self,
        terms: &Terms,
        units: u64,
        clock: impl FnOnce() -> Nanos,
        ways: &Ways,
    ) -> (Nanos, Taken) {
        let left = self.purse.spend(units);
        // Only now: whoever was held up for long does not spend what has ended meanwhile.
        let now = clock();
        self.used.store(now, Ordering::Relaxed);
        let taken = match left {
            Some(left) if now < terms.ends => {
                Taken::Spent { left, is_low: left < terms.low && now >= terms.ask_at }
            }
            _ if self.would_not_get(terms, now, units, ways) => Taken::Refused,
            _ => Taken::Dry,
        };
        (now, taken)
    }

    /// Sets units aside for a decision that is made before then.
    pub(crate) fn set_aside(&self, now: Nanos, until: Nanos, units: u64) -> Option<Aside> {
        self.used.store(now, Ordering::Relaxed);
        let until = if self.is_leased() { until } else { now };
        let ends = self.terms().ends;
        if until < ends { self.purse.set_aside(units, ends) } else { None }
    }

    /// Whether what was set aside may not be spent any more.
    pub(crate) fn has_ended(&self, now: Nanos, aside: &Aside) -> bool {
        // If it was emptied since, they were taken to be spent while they could be.
        let was_renewed = || now < self.terms().ends && self.purse.has(aside);
        self.is_leased() && now >= aside.ends && !was_renewed()
    }

    /// Whether a lease would not outlast a decision that is made before then: its window closes in between.
    pub(crate) fn is_closing(&self, now: Nanos, until: Nanos) -> bool {
        (now.saturating_add(1)..=until).contains(&self.terms().closes)
    }

    /// How many units may be granted here before it is told, if they are only counted.
    pub(crate) fn quantum(&self, ways: &Ways) -> u64 {
        let quota = self.policy.quota();
        let (Some(count), Some(window)) = (quota.count(), quota.window()) else { return 1 };
        let units = u128::from(count) * ways.interval.as_nanos();
        let units = units.div_ceil(window.length().as_nanos().max(1));
        u64::try_from(units).unwrap_or(u64::MAX).clamp(1, LARGEST)
    }

    /// Whether a check of this cost can be answered from here.
    pub(crate) fn can_hold(&self, units: u64, ways: &Ways) -> bool {
        units <= if self.is_leased() { LARGEST } else { self.quantum(ways) }
    }

    /// Spends what was set aside, and says whether there are few left.
    pub(crate) fn spend_aside(&self, now: Nanos, aside: &Aside) -> bool {
        let terms = self.terms();
        self.purse.spend_aside(aside) < terms.low && now >= terms.ask_at
    }

    pub(crate) fn put_back(&self, aside: &Aside) {
        self.purse.put_back(aside);
    }

    pub(crate) fn question(&self, cost: u64) -> Question<'_> {
        Question {
            policy: &self.policy,
            others: SmallVec::new(),
            key: Vec::new(),
            is_global: false,
            cost,
            parts: SmallVec::new(),
            permit: None,
        }
    }

    /// Whether it was given back for good: nothing comes from here any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// When it was last used.
    pub(crate) fn used(&self) -> Nanos {
        self.used.load(Ordering::Relaxed)
    }
}

impl Terms {
    /// What Redis's clock shows by now, or a little less.
    pub(crate) fn now(&self, now: Nanos) -> Timestamp {
        self.at.after(Duration::from_nanos(now.saturating_sub(self.heard)))
    }

    pub(crate) fn ends(&self) -> Nanos {
        self.ends
    }

    pub(crate) fn heard(&self) -> Nanos {
        self.heard
    }

    pub(crate) fn units(&self) -> u64 {
        self.units
    }
}

/// How long it is worth waiting for units to come back: not so long that a bucket is full meanwhile.
fn pace(policy: &Policy) -> Nanos {
    let quota = policy.quota();
    let (Some(count), Some(window)) = (quota.count(), quota.window()) else { return PACE[0] };
    let fills = window.length().as_nanos() * u128::from(policy.limit()) / u128::from(count.max(1));
    u64::try_from(fills / 8).unwrap_or(Nanos::MAX).clamp(PACE[0], PACE[1])
}

/// The most of a policy that one of so many instances leases: half of it is out with all of them together.
pub(crate) fn share(policy: &Policy, instances: u64) -> u64 {
    policy.limit() / instances.saturating_mul(2).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
