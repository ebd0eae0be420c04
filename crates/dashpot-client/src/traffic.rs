//! What goes on in a lane: who waits, who is on the way, and what the server said.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use dashpot::{Check, Cost, Key, KeyBuf, MemoryStore, Percent, Policy, Timestamp};
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::budget::Budget;
use crate::learned::{Learned, Ready, Takes, Thrift};
use crate::{NotSent, Pace, Why};

/// A lane's traffic.
pub(crate) struct Traffic {
    pub(crate) name: Arc<str>,
    /// May hold secrets, and is never shown.
    key: KeyBuf,
    pub(crate) pace: Pace,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(crate) struct State {
    /// Those who wait, by their tickets: who came first is first, also when it comes again. A waker is missing if it was
    /// used and its owner has not been back yet.
    line: BTreeMap<u64, Option<Waker>>,
    next_ticket: u64,
    /// How many are on their way, or have answers that are being read.
    in_flight: u64,
    /// What was sent, and what of that was answered or given up.
    pub(crate) sent: Takes,
    answered: Takes,
    last_sent: Option<Timestamp>,
    pub(crate) hold: Hold,
    pub(crate) learned: Learned,
    budget: Budget,
    last_used: Timestamp,
}

/// The server has turned somebody away.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    /// Nobody goes before.
    pub(crate) until: Timestamp,
    pub(crate) why: Option<Why>,
    /// Grows each time it turns somebody away who was sent since the last time. Who was sent before says nothing new.
    pub(crate) number: u64,
    /// How often in a row.
    pub(crate) strikes: u32,
    /// What chance adds to what the server says: the same for all who were turned away together, or the longest of many
    /// would count.
    pub(crate) extra: Duration,
    /// How many of those sent since may wait for an answer at once: any number, but one after somebody was turned away, and
    /// one more for each that is let in since.
    pub(crate) at_once: Option<u64>,
    /// How many of them do.
    pub(crate) unanswered: u64,
}

/// Somebody who wants to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller<'c> {
    /// Its place, for good, once it came.
    pub(crate) ticket: Option<u64>,
    pub(crate) takes: Takes,
    /// It goes by then, or not at all.
    pub(crate) deadline: Timestamp,
    /// What it puts by for retries when it goes: nothing, if it is one.
    pub(crate) saves: Percent,
    /// By which limits it goes.
    pub(crate) pace: &'c Pace,
}

/// What all lanes go by.
#[derive(Clone, Copy)]
pub(crate) struct Terms<'m> {
    pub(crate) store: &'m MemoryStore,
    pub(crate) overall: &'m [Policy],
    pub(crate) thrift: Thrift,
}

/// Whether somebody may go.
#[derive(Debug)]
pub(crate) enum Step {
    /// It is on its way. What had been answered by then, and the number of the last hold.
    Go { answered: Takes, hold: u64 },
    /// It has waited for too long.
    Late,
    /// Not before.
    Wait(Timestamp, Why),
    /// Later, when something changes.
    Until(Why),
}

/// Wakers that are to be woken when nothing is locked any more.
#[must_use]
pub(crate) struct Wake(SmallVec<[Waker; 1]>);

impl Wake {
    pub(crate) fn now(self) {
        self.0.into_iter().for_each(Waker::wake);
    }
}

impl Traffic {
    pub(crate) fn new(name: Arc<str>, key: Key<'_>, pace: Pace) -> Self {
        let mut own = KeyBuf::new();
        own.append(key);
        Self { name, key: own, pace, state: Mutex::default() }
    }

    pub(crate) fn key(&self) -> Key<'_> {
        self.key.as_key()
    }

    /// Changes something, and wakes who is first in line: it may be its turn now.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_wake(change, State::wake_first)
    }

    /// Takes a retry of its budget, if there is one. Nobody in line wants to know.
    pub(crate) fn take_retry(&self) -> bool {
        self.state.lock().budget.take()
    }

    /// Changes something that everybody in line wants to know: it may be too late for them.
    pub(crate) fn change_for_all<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        self.change_and_wake(change, State::wake_all)
    }

    fn change_and_wake<T>(
        &self,
        change: impl FnOnce(&mut State) -> T,
        wake: impl FnOnce(&mut State) -> Wake,
    ) -> T {
        let mut state = self.state.lock();
        let result = change(&mut state);
        let wake = wake(&mut state);
        drop(state);
        wake.now();
        result
    }

    /// Whether it can be forgotten: nobody is there, and nothing that was said or counted still matters.
    pub(crate) fn is_idle(&self, store: &MemoryStore, now: Timestamp, rest: Duration) -> bool {
        let state = self.state.lock();
        let is_quiet = state.line.is_empty()
            && state.in_flight == 0
            && state.hold.until <= now
            && state.learned.is_over(now)
            && now.since(state.last_used) >= rest;
        is_quiet && self.is_rested(store)
    }

    /// Whether its pace is as good as new.
    fn is_rested(&self, store: &MemoryStore) -> bool {
        let own = self.checks(&self.pace).map(|check| check.cost(Cost::PEEK));
        let checks: SmallVec<[Check<'_, '_>; 2]> = own.collect();
        checks.is_empty()
            || store.decide_now(&checks).statuses().iter().all(|own| own.reset_after().is_zero())
    }

    /// Leaves the line, and lets the next one move up.
    pub(crate) fn leave(&self, ticket: u64) {
        let _dropped_without_the_lock = self.change(|state| state.line.remove(&ticket));
    }

    /// Looks whether it may go; then it is out of the line and on its way, and what that takes is taken. Else it stands in
    /// line, and the waker is left to be woken when something changes.
    pub(crate) fn step(
        &self,
        caller: &mut Caller<'_>,
        terms: Terms<'_>,
        waker: &Waker,
    ) -> Result<(Step, Timestamp), NotSent> {
        let mut state = self.state.lock();
        let now = terms.store.now();
        let is_new = caller.ticket.is_none();
        let ticket = *caller.ticket.get_or_insert_with(|| state.next_ticket());
        let blocked = if caller.pace.concurrent == 0 {
            Err(NotSent::Never)
        } else if now > caller.deadline && !is_new {
            Ok(Some(Step::Late))
        } else {
            match state.blocked(ticket, caller, (now, terms.thrift)) {
                Some(step) => Ok(Some(step)),
                None => self.ask_pace(caller.pace, terms),
            }
        };
        // Nobody's waker is dropped under the lock: that may run anything.
        let old = state.line.remove(&ticket);
        let result = match blocked {
            Err(never) => Err(never),
            Ok(None) => Ok(state.go(caller, now)),
            Ok(Some(Step::Late)) => Ok(Step::Late),
            Ok(Some(_)) if is_new && state.line.len() >= caller.pace.queue => Err(NotSent::Full),
            Ok(Some(step)) => {
                state.line.insert(ticket, Some(waker.clone()));
                Ok(step)
            }
        };
        let is_gone = !state.line.contains_key(&ticket);
        let wake = if is_gone { state.wake_first() } else { Wake(SmallVec::new()) };
        drop(state);
        drop(old);
        wake.now();
        result.map(|step| (step, now))
    }

    fn checks<'p>(&self, pace: &'p Pace) -> impl Iterator<Item = Check<'p, '_>> {
        pace.policies.iter().map(|policy| Check::new(policy, self.key.as_key()))
    }

    /// Asks its own limits, all at once. `None` if they let it go, and then they are charged.
    fn ask_pace(&self, pace: &Pace, terms: Terms<'_>) -> Result<Option<Step>, NotSent> {
        let overall = terms.overall.iter().map(|policy| Check::new(policy, Key::new(b"")));
        let checks: SmallVec<[Check<'_, '_>; 4]> = self.checks(pace).chain(overall).collect();
        if checks.is_empty() {
            return Ok(None);
        }
        let decision = terms.store.decide_now(&checks);
        if decision.is_allowed() {
            return Ok(None);
        }
        match decision.retry_after() {
            Some(wait) => Ok(Some(Step::Wait(decision.at().after(wait), Why::Pace))),
            None => Err(NotSent::Never),
        }
    }
}

impl State {
    const fn next_ticket(&mut self) -> u64 {
        let ticket = self.next_ticket;
        self.next_ticket = ticket.wrapping_add(1);
        ticket
    }

    /// What keeps somebody from going, its own pace aside.
    fn blocked(
        &mut self,
        ticket: u64,
        caller: &Caller<'_>,
        (now, thrift): (Timestamp, Thrift),
    ) -> Option<Step> {
        self.last_used = now;
        if self.hold.until > now {
            return Some(Step::Wait(self.hold.until, self.hold.why.unwrap_or(Why::Backoff)));
        }
        if self.line.first_key_value().is_some_and(|(first, _)| *first < ticket) {
            return Some(Step::Until(Why::Line));
        }
        if self.hold.at_once.is_some_and(|most| self.hold.unanswered >= most) {
            return Some(Step::Until(Why::Caution));
        }
        if self.in_flight >= caller.pace.concurrent {
            return Some(Step::Until(Why::Concurrent));
        }
        if self.sent == self.answered {
            self.learned.nothing_is_on_its_way(caller.takes);
        }
        match self.learned.ready(caller.takes, now, self.last_sent, thrift) {
            Ready::Now => None,
            Ready::At(at) => Some(Step::Wait(at, Why::Quota)),
            Ready::Rather(at) if at < caller.deadline => Some(Step::Wait(at, Why::Thrift)),
            // Nobody is too late for thrift.
            Ready::Rather(_) => None,
            Ready::WhenAnswered => Some(Step::Until(Why::Quota)),
        }
    }

    fn go(&mut self, caller: &Caller<'_>, now: Timestamp) -> Step {
        self.in_flight = self.in_flight.saturating_add(1);
        self.hold.unanswered = self.hold.unanswered.saturating_add(1);
        self.sent.add(caller.takes);
        self.learned.take(caller.takes, now);
        self.last_sent = Some(now);
        self.budget.save(caller.saves);
        Step::Go { answered: self.answered, hold: self.hold.number }
    }

    /// Somebody who was sent under that hold was answered, or is given up.
    pub(crate) fn answered(&mut self, takes: Takes, hold: u64) {
        self.answered.add(takes);
        if hold == self.hold.number {
            self.hold.unanswered = self.hold.unanswered.saturating_sub(1);
        }
    }

    /// Somebody is not on its way any more.
    pub(crate) const fn landed(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn wake_first(&mut self) -> Wake {
        Wake(
            self.line
                .first_entry()
                .and_then(|mut first| first.get_mut().take())
                .into_iter()
                .collect(),
        )
    }

    fn wake_all(&mut self) -> Wake {
        Wake(self.line.values_mut().filter_map(Option::take).collect())
    }
}

impl fmt::Debug for Traffic {
    /// Without what may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Traffic").field("name", &self.name).finish_non_exhaustive()
    }
}
