//! The oracle behind the store's seam.

use std::future::Future;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dashpot::{
    Check, Clock, Cost, Decision, Key, KeyOperation, ManualClock, Outcome, Policy, PolicyStatus,
    Reservation, Retry, Standing, Store, StoreError, Timestamp,
};

use super::{Expected, Oracle};

/// A store that asks the oracle: slow, exact, and the reference for what a store should do. The
/// conformance suite and the replay are themselves tested on it.
#[derive(Debug)]
pub struct OracleStore {
    oracle: Mutex<Oracle>,
    clock: ManualClock,
}

impl OracleStore {
    /// A store whose time is this clock's.
    #[must_use]
    pub fn with_clock(clock: ManualClock) -> Self {
        Self { oracle: Mutex::default(), clock }
    }

    fn oracle(&self) -> MutexGuard<'_, Oracle> {
        self.oracle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for OracleStore {
    fn decide<'p>(
        &self,
        checks: &[Check<'p, '_>],
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        let mut oracle = self.oracle();
        let at = self.clock.now();
        let expected = oracle.decide(at, checks);
        let asked = checks.iter().zip(&expected);
        let statuses = asked.map(|(check, expected)| status(check.policy, expected));
        std::future::ready(Ok(Decision::new(at, statuses)))
    }

    fn settle(
        &self,
        reservation: &Reservation,
        used: Cost,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        let mut oracle = self.oracle();
        let at = self.clock.now();
        oracle.settle(
            at,
            reservation.policy(),
            reservation.key(),
            reservation.cost().units(),
            reservation.charged_at(),
            used.units(),
        );
        std::future::ready(Ok(at))
    }

    fn undo(
        &self,
        reservation: &Reservation,
    ) -> impl Future<Output = Result<Timestamp, StoreError>> + Send {
        let mut oracle = self.oracle();
        let at = self.clock.now();
        let (cost, charged_at) = (reservation.cost().units(), reservation.charged_at());
        oracle.undo(at, reservation.policy(), reservation.key(), cost, charged_at);
        std::future::ready(Ok(at))
    }

    fn manage<'p>(
        &self,
        policy: &'p Policy,
        key: Key<'_>,
        operation: KeyOperation,
    ) -> impl Future<Output = Result<Decision<'p>, StoreError>> + Send {
        let mut oracle = self.oracle();
        let at = self.clock.now();
        let expected = oracle.manage(at, policy, key, operation);
        std::future::ready(Ok(Decision::new(at, [status(policy, &expected)])))
    }
}

fn status<'p>(policy: &'p Policy, expected: &Expected) -> PolicyStatus<'p> {
    let standing = Standing {
        limit: expected.limit,
        remaining: expected.remaining,
        reset_after_nanos: nanos(expected.reset_after),
        available_after_nanos: expected.available_after.map(nanos),
    };
    match (expected.outcome, expected.never, expected.retry_after) {
        (Outcome::Allow, ..) => PolicyStatus::allow(policy, standing, nanos(expected.delay)),
        (Outcome::Deny, true, _) => PolicyStatus::deny(policy, standing, Retry::Never),
        (Outcome::Deny, false, Some(wait)) => {
            PolicyStatus::deny(policy, standing, Retry::After(nanos(wait)))
        }
        (Outcome::Deny, false, None) => PolicyStatus::deny(policy, standing, Retry::Unknown),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
