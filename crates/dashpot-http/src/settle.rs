//! Settling what was charged when it is known what it cost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use dashpot::{Cost, Reservation, Store, StoreError};
use dashpot_rules::{Pending, Settle};
use http::Response;

use crate::layer::Shared;
use crate::response_body::Held;

/// What a request really cost: for a service that would rather say it in its response's extensions
/// than in a header. Counts for rules with `settle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Used(pub u64);

/// What was charged and is to be settled.
pub(crate) struct Charges<St: Store + 'static> {
    pending: Vec<Charge>,
    /// Given back if the request is dropped, too: nobody is in flight then.
    permits: Option<Permits<St>>,
    shared: Arc<Shared<St>>,
}

struct Charge {
    reservation: Reservation,
    settle: Settle,
    local: bool,
}

impl<St: Store + 'static> Charges<St> {
    /// What is to be settled. Mostly nothing.
    pub(crate) fn of(all: Vec<Pending<'_>>, shared: &Arc<Shared<St>>) -> Option<Self> {
        if all.is_empty() {
            return None;
        }
        let (mut pending, mut held) = (Vec::new(), Vec::new());
        for Pending { reservation, rule, local } in all {
            match rule.settle() {
                Settle::Release => held.push((reservation, local)),
                settle => pending.push(Charge { reservation, settle: settle.clone(), local }),
            }
        }
        let shared = shared.clone();
        let permits =
            if held.is_empty() { None } else { Some(Permits { held, shared: shared.clone() }) };
        Some(Self { pending, permits, shared })
    }

    /// Settles what the response says, and keeps what is held until it was sent.
    pub(crate) fn settle<B>(self, response: &Response<B>, held: &mut Vec<Box<dyn Held>>) {
        for Charge { reservation, settle: how, local } in self.pending {
            let used = match how {
                Settle::ChargeOn(statuses) => {
                    let counts = statuses.contains(&response.status().as_u16());
                    if counts { None } else { Some(Cost::PEEK) }
                }
                Settle::Header(name) => used(response, &name).map(Cost::new),
                Settle::Bytes => {
                    let (shared, sent) = (self.shared.clone(), AtomicU64::new(0));
                    held.push(Box::new(Bytes { taken: Some((reservation, local)), shared, sent }));
                    continue;
                }
                _ => None,
            };
            // What nobody says anything about stays charged.
            if let Some(used) = used {
                settle(&self.shared, reservation, local, used);
            }
        }
        if let Some(permits) = self.permits {
            held.push(Box::new(permits));
        }
    }
}

/// What is charged by the bytes that were sent, when this is dropped.
struct Bytes<St: Store + 'static> {
    taken: Option<(Reservation, bool)>,
    shared: Arc<Shared<St>>,
    sent: AtomicU64,
}

impl<St: Store + 'static> Held for Bytes<St> {
    fn sent(&self, bytes: usize) {
        self.sent.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

impl<St: Store + 'static> Drop for Bytes<St> {
    fn drop(&mut self) {
        if let Some((reservation, local)) = self.taken.take() {
            let used = Cost::new(self.sent.load(Ordering::Relaxed));
            settle(&self.shared, reservation, local, used);
        }
    }
}

/// What the response says it cost.
fn used<B>(response: &Response<B>, header: &str) -> Option<u64> {
    if let Some(Used(used)) = response.extensions().get() {
        return Some(*used);
    }
    let written = response.headers().get(header)?;
    let used = written.to_str().ok().and_then(|text| text.trim().parse().ok());
    if used.is_none() {
        tracing::warn!(header, "not a number of units; the reservation stays charged");
    }
    used
}

/// Permits, given back when this is dropped.
struct Permits<St: Store + 'static> {
    held: Vec<(Reservation, bool)>,
    shared: Arc<Shared<St>>,
}

impl<St: Store + 'static> Held for Permits<St> {}

impl<St: Store + 'static> Drop for Permits<St> {
    fn drop(&mut self) {
        for (reservation, local) in self.held.drain(..) {
            let cost = reservation.cost();
            settle(&self.shared, reservation, local, cost);
        }
    }
}

/// Settles without keeping the response: at once if the store can, else in a task of its own.
pub(crate) fn settle<St: Store + 'static>(
    shared: &Arc<Shared<St>>,
    reservation: Reservation,
    local: bool,
    used: Cost,
) {
    if local {
        shared.local.settle_now(&reservation, used);
        return;
    }
    let shared = shared.clone();
    let mut settling = Box::pin(async move {
        let settled: Result<_, StoreError> = shared.store.settle(&reservation, used).await;
        if let Err(error) = settled {
            tracing::warn!(%error, "could not settle; the reservation stays charged");
        }
    });
    let first = Pin::new(&mut settling).poll(&mut Context::from_waker(Waker::noop()));
    if first.is_pending() {
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(settling)),
            Err(_) => tracing::warn!("no runtime to settle in; the reservation stays charged"),
        }
    }
}
