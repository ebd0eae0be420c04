//! Plays a trace to a store and to the oracle side by side, and tells the first difference.

mod compare;
mod waiting;

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Cost, Key, KeyOperation, ManualClock, Outcome, Policy, Reservation,
    Store, Timestamp,
};

use crate::trace::{Ask, Operation, Step, Trace};
use crate::{Expected, Oracle, block_on};

use compare::{difference, excuse};
pub use waiting::waiting_is_exact;

/// The store's time, in the test's hands.
pub trait Time {
    /// The current moment.
    fn now(&self) -> Timestamp;
    /// Shows `now` from here on, be it earlier or later than before.
    fn set(&self, now: Timestamp);

    /// The shortest time it shows. Waits are whole numbers of these: less would not be enough.
    fn tick(&self) -> Duration {
        Duration::from_nanos(1)
    }
}

impl Time for ManualClock {
    fn now(&self) -> Timestamp {
        Clock::now(self)
    }

    fn set(&self, now: Timestamp) {
        Self::set(self, now);
    }
}

/// Plays `trace` to a fresh store and to the oracle. The oracle is told the time that the store
/// says it decided at. In the end every key is asked for one unit and for all, and if that is
/// denied, must [wait exactly as long as it was told](waiting_is_exact).
///
/// # Errors
/// The first step on which the two differ, with what was expected and what came.
pub fn replay<S: Store>(store: &S, time: &impl Time, trace: &Trace) -> Result<(), String> {
    time.set(trace.start);
    let mut replay = Replay {
        store,
        time,
        trace,
        oracle: Oracle::default(),
        redefined: vec![false; trace.policies.len()],
        open: Vec::new(),
        latest: trace.start,
        went_back: false,
        resets: Vec::new(),
    };
    for (number, step) in trace.steps.iter().enumerate() {
        replay.play(step).map_err(|difference| {
            format!("step {number}, {step:?}, at {:?}: {difference}", time.now())
        })?;
    }
    for (policy, key) in replay.everyone() {
        for cost in [policy.limit(), 1] {
            let check = Check::new(policy, key).cost(cost);
            waiting_is_exact(store, time, &check)
                .map_err(|difference| format!("after all steps, {check:?}: {difference}"))?;
        }
    }
    Ok(())
}

struct Replay<'a, S, T> {
    store: &'a S,
    time: &'a T,
    trace: &'a Trace,
    oracle: Oracle,
    /// Which policies are at their other definition.
    redefined: Vec<bool>,
    open: Vec<Reservation>,
    /// The latest moment the store has told.
    latest: Timestamp,
    /// Whether the clock was ever set back.
    went_back: bool,
    /// The keys whose counts were forgotten, and when.
    resets: Vec<(Vec<u8>, Timestamp)>,
}

impl<'a, S: Store, T: Time> Replay<'a, S, T> {
    fn play(&mut self, step: &Step) -> Result<(), String> {
        match *step {
            Step::Advance(by) => self.time.set(self.time.now().after(by)),
            Step::Back(by) => {
                self.time.set(self.time.now().before(by));
                self.went_back = true;
            }
            Step::Check(ref asks) => drop(self.ask(asks)?),
            Step::Reserve(ask) => {
                let reservation = self.ask(&[ask])?;
                self.open.extend(reservation);
            }
            Step::Settle { which, used } => self.settle(which, Some(used))?,
            Step::Undo { which } => self.settle(which, None)?,
            Step::Manage { policy, key, operation } => self.manage(policy, key, operation)?,
            Step::Redefine(policy) => {
                let policy = policy % self.redefined.len();
                self.redefined[policy] = !self.redefined[policy];
            }
        }
        Ok(())
    }

    /// Answers what the first ask took, if it is worth settling.
    fn ask(&mut self, asks: &[Ask]) -> Result<Option<Reservation>, String> {
        let checks: Vec<_> = asks.iter().map(|ask| self.check(ask)).collect();
        let decision =
            block_on(self.store.decide(&checks)).map_err(|error| format!("{error:?}"))?;

        // Only a key that was carried over to another rate can need an excuse.
        let redefinable = checks.iter().any(|check| self.is_redefinable(check.policy));
        let before = redefinable.then(|| self.oracle.clone());
        let mut expected = self.expect(self.time.tick(), decision.at(), &checks);
        let passed = expected.iter().all(|expected| expected.outcome == Outcome::Allow);
        if let Some(before) = before
            && excuse(&mut expected, &decision)
            && passed
        {
            // A denial the oracle would not have made, but lets pass: nothing was charged.
            self.oracle = before;
            let peeks: Vec<_> = checks.iter().map(|check| check.cost(Cost::PEEK)).collect();
            expected = self.expect(self.time.tick(), decision.at(), &peeks);
            excuse(&mut expected, &decision);
        }
        if let Some(difference) = difference(&expected, &decision) {
            return Err(difference);
        }

        let behind = decision.at() < self.latest;
        self.latest = self.latest.max(decision.at());
        let Some(check) = checks.first() else {
            return Ok(None);
        };
        // Counted at a later time than it was told: what its time names is not what was charged.
        let windowed = matches!(
            check.policy.algorithm(),
            Algorithm::FixedWindow | Algorithm::SlidingWindow | Algorithm::SlidingLog
        );
        Ok(check.reservation(&decision).filter(|_| !(behind && windowed)))
    }

    /// Settles a reservation with what was used, or undoes it.
    fn settle(&mut self, which: usize, used: Option<u64>) -> Result<(), String> {
        if self.open.is_empty() {
            return Ok(());
        }
        let reservation = self.open.swap_remove(which % self.open.len());
        let policy = reservation.policy().clone();
        let key = reservation.key().as_bytes().to_owned();
        if !self.oracle.holds(&policy, Key::new(&key)) && self.is_redefinable(&policy) {
            // Nothing is kept of the key, so a store may take the reservation's definition or the
            // one it was last asked about. Both are right; leave it unsettled.
            return Ok(());
        }
        let (cost, charged_at) = (reservation.cost().units(), reservation.charged_at());
        let mut resets = self.resets.iter().filter(|(reset, _)| *reset == key);
        let permit = policy.algorithm() == Algorithm::Concurrency;
        if permit && resets.any(|(_, at)| self.went_back || *at == charged_at) {
            // The clock does not tell whether the permit was taken before the reset.
            return Ok(());
        }
        let done = match used {
            Some(used) => block_on(self.store.settle(&reservation, Cost::new(used))),
            None => block_on(self.store.undo(&reservation)),
        };
        let at = done.map_err(|error| format!("{error:?}"))?;
        match used {
            Some(used) => self.oracle.settle(at, &policy, Key::new(&key), cost, charged_at, used),
            None => self.oracle.undo(at, &policy, Key::new(&key), cost, charged_at),
        }
        self.latest = self.latest.max(at);
        Ok(())
    }

    fn manage(&mut self, policy: usize, key: usize, operation: Operation) -> Result<(), String> {
        let Check { policy, key, .. } = self.check(&Ask::new(policy, key, 0));
        let operation = match operation {
            Operation::Peek => KeyOperation::Peek,
            Operation::Reset => KeyOperation::Reset,
            Operation::BlockFor(wait) => KeyOperation::Block(self.time.now().after(wait)),
            Operation::Unblock => KeyOperation::Unblock,
        };
        let decision = block_on(self.store.manage(policy, key, operation))
            .map_err(|error| format!("{error:?}"))?;
        self.latest = self.latest.max(decision.at());
        if operation == KeyOperation::Reset {
            self.resets.push((key.as_bytes().to_owned(), decision.at()));
        }
        let mut expected = self.oracle.manage(decision.at(), policy, key, operation);
        expected.round_up(self.time.tick());
        difference(&[expected], &decision).map_or(Ok(()), Err)
    }

    /// What the oracle says, by a clock that ticks like this.
    fn expect(&mut self, tick: Duration, at: Timestamp, checks: &[Check<'_, '_>]) -> Vec<Expected> {
        let mut expected = self.oracle.decide(at, checks);
        for expected in &mut expected {
            expected.round_up(tick);
        }
        expected
    }

    fn check(&self, ask: &Ask) -> Check<'a, 'a> {
        let policy = ask.policy % self.trace.policies.len();
        let other = self.redefined[policy] != ask.outdated;
        let key = &self.trace.keys[ask.key % self.trace.keys.len()];
        Check::new(self.trace.policies[policy].pick(other), key).cost(ask.cost)
    }

    fn is_redefinable(&self, policy: &Policy) -> bool {
        let mut named = self.trace.policies.iter().filter(|one| one.first.name() == policy.name());
        // One that may have any window may be among them more than once.
        policy.is_any_window() || named.any(|one| one.other.is_some())
    }

    /// Every policy as it is defined now.
    fn defined(&self) -> impl Iterator<Item = &'a Policy> {
        let defined = self.trace.policies.iter().zip(&self.redefined);
        defined.map(|(policy, &redefined)| policy.pick(redefined))
    }

    /// Every policy as it is defined now, with every key.
    fn everyone(&self) -> Vec<(&'a Policy, Key<'a>)> {
        let keys = || self.trace.keys.iter().map(Key::from);
        self.defined().flat_map(|policy| keys().map(move |key| (policy, key))).collect()
    }
}
