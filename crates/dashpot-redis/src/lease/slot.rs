//! One key that is asked about often: the units at hand, what was agreed about them, and when to ask for more.
//!
//! Nothing here waits, sends, or looks at a clock: it is told the time, by this machine's clock in nanoseconds, and
//! what was answered. So the same code runs in simulations.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, Guard};
use dashpot::{
    Algorithm, Consistency, Cost, Outcome, Policy, PolicyStatus, Retry, Standing, Timestamp,
};
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use tokio::sync::Notify;

use super::purse::{Aside, MOST, Purse};
use crate::failure::Failure;
use crate::question::{self, Question};
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
        (now, self.taken(terms, left, now, units, ways))
    }

    fn taken(
        &self,
        terms: &Terms,
        left: Option<u64>,
        now: Nanos,
        units: u64,
        ways: &Ways,
    ) -> Taken {
        self.used.store(now, Ordering::Relaxed);
        if let Some(left) = left.filter(|_| now < terms.ends) {
            return Taken::Spent { left, is_low: left < terms.low && now >= terms.ask_at };
        }
        if self.would_not_get(terms, now, units, ways) { Taken::Refused } else { Taken::Dry }
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

    /// Whether Redis would not give so many, by what it said a moment ago.
    pub(crate) fn refuses(&self, now: Nanos, units: u64, ways: &Ways) -> bool {
        self.would_not_get(&self.terms(), now, units, ways)
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

    fn would_not_get(&self, terms: &Terms, now: Nanos, units: u64, ways: &Ways) -> bool {
        let age = now.saturating_sub(terms.heard);
        if terms.heard == 0 || u128::from(age) >= ways.denial_memory.as_nanos() {
            return false;
        }
        let missing = units.saturating_sub(self.at_hand(terms, now));
        let (at, refused) = (terms.now(now), self.refused(terms));
        // There was hardly anything left, and what has come back since is let gather for a while.
        let was_left = refused.map_or(0, |refused| refused.remaining);
        let floor = if units == 1 { terms.floor } else { 0 };
        if now < terms.refuses_until && was_left < missing.max(floor) {
            return true;
        }
        if let (1, Some(refused)) = (missing, refused) {
            return at.as_nanos() < refused.room_at;
        }
        missing > 0
            && !terms.recalled.state(&self.question(missing), at).allows(at, Cost::new(missing))
    }

    /// How a unit is refused that is not at hand: others have it, or are to.
    fn refused(&self, terms: &Terms) -> Option<Refused> {
        *terms.refused.get_or_init(|| {
            let status = terms.recalled.answer(&self.question(1), &self.policy, terms.at, false);
            let after = |wait: Duration| terms.at.after(wait).as_nanos();
            let room_at = match status.outcome() {
                Outcome::Allow => terms.at.as_nanos(),
                Outcome::Deny => after(status.retry_after()?),
            };
            let (new_at, remaining) = (after(status.reset_after()), status.remaining());
            Some(Refused { room_at, new_at, remaining })
        })
    }

    fn at_hand(&self, terms: &Terms, now: Nanos) -> u64 {
        if now < terms.ends { self.purse.content().left } else { 0 }
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

    /// How it stands, of which so many units are left at hand.
    pub(crate) fn standing(&self, terms: &Terms, now: Nanos, left: u64) -> Standing {
        let at = terms.now(now);
        let mut standing = terms.recalled.glance(&self.policy, at, left);
        if standing.remaining == 0
            && let Some(refused) = self.refused(terms)
        {
            let wait = refused.room_at.saturating_sub(at.as_nanos());
            standing.available_after_nanos = Some(wait);
        }
        standing
    }

    /// How a check that passes is answered.
    pub(crate) fn passing<'p>(&self, policy: &'p Policy, now: Nanos) -> PolicyStatus<'p> {
        let (terms, content) = (self.terms(), self.purse.content());
        PolicyStatus::allow(policy, self.standing(&terms, now, content.left), 0)
    }

    /// How a check that is refused is answered.
    pub(crate) fn refusal<'p>(
        &self,
        policy: &'p Policy,
        terms: &Terms,
        now: Nanos,
        units: u64,
    ) -> PolicyStatus<'p> {
        let left = self.at_hand(terms, now);
        let missing = units.saturating_sub(left).max(1);
        let (at, asks_in) = (terms.now(now), terms.refuses_until.saturating_sub(now));
        if let (0, 1, Some(refused)) = (left, units, self.refused(terms)) {
            // Nearly all refusals are like this one.
            let wait = |until: u64| until.saturating_sub(at.as_nanos());
            let standing = Standing {
                limit: policy.limit(),
                remaining: 0,
                reset_after_nanos: wait(refused.new_at),
                available_after_nanos: Some(wait(refused.room_at).max(asks_in)),
            };
            let retry = Retry::After(wait(refused.room_at).max(asks_in));
            return PolicyStatus::deny(policy, standing, retry);
        }
        let question = Question { policy, ..self.question(missing) };
        let status = terms.recalled.answer(&question, policy, at, false);
        let standing = Standing {
            limit: status.limit(),
            // Less than was asked for, though some may have come back by now.
            remaining: status.remaining().saturating_add(left).min(units.saturating_sub(1)),
            reset_after_nanos: nanos(status.reset_after()),
            available_after_nanos: if left > 0 {
                Some(0)
            } else {
                status.available_after().map(nanos)
            },
        };
        if units > policy.limit() {
            return PolicyStatus::deny(policy, standing, Retry::Never);
        }
        PolicyStatus::deny(
            policy,
            standing,
            match status.retry_after() {
                Some(wait) => Retry::After(nanos(wait).max(asks_in)),
                None => Retry::After(asks_in),
            },
        )
    }

    /// Waits for an answer, and for so many units of it.
    pub(crate) fn wait_for(&self, units: u64) -> Waiting<'_> {
        self.waiting.fetch_add(units, Ordering::Relaxed);
        Waiting { slot: self, units }
    }

    /// Claims the right to ask: one at a time.
    pub(crate) fn claim(&self) -> bool {
        !self.is_asking.load(Ordering::Relaxed)
            && !self.is_gone()
            && !self.is_asking.swap(true, Ordering::AcqRel)
    }

    /// Whether it was given back for good: nothing comes from here any more.
    pub(crate) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Acquire)
    }

    /// Is not used any more. Says what to tell Redis, if there is anything: it comes from who has the right to ask.
    pub(crate) fn leave(&self, now: Nanos) -> Option<Request> {
        self.is_gone.store(true, Ordering::Release);
        let units = self.terms().units;
        let request = self.farewell(now);
        let owes = if self.is_leased() { units > 0 } else { request.spent > 0 };
        if !owes {
            self.answered.notify_waiters();
        }
        owes.then_some(request)
    }

    /// Drops what is at hand, and is not used any more: it was reset.
    pub(crate) fn drop_all(&self) {
        self.is_gone.store(true, Ordering::Release);
        self.purse.empty();
        self.answered.notify_waiters();
    }

    /// When it was last used.
    pub(crate) fn used(&self) -> Nanos {
        self.used.load(Ordering::Relaxed)
    }

    /// What to ask now, having the right to: for more, of which somebody waits for so many. There are so many
    /// instances.
    pub(crate) fn request(&self, now: Nanos, units: u64, instances: u64) -> Request {
        let instances = instances.max(1);
        let terms = self.terms();
        let is_live = now < terms.ends;
        // What cannot be spent any more is not kept, so nobody may spend it from here on.
        let content =
            if is_live || !self.is_leased() { self.purse.content() } else { self.purse.empty() };
        let kept = if is_live { content.units() } else { 0 };
        // What is set aside may be spent.
        let unspent = if is_live { content.units() } else { content.left };
        let need = if is_live { units.saturating_sub(content.left) } else { units };
        let share = (self.policy.limit() / instances.saturating_mul(2).max(1)).clamp(1, LARGEST);
        let size = self.size.load(Ordering::Relaxed).max(self.waiting.load(Ordering::Relaxed));
        let want = size.min(share.saturating_sub(kept));
        let spent = terms.units.saturating_sub(unspent);
        let (want, number) = (want.max(need), self.number());
        Request { kept, spent, need, want, asked: now, number, instances }
    }

    fn number(&self) -> u64 {
        self.calls.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// What to ask when it is not needed any more, having the right to: nothing, and everything comes back.
    fn farewell(&self, now: Nanos) -> Request {
        let units = self.terms().units;
        let content = self.purse.empty();
        let spent = units.saturating_sub(content.left);
        let (number, instances) = (self.number(), 1);
        Request { kept: 0, spent, need: 0, want: 0, asked: now, number, instances }
    }

    /// Takes units back that were spent here since Redis last answered, having the right to ask: as if they had never
    /// been spent. Says how many.
    pub(crate) fn take_back(&self, now: Nanos, units: u64, charged_at: Timestamp) -> u64 {
        let terms = self.terms();
        let window = |at: Timestamp| match self.policy.algorithm() {
            Algorithm::SlidingWindow => {
                Some(at.as_nanos() / question::length(&self.policy).saturating_mul(1000).max(1))
            }
            _ => self.policy.window_at(at).map(|window| window.start),
        };
        // If it did not answer, it may have heard that they were spent.
        let has_answered = self.trouble.lock().is_none();
        let is_live = !self.is_gone() && now < terms.ends;
        if !has_answered || !is_live || window(charged_at) != window(terms.at) {
            return 0;
        }
        self.purse.take_back(units, terms.units)
    }

    /// Gives the right to ask back.
    pub(crate) fn let_go(&self) {
        self.is_asking.store(false, Ordering::Release);
        self.answered.notify_waiters();
    }

    /// Whether there is anything to tell.
    pub(crate) fn owes(&self) -> bool {
        let units = self.terms().units;
        let content = self.purse.content();
        if self.is_leased() { units > 0 } else { units > content.left }
    }

    /// Takes notice of an answer, and gives the right to ask back.
    pub(crate) fn hear(&self, request: &Request, now: Nanos, reply: Reply) {
        let Reply { at, recalled, is_known, units, is_short, lasts, is_cut } = reply;
        let before = self.terms();
        // By this machine's clock, from before it was asked; a little less, because clocks differ.
        let lasts = nanos(lasts);
        let is_blocked = recalled.is_blocked(at);
        let ends = request.asked.saturating_add(lasts - lasts / 16);
        // What is at hand of a blocked key is given back with the next call.
        let ends = if is_blocked { 0 } else { ends };
        if !is_short && request.want > 0 && before.heard > 0 {
            self.resize(now.saturating_sub(before.heard));
        }
        if request.kept > 0 && !is_known {
            self.purse.empty();
        }
        let all = if self.is_leased() {
            if is_known { request.kept.saturating_add(units) } else { units }
        } else {
            self.purse.replace(request.kept, units)
        };
        let ask_at = request.asked.saturating_add(self.pace);
        self.terms.store(Arc::new(Terms {
            units: all,
            ends,
            low: all / 4,
            heard: now,
            at,
            recalled,
            ask_at: if is_short { ask_at } else { 0 },
            // A wait that was told does not become longer because something else was asked.
            refuses_until: if is_short && request.need > 0 { ask_at } else { before.refuses_until },
            floor: (request.instances - 1).max(self.policy.limit() / 64),
            closes: if is_cut { request.asked.saturating_add(lasts) } else { Nanos::MAX },
            refused: OnceLock::new(),
        }));
        // Only now: before, they would have been taken for those of the lease that was.
        if self.is_leased() {
            self.purse.add(units);
        }
        self.settle(None);
    }

    /// The next lease is to last neither too long nor too short.
    fn resize(&self, lasted: Nanos) {
        let size = self.size.load(Ordering::Relaxed);
        let size = match lasted {
            lasted if lasted < LASTS[0] / 8 => size.saturating_mul(4),
            lasted if lasted < LASTS[0] => size.saturating_mul(2),
            lasted if lasted > LASTS[1] => size / 2,
            _ => size,
        };
        self.size.store(size.clamp(FIRST, LARGEST), Ordering::Relaxed);
    }

    /// Redis has heard of what was counted here.
    pub(crate) fn told(&self, spent: u64) {
        let before = self.terms();
        let units = before.units.saturating_sub(spent);
        self.terms.store(Arc::new(Terms { units, ..Terms::clone(&before) }));
    }

    /// There was no answer. What is at hand can be spent on.
    pub(crate) fn fail(&self, now: Nanos, failure: Failure) {
        self.settle(Some((now, failure)));
    }

    fn settle(&self, trouble: Option<(Nanos, Failure)>) {
        *self.trouble.lock() = trouble;
        self.let_go();
    }

    /// Why there was no answer a moment ago.
    pub(crate) fn trouble(&self, now: Nanos) -> Option<Failure> {
        let trouble = self.trouble.lock();
        trouble
            .as_ref()
            .filter(|(at, _)| now.saturating_sub(*at) < TROUBLE)
            .map(|(_, why)| why.clone())
    }
}

/// Somebody who waits for units, until it is dropped.
#[must_use = "who does not wait is not waited for"]
pub(crate) struct Waiting<'s> {
    slot: &'s Slot,
    units: u64,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.slot.waiting.fetch_sub(self.units, Ordering::Relaxed);
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

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
