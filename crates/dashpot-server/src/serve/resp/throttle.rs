//! What comes of a `CL.THROTTLE`.

use std::time::Instant;

use dashpot::{Check, Cost, Decision, Policy, Store, StoreError};
use dashpot_resp::{Terms, Throttle, Wrong, error};
use dashpot_rules::OnStoreError;
use http::StatusCode;
use tracing::debug;

use crate::serve::connection::Worker;
use crate::serve::metrics::{Door, THROTTLE};
use crate::serve::service::Service;
use crate::serve::store::AnyStore;

/// Whether the store can count by this policy.
pub(super) fn fits(service: &Service, policy: &Policy) -> Result<(), Wrong> {
    match service.store {
        AnyStore::Memory(_) => Ok(()),
        AnyStore::Redis(_) => {
            policy.fits_micros().map_err(|unfit| Wrong::Unfit(unfit.to_string().into()))
        }
    }
}

/// Decides at once, if the store can; then the answer is written. How it went, or nothing if it has to be waited for.
#[inline]
pub(super) fn decide_at_once(
    service: &Service,
    asked: &Throttle<'_>,
    policy: &Policy,
    out: &mut Vec<u8>,
) -> Option<StatusCode> {
    let check = Check::new(policy, asked.key).cost(asked.quantity);
    match &service.store {
        // Without a detour: decisions are large, and to hand them on takes as long as to make them.
        AnyStore::Memory(store) => Some(tell(service, asked, &store.decide_now(&[check]), out)),
        AnyStore::Redis(store) => {
            let decided = store.decide_at_once(&[check])?;
            Some(conclude(service, asked, &check, decided, out))
        }
    }
}

/// A question that waits for a store far away, with what it is about.
pub(super) struct Far {
    pub(super) terms: Terms,
    pub(super) key: Box<[u8]>,
    pub(super) quantity: Cost,
    pub(super) policy: Policy,
    pub(super) began: Instant,
}

impl Far {
    /// Decides, and answers.
    pub(super) async fn decide(self, worker: &Worker) -> Vec<u8> {
        let key = dashpot::Key::new(&self.key);
        let asked = Throttle { key, terms: self.terms, quantity: self.quantity };
        let check = Check::new(&self.policy, key).cost(self.quantity);
        let decided = worker.service.store.decide(&[check]).await;
        let mut out = Vec::with_capacity(64);
        let status = conclude(&worker.service, &asked, &check, decided, &mut out);
        if let Some(answered) = worker.service.answered.get(worker.number) {
            answered.count(Door::Resp, status, self.began.elapsed());
        }
        out
    }
}

/// Writes what was decided, or what is to be done if nobody could.
fn conclude(
    service: &Service,
    asked: &Throttle<'_>,
    check: &Check<'_, '_>,
    decided: Result<Decision<'_>, StoreError>,
    out: &mut Vec<u8>,
) -> StatusCode {
    match decided {
        Ok(decision) => tell(service, asked, &decision, out),
        Err(error) => go_without(service, asked, check, &error, out),
    }
}

#[inline]
fn tell(
    service: &Service,
    asked: &Throttle<'_>,
    decision: &Decision<'_>,
    out: &mut Vec<u8>,
) -> StatusCode {
    asked.answer(decision, out);
    if decision.is_allowed() {
        // Who only looks is not counted.
        if asked.quantity != Cost::PEEK {
            service.counters.throttle.allow(decision.statuses());
        }
        StatusCode::OK
    } else {
        service.counters.throttle.deny();
        service.note_one(THROTTLE, asked.key);
        StatusCode::TOO_MANY_REQUESTS
    }
}

#[cold]
fn go_without(
    service: &Service,
    asked: &Throttle<'_>,
    check: &Check<'_, '_>,
    why: &StoreError,
    out: &mut Vec<u8>,
) -> StatusCode {
    service.counters.throttle.go_without();
    debug!(error = %why, "the store did not answer");
    let on_error = service.rules.borrow().store().on_error;
    match on_error {
        OnStoreError::Allow => {
            asked.answer_uncounted(out);
            StatusCode::OK
        }
        OnStoreError::Deny => {
            error(out, b"UNAVAILABLE the store does not answer");
            StatusCode::SERVICE_UNAVAILABLE
        }
        OnStoreError::Local => {
            let share = [check.policy.share(service.store.instances())];
            let decision = service.decide_locally(&[*check], &share);
            tell(service, asked, &decision, out)
        }
    }
}
