//! Policies of all algorithms under any names, and what is asked of them.

use std::time::Duration;

use dashpot::{Algorithm, Check, Decision, ManualClock, MemoryStore, Policy, Timestamp};
use dashpot_testkit::strategies::{cost, pause, policy, start};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;

/// Up to three policies and what is asked of all of them at once, time after time.
#[derive(Clone, Debug)]
pub(crate) struct Scene {
    policies: Vec<Policy>,
    start: Timestamp,
    asks: Vec<(Duration, Vec<u64>)>,
}

impl Scene {
    /// Asks, and shows every decision.
    pub(crate) fn play(
        &self,
        mut show: impl FnMut(&Decision<'_>) -> TestCaseResult,
    ) -> TestCaseResult {
        let clock = ManualClock::new(self.start);
        let store = MemoryStore::with_clock(clock.clone());
        for (pause, costs) in &self.asks {
            clock.advance(*pause);
            let checks = self.policies.iter().zip(costs);
            let checks: Vec<_> =
                checks.map(|(policy, cost)| Check::new(policy, "a").cost(*cost)).collect();
            show(&store.decide_now(&checks))?;
        }
        Ok(())
    }
}

/// Any scene.
pub(crate) fn scene() -> impl Strategy<Value = Scene> {
    let algorithm = prop::sample::select(Algorithm::ALL.to_vec());
    let named = (algorithm.prop_flat_map(|algorithm| policy("p", algorithm)), name());
    vec(named.prop_map(|(policy, name)| renamed(&policy, name)), 1..=3).prop_flat_map(asked)
}

fn asked(policies: Vec<Policy>) -> impl Strategy<Value = Scene> {
    let costs: Vec<_> = policies.iter().map(cost).collect();
    let asks = vec((pause(&policies[0]), costs), 1..20);
    (start(&policies[0]), asks).prop_map(move |(start, asks)| Scene {
        policies: policies.clone(),
        start,
        asks,
    })
}

/// A name: usually an ordinary one, now and then the same one, or one that is hard to write down.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z][a-z0-9_-]{0,12}",
        1 => Just("same".to_owned()),
        1 => "[ -~]{1,20}",
        1 => "[\"\\\\,;= ]{1,100}",
        1 => "\\PC{1,60}",
    ]
}

fn renamed(policy: &Policy, name: String) -> Policy {
    let mut builder = Policy::builder(name, policy.quota())
        .algorithm(policy.algorithm())
        .zone(policy.zone().clone());
    if let Some(places) = policy.queue() {
        builder = builder.queue(places).undelayed(policy.undelayed());
    }
    builder.build().unwrap()
}
