//! The replay agrees with the oracle about itself, and notices when a store is wrong.

use std::future::Future;
use std::time::Duration;

use dashpot::{
    Algorithm, Check, Cost, Decision, Key, KeyOperation, ManualClock, Policy, PolicyStatus, Quota,
    Reservation, Standing, Store, StoreError, Timestamp,
};
use dashpot_testkit::trace::{Ask, Step};
use dashpot_testkit::{OracleStore, Trace, replay, strategies};
use proptest::prelude::*;

fn play(trace: &Trace) -> Result<(), String> {
    let clock = ManualClock::default();
    replay(&OracleStore::with_clock(clock.clone()), &clock, trace)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_oracle_agrees_with_itself(trace in strategies::mixed_trace()) {
        prop_assert_eq!(play(&trace), Ok(()));
    }

    #[test]
    fn every_algorithm_has_traces(
        trace in prop::sample::select(Algorithm::ALL.to_vec()).prop_flat_map(strategies::trace)
    ) {
        prop_assert_eq!(play(&trace), Ok(()));
    }

    #[test]
    fn every_bucket_has_traces_of_any_window(
        trace in prop::sample::select(vec![Algorithm::TokenBucket, Algorithm::LeakyBucket])
            .prop_flat_map(strategies::any_window_trace)
    ) {
        prop_assert_eq!(play(&trace), Ok(()));
    }
}

/// A store that says one unit too many remains.
struct Generous(OracleStore);

impl Store for Generous {
    fn decide<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        let decided = self.0.decide(checks);
        async {
            let decision = decided.await?;
            let generous = decision.statuses().iter().map(|status| {
                let standing = Standing {
                    limit: status.limit(),
                    remaining: status.remaining() + 1,
                    reset_after_nanos: 0,
                    available_after_nanos: Some(0),
                };
                PolicyStatus::allow(status.policy(), standing, 0)
            });
            Ok(Decision::new(decision.at(), generous))
        }
    }

    fn settle(
        &self,
        reservation: &Reservation,
        used: Cost,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        self.0.settle(reservation, used)
    }

    fn undo(
        &self,
        reservation: &Reservation,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        self.0.undo(reservation)
    }

    fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        self.0.manage(policy, key, operation)
    }
}

#[test]
fn a_wrong_store_is_caught_at_its_first_wrong_step() {
    let policy = Policy::new("p", Quota::per_second(5)).unwrap();
    let trace = Trace {
        start: Timestamp::from_secs(1),
        policies: vec![policy.into()],
        keys: vec![b"a".to_vec()],
        steps: vec![Step::Advance(Duration::from_secs(1)), Step::Check(vec![Ask::new(0, 0, 1)])],
    };
    assert_eq!(play(&trace), Ok(()));

    let clock = ManualClock::default();
    let store = Generous(OracleStore::with_clock(clock.clone()));
    let difference = replay(&store, &clock, &trace).unwrap_err();
    assert!(difference.starts_with("step 1, Check"), "{difference}");
    assert!(difference.contains("remaining: expected 4, got 5"), "{difference}");
}
