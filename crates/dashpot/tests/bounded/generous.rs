//! Whatever happens, a store without room is never more generous than one that counts each key by
//! itself: the oracle, told exactly what the store admitted and what was done to each key, would
//! have admitted it too. (It need not be as generous.)

use std::time::Duration;

use dashpot::{
    Algorithm, Check, Clock, Cost, Key, KeyOperation, Limiter, ManualClock, MemoryStore, Outcome,
    Policy, Reservation, Timestamp,
};
use dashpot_testkit::strategies::{any_window_trace, cases, mixed_trace, trace};
use dashpot_testkit::trace::{Ask, Operation, Step};
use dashpot_testkit::{Oracle, Trace};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

use super::{pair_in_one_cell, squatters};

/// What happens to the room there is, before a step of the trace.
#[derive(Clone, Copy, Debug)]
enum Room {
    AsItWas,
    /// Somebody takes a place, if one is free.
    Taken,
    /// Somebody leaves a place.
    Left(usize),
    /// All places are left.
    AllLeft,
}

fn room() -> impl Strategy<Value = Room> {
    prop_oneof![
        10 => Just(Room::AsItWas),
        4 => Just(Room::Taken),
        2 => (0_usize..8).prop_map(Room::Left),
        1 => Just(Room::AllLeft),
    ]
}

struct Scene<'a> {
    trace: &'a Trace,
    keys: Vec<Vec<u8>>,
    clock: ManualClock,
    store: std::sync::Arc<MemoryStore>,
    oracle: Oracle,
    squatters: Limiter,
    newest: u64,
    open: Vec<Reservation>,
    resets: Vec<(Vec<u8>, Timestamp)>,
}

impl<'a> Scene<'a> {
    fn new(max_keys: usize, trace: &'a Trace) -> Self {
        let clock = ManualClock::new(trace.start);
        let store = MemoryStore::builder().clock(clock.clone()).max_keys(max_keys).build();
        let store = std::sync::Arc::new(store);
        let squatters = squatters(&store);
        let mut scene = Self {
            trace,
            keys: trace.keys.clone(),
            clock,
            store,
            oracle: Oracle::default(),
            squatters,
            newest: 0,
            open: Vec::new(),
            resets: Vec::new(),
        };
        for _ in 0..max_keys {
            scene.squat();
        }
        if let Some(pair) = pair_in_one_cell(&scene.store, &scene.clock, &trace.policies[0].first) {
            scene.keys = pair.to_vec();
            scene.keys.extend(trace.keys.clone());
        }
        scene
    }

    fn squat(&mut self) {
        self.newest += 1;
        let _ = self.squatters.check(&self.newest.to_be_bytes());
    }

    fn play(&mut self, room: Room, step: &Step) -> TestCaseResult {
        match room {
            Room::AsItWas => {}
            Room::Taken => self.squat(),
            Room::Left(which) => {
                self.squatters.reset(&self.newest.saturating_sub(which as u64).to_be_bytes());
            }
            Room::AllLeft => {
                (0..=self.newest).for_each(|key| self.squatters.reset(&key.to_be_bytes()));
            }
        }
        match *step {
            Step::Advance(by) => self.clock.advance(by),
            // A key that was whole and made room is forgotten, and no clock brings that back. Nor do
            // limits change here: what is carried over is rounded, and that is judged elsewhere.
            Step::Back(_) | Step::Redefine(_) => {}
            Step::Check(ref asks) => drop(self.ask(asks)?),
            Step::Reserve(ask) => {
                let reservation = self.ask(&[ask])?;
                self.open.extend(reservation);
            }
            Step::Settle { which, used } => self.settle(which, Some(used)),
            Step::Undo { which } => self.settle(which, None),
            Step::Manage { policy, key, operation } => self.manage(policy, key, operation),
        }
        Ok(())
    }

    /// What the store admits, the oracle must admit, and charges.
    fn ask(&mut self, asks: &[Ask]) -> Result<Option<Reservation>, TestCaseError> {
        let (trace, keys) = (self.trace, self.keys.clone());
        let checks: Vec<_> = asks.iter().map(|ask| self.check(trace, &keys, ask)).collect();
        let decision = self.store.decide_now(&checks);
        if !decision.is_allowed() {
            return Ok(None);
        }
        let expected = self.oracle.decide(decision.at(), &checks);
        for (check, expected) in checks.iter().zip(&expected) {
            prop_assert_eq!(expected.outcome, Outcome::Allow, "{:?}: {:?}", check, expected);
        }
        for (status, expected) in decision.statuses().iter().zip(&expected) {
            prop_assert!(status.remaining() <= expected.remaining, "{status:?}: {expected:?}");
            prop_assert!(status.delay() >= expected.delay, "{status:?}: {expected:?}");
        }
        Ok(checks.first().and_then(|check| check.reservation(&decision)))
    }

    fn settle(&mut self, which: usize, used: Option<u64>) {
        if self.open.is_empty() {
            return;
        }
        let reservation = self.open.swap_remove(which % self.open.len());
        let (policy, key) = (reservation.policy(), reservation.key());
        let charged_at = reservation.charged_at();
        let mut resets = self.resets.iter().filter(|(reset, _)| *reset == key.as_bytes());
        if policy.algorithm() == Algorithm::Concurrency && resets.any(|(_, at)| *at >= charged_at) {
            // The permit was forgotten with the key. If that has lost its place since, the cell it is
            // counted in cannot tell this permit from others.
            return;
        }
        let cost = reservation.cost().units();
        match used {
            Some(used) => {
                let at = self.store.settle_now(&reservation, Cost::new(used));
                self.oracle.settle(at, policy, key, cost, charged_at, used);
            }
            None => {
                let at = self.store.undo_now(&reservation);
                self.oracle.undo(at, policy, key, cost, charged_at);
            }
        }
    }

    fn manage(&mut self, policy: usize, key: usize, operation: Operation) {
        let keys = self.keys.clone();
        let Check { policy, key, .. } = self.check(self.trace, &keys, &Ask::new(policy, key, 0));
        let operation = match operation {
            Operation::Peek => KeyOperation::Peek,
            Operation::Reset => KeyOperation::Reset,
            Operation::BlockFor(wait) => KeyOperation::Block(self.clock.now().after(wait)),
            Operation::Unblock => KeyOperation::Unblock,
        };
        let decision = self.store.manage_now(policy, key, operation);
        if operation == KeyOperation::Reset {
            self.resets.push((key.as_bytes().to_owned(), decision.at()));
        }
        self.oracle.manage(decision.at(), policy, key, operation);
    }

    fn check<'k>(&self, trace: &'a Trace, keys: &'k [Vec<u8>], ask: &Ask) -> Check<'a, 'k> {
        let defined = &trace.policies[ask.policy % trace.policies.len()];
        let key = ask.key % keys.len();
        // Every other key is of another tier, with limits of its own under the same name.
        let policy = if key.is_multiple_of(2) { None } else { defined.other.as_ref() };
        let policy = policy.unwrap_or(&defined.first);
        Check::new(policy, Key::from(&keys[key])).cost(ask.cost)
    }
}

fn never_more_generous(max_keys: usize, trace: &Trace, rooms: &[Room]) -> TestCaseResult {
    let mut scene = Scene::new(max_keys, trace);
    for (step, room) in trace.steps.iter().zip(rooms) {
        scene.play(*room, step)?;
    }
    // In the end, with room for all, everybody asks for all there is, again and again.
    for _ in 0..20 {
        for key in 0..scene.keys.len() {
            for policy in 0..trace.policies.len() {
                for cost in [trace.policies[policy].first.limit(), 1] {
                    scene.play(Room::AllLeft, &Step::Check(vec![Ask::new(policy, key, cost)]))?;
                }
            }
        }
        scene.clock.advance(pause(&trace.policies[0].first));
    }
    Ok(())
}

/// A third of what a unit takes.
fn pause(policy: &Policy) -> Duration {
    let window = policy.quota().window().map_or(1, |window| window.length().as_nanos());
    let count = u128::from(policy.quota().count().unwrap_or(1).max(1));
    Duration::from_nanos(u64::try_from(window / count / 3).unwrap_or(u64::MAX))
}

fn script(trace: BoxedStrategy<Trace>) -> impl Strategy<Value = (usize, Trace, Vec<Room>)> {
    (0_usize..8, trace, vec(room(), 60))
}

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn a_token_bucket((max_keys, trace, rooms) in script(trace(Algorithm::TokenBucket))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_leaky_bucket((max_keys, trace, rooms) in script(trace(Algorithm::LeakyBucket))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_token_bucket_of_any_window(
        (max_keys, trace, rooms) in script(any_window_trace(Algorithm::TokenBucket))
    ) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_leaky_bucket_of_any_window(
        (max_keys, trace, rooms) in script(any_window_trace(Algorithm::LeakyBucket))
    ) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_fixed_window((max_keys, trace, rooms) in script(trace(Algorithm::FixedWindow))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_sliding_log((max_keys, trace, rooms) in script(trace(Algorithm::SlidingLog))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn a_sliding_window((max_keys, trace, rooms) in script(trace(Algorithm::SlidingWindow))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn concurrency((max_keys, trace, rooms) in script(trace(Algorithm::Concurrency))) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }

    #[test]
    fn several((max_keys, trace, rooms) in script(mixed_trace())) {
        never_more_generous(max_keys, &trace, &rooms)?;
    }
}
