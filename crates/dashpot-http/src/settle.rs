//! Settling what was charged when it is known what it cost.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Waker};

use dashpot::{Cost, Reservation, Store, StoreError, Timestamp};
use dashpot_rules::{Pending, Settle};
use http::Response;

use crate::layer::Shared;
use crate::line::is_waited_for;
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
    /// What is given back if this is dropped, because it is not served yet.
    gives_back: GivesBack,
}

/// What is given back of what was charged, if nobody serves the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GivesBack {
    /// Nothing: it is served.
    Nothing,
    /// All but places in queues, which a turn gives to those behind.
    AllButQueues,
    /// All, its turn being over.
    All,
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
                // A rule may have rates beside its permits.
                Settle::Release if reservation.is_permit() => {
                    held.push((reservation, local));
                }
                settle => pending.push(Charge { reservation, settle: settle.clone(), local }),
            }
        }
        let shared = shared.clone();
        let permits =
            if held.is_empty() { None } else { Some(Permits { held, shared: shared.clone() }) };
        Some(Self { pending, permits, shared, gives_back: GivesBack::Nothing })
    }

    /// What is given back if this is dropped from now on.
    pub(crate) const fn if_dropped(&mut self, gives_back: GivesBack) {
        self.gives_back = gives_back;
    }

    /// Settles what the response says, and keeps what is held until it was sent.
    pub(crate) fn settle<B>(mut self, response: &Response<B>, held: &mut Vec<Box<dyn Held>>) {
        for Charge { reservation, settle: how, local } in std::mem::take(&mut self.pending) {
            let used = match how {
                Settle::ChargeOn(_) => how.by_status(response.status().as_u16()),
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
        if let Some(permits) = self.permits.take() {
            held.push(Box::new(permits));
        }
    }
}

impl<St: Store + 'static> Drop for Charges<St> {
    fn drop(&mut self) {
        if self.gives_back == GivesBack::Nothing {
            return;
        }
        for Charge { reservation, local, .. } in self.pending.drain(..) {
            if reservation.policy().queue().is_none() {
                undo(&self.shared, reservation, local);
            } else if self.gives_back == GivesBack::All {
                // Held until it is given back: who comes meanwhile stands behind.
                let lines = self.shared.lines.lock();
                // Those who wait have been told when to go; who comes next must not be told the same.
                let is_kept = !local && is_waited_for(&lines, &self.shared.store, &reservation);
                if !is_kept {
                    undo(&self.shared, reservation, local);
                }
            }
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

/// Settles what was taken, without keeping the response.
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
    at_once_or_later(async move { shared.store.settle(&reservation, used).await });
}

/// Undoes what was taken for a request that is not served.
pub(crate) fn undo<St: Store + 'static>(
    shared: &Arc<Shared<St>>,
    reservation: Reservation,
    local: bool,
) {
    if local {
        shared.local.undo_now(&reservation);
        return;
    }
    let shared = shared.clone();
    at_once_or_later(async move { shared.store.undo(&reservation).await });
}

/// At once if the store can, else in a task of its own.
fn at_once_or_later(
    settling: impl Future<Output = Result<Timestamp, StoreError>> + Send + 'static,
) {
    let mut settling = Box::pin(async move {
        if let Err(error) = settling.await {
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
