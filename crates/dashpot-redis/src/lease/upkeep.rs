//! Leases are renewed before they end while they are used, and given back when they are not.

use std::sync::{Arc, Weak};
use std::time::Duration;

use dashpot::Consistency;
use tokio::time::{sleep, timeout_at};

use super::slot::{Nanos, Slot};
use crate::store::Inner;

/// How often is looked after them.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What was not asked about for so long is not asked about often any more.
const IDLE: Nanos = 500_000_000;

/// What a slot needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Nothing,
    /// To be asked about.
    Renewal,
    /// To be given back.
    Farewell,
}

impl Slot {
    /// What it needs. What was counted is told every so often; a lease is renewed when half of it is over.
    pub(crate) fn needs(&self, now: Nanos, half: Nanos) -> Need {
        let terms = self.terms();
        let is_idle = now.saturating_sub(self.used()) >= IDLE;
        let is_due = match self.policy.consistency() {
            // What was counted is not forgotten before it was told.
            Consistency::Approximate if self.owes() => now.saturating_sub(terms.heard()) >= half,
            _ if is_idle => return Need::Farewell,
            Consistency::Approximate => false,
            _ => {
                terms.units() > 0
                    && now.saturating_add(half) >= terms.ends()
                    && !self.is_closing(now, now + half)
            }
        };
        if is_due { Need::Renewal } else { Need::Nothing }
    }
}

impl Inner {
    fn half(&self, slot: &Slot) -> Nanos {
        let ways = &self.leases.ways;
        let half = match slot.policy.consistency() {
            Consistency::Approximate => ways.interval,
            _ => ways.lease / 2,
        };
        u64::try_from(half.as_nanos()).unwrap_or(Nanos::MAX)
    }

    async fn look_after(self: &Arc<Self>) {
        let now = self.leases.now();
        let due = self.leases.table.those(|slot| slot.needs(now, self.half(slot)) != Need::Nothing);
        let farewell = |slot: &Arc<Slot>| slot.needs(now, self.half(slot)) == Need::Farewell;
        let (leaving, due): (Vec<_>, Vec<_>) = due.into_iter().partition(farewell);
        for slot in due {
            if slot.trouble(now).is_none() && slot.claim() {
                self.begin_to_ask(&slot, 0);
            }
        }
        self.part_with(leaving).await;
    }

    /// Gives back all that is out with these.
    async fn part_with(self: &Arc<Self>, slots: Vec<Arc<Slot>>) {
        let slots = slots.into_iter().filter(|slot| slot.claim());
        let leaving = slots.filter_map(|slot| {
            // Nobody finds it from here on; who has it already finds it empty.
            self.leases.table.remove(&slot);
            slot.leave(self.leases.now()).map(|request| (slot, request))
        });
        self.all_of(leaving, |store, (slot, request)| async move {
            store.exchange(&slot, request, store.patience()).await;
        })
        .await;
    }

    /// Gives back all that is leased, and tells all that was counted here.
    pub(crate) async fn release(self: &Arc<Self>) {
        let all = async {
            // Those that are being asked about are given back when there is an answer.
            while !self.leases.table.is_empty() {
                self.part_with(self.leases.table.those(|_| true)).await;
                sleep(Duration::from_millis(1)).await;
            }
        };
        // What Redis does not hear of ends by itself.
        let _ = timeout_at(self.patience(), all).await;
    }
}

/// Looks after leases for as long as there is a store.
pub(crate) async fn keep_up(store: Weak<Inner>, interval: Duration) {
    loop {
        sleep(LOOK_EVERY.min(interval)).await;
        let Some(store) = store.upgrade() else { return };
        if !store.leases.table.is_empty() {
            store.look_after().await;
        }
    }
}
