//! One key under one policy: its history, its block, and every answer that follows from them.

use std::time::Duration;

use dashpot::{Algorithm, Outcome, Policy, Timestamp};

use super::Expected;
use super::bucket::Bucket;
use super::concurrency::InFlight;
use super::fixed_window::FixedWindow;
use super::meter::{Meter, Time, smallest, time};
use super::sliding_log::SlidingLog;
use super::sliding_window::SlidingWindow;

#[derive(Clone, Debug, Default)]
pub(super) struct Counter {
    /// Nothing until something is charged: a key that was only looked at belongs to no definition.
    history: Option<History>,
    /// No block if it is not in the future.
    pub(super) blocked_until: Timestamp,
}

#[derive(Clone, Debug)]
enum History {
    Bucket(Bucket),
    Fixed(FixedWindow),
    Log(SlidingLog),
    Sliding(SlidingWindow),
    InFlight(InFlight),
}

/// A denial; `None` as the wait if none is known.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusal {
    pub(super) never: bool,
    pub(super) retry_after: Option<Duration>,
}

impl Refusal {
    /// For both reasons.
    pub(super) fn and(self, other: Self) -> Self {
        let never = self.never || other.never;
        let longer = self.retry_after.max(other.retry_after);
        Self { never, retry_after: longer.filter(|_| !never) }
    }
}

impl Counter {
    /// From now on, this definition counts.
    pub(super) fn adopt(&mut self, at: Timestamp, policy: &Policy) {
        if let Some(history) = &mut self.history {
            history.meter_mut().adopt(time(at), policy);
        }
    }

    /// Why this cost does not pass, if it does not.
    pub(super) fn refusal(&self, at: Timestamp, policy: &Policy, cost: u64) -> Option<Refusal> {
        if cost == 0 {
            return None;
        }
        if cost > limit(policy).max(policy.whole_limit()) {
            return Some(Refusal { never: true, retry_after: None });
        }
        let block = self.block(at);
        // The whole policy may grant it, when it is that again.
        let is_beyond = cost > limit(policy);
        let own = if is_beyond { None } else { self.wait(policy, time(at), cost) };
        if own == Some(0) && block == 0 {
            return None;
        }
        // That may be, or somebody may give a permit back, while the block lasts, so its end is worth a try.
        let known = if own.is_none() && block == 0 { None } else { own.max(Some(block)) };
        Some(Refusal { never: false, retry_after: known.map(Duration::from_nanos) })
    }

    /// How long a request that passes now is held.
    pub(super) fn delay(&self, at: Timestamp, policy: &Policy) -> Duration {
        let meter = self.meter(policy);
        let due = |wait| meter.is_due(policy, time(at) + Time::from(wait));
        Duration::from_nanos(smallest(u64::MAX, due))
    }

    pub(super) fn charge(&mut self, at: Timestamp, policy: &Policy, cost: u64) {
        if let Some(meter) = self.meter_mut(policy) {
            meter.charge(time(at), cost);
        }
    }

    /// How the key stands, as a peek sees it.
    pub(super) fn standing(&self, at: Timestamp, policy: &Policy) -> Expected {
        let block = self.block(at);
        let blocked = block > 0;
        let own = if limit(policy) == 0 { None } else { self.wait(policy, time(at), 1) };
        let reset = self.reset_after(policy, time(at)).max(block);
        let available = own.map(|own| own.max(block));
        Expected {
            outcome: Outcome::Allow,
            never: false,
            limit: limit(policy),
            remaining: if blocked { 0 } else { self.room(policy, time(at)) },
            reset_after: Duration::from_nanos(reset),
            retry_after: None,
            available_after: available.map(Duration::from_nanos),
            delay: Duration::ZERO,
            slack: self.meter(policy).slack(),
        }
    }

    pub(super) fn settle(
        &mut self,
        at: Timestamp,
        policy: &Policy,
        cost: u64,
        charged_at: Timestamp,
        used: u64,
    ) {
        let (at, charged_at) = (time(at), time(charged_at));
        let Some(meter) = self.settling(at, policy) else {
            return;
        };
        if policy.algorithm() == Algorithm::Concurrency {
            // A permit is a place held, not a thing used up: it comes back whole.
            meter.give_back(at, charged_at, cost);
        } else if used < cost {
            meter.give_back(at, charged_at, cost - used);
        } else if used > cost {
            meter.charge(at, used - cost);
        }
    }

    pub(super) fn undo(
        &mut self,
        at: Timestamp,
        policy: &Policy,
        cost: u64,
        charged_at: Timestamp,
    ) {
        let (at, charged_at) = (time(at), time(charged_at));
        if let Some(meter) = self.settling(at, policy) {
            meter.undo(policy, at, charged_at, cost);
        }
    }

    /// What is to be settled of a policy.
    fn settling(&mut self, at: Time, policy: &Policy) -> Option<&mut dyn Meter> {
        let meter = self.meter_mut(policy)?;
        if policy.is_any_window() {
            // Not as many units as they are now: the time they took then.
            meter.adopt(at, policy);
        }
        meter.settles(policy);
        Some(meter)
    }

    pub(super) fn holds(&self) -> bool {
        self.history.is_some()
    }

    /// Forgets what was counted.
    pub(super) fn reset(&mut self) {
        self.history = None;
    }

    /// The largest cost that would pass.
    fn room(&self, policy: &Policy, at: Time) -> u64 {
        let meter = self.meter(policy);
        smallest(limit(policy), |room| !meter.passes(policy, at, room + 1))
    }

    /// The smallest wait after which this cost would pass; `None` if no clock tells.
    fn wait(&self, policy: &Policy, at: Time, cost: u64) -> Option<u64> {
        let meter = self.meter(policy);
        if meter.passes(policy, at, cost) {
            return Some(0);
        }
        let passes = |wait| meter.passes(policy, at + Time::from(wait), cost);
        meter.runs_by_clock().then(|| smallest(u64::MAX, passes))
    }

    fn reset_after(&self, policy: &Policy, at: Time) -> u64 {
        let meter = self.meter(policy);
        let fresh = |wait| meter.is_fresh(at + Time::from(wait));
        if meter.runs_by_clock() { smallest(u64::MAX, fresh) } else { 0 }
    }

    fn meter(&self, policy: &Policy) -> &dyn Meter {
        match &self.history {
            Some(history) if !policy.quota().is_unlimited() => history.meter(),
            _ => &Nothing,
        }
    }

    /// What to charge: `None` without a limit, where nothing is counted.
    fn meter_mut(&mut self, policy: &Policy) -> Option<&mut dyn Meter> {
        if policy.quota().is_unlimited() {
            return None;
        }
        let history = self.history.get_or_insert_with(|| History::new(policy));
        Some(history.meter_mut())
    }

    /// The nanoseconds left of a block.
    fn block(&self, at: Timestamp) -> u64 {
        self.blocked_until.as_nanos().saturating_sub(at.as_nanos())
    }
}

fn limit(policy: &Policy) -> u64 {
    if policy.quota().is_unlimited() { u64::MAX } else { policy.limit() }
}

/// Before anything is counted.
struct Nothing;

impl Meter for Nothing {
    fn passes(&self, policy: &Policy, _at: Time, cost: u64) -> bool {
        cost <= limit(policy)
    }

    fn is_fresh(&self, _at: Time) -> bool {
        true
    }

    fn charge(&mut self, _at: Time, _units: u64) {}

    fn give_back(&mut self, _at: Time, _charged_at: Time, _units: u64) {}
}

impl History {
    fn new(policy: &Policy) -> Self {
        match policy.algorithm() {
            Algorithm::TokenBucket | Algorithm::LeakyBucket => Self::Bucket(Bucket::new(policy)),
            Algorithm::FixedWindow => Self::Fixed(FixedWindow::new(policy)),
            Algorithm::SlidingLog => Self::Log(SlidingLog::new(policy)),
            Algorithm::SlidingWindow => Self::Sliding(SlidingWindow::new(policy)),
            Algorithm::Concurrency => Self::InFlight(InFlight::default()),
        }
    }

    fn meter(&self) -> &dyn Meter {
        match self {
            Self::Bucket(meter) => meter,
            Self::Fixed(meter) => meter,
            Self::Log(meter) => meter,
            Self::Sliding(meter) => meter,
            Self::InFlight(meter) => meter,
        }
    }

    fn meter_mut(&mut self) -> &mut dyn Meter {
        match self {
            Self::Bucket(meter) => meter,
            Self::Fixed(meter) => meter,
            Self::Log(meter) => meter,
            Self::Sliding(meter) => meter,
            Self::InFlight(meter) => meter,
        }
    }
}
