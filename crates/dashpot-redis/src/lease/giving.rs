//! Units that are given back, by callers to what is at hand, and from there to Redis.

use dashpot::Timestamp;
use tokio::time::{Instant, timeout_at};

use super::slot::Slot;
use crate::store::Inner;

impl Inner {
    /// Takes units back that were spent of what is at hand, and says how many.
    pub(crate) async fn take_back(
        &self,
        name: &[u8],
        (units, charged_at): (u64, Timestamp),
        deadline: Instant,
    ) -> u64 {
        let mut back = 0;
        for slot in self.leases.table.named(name) {
            // What is being told is not changed meanwhile.
            if back < units && claimed(&slot, deadline).await {
                back += slot.take_back(self.leases.now(), units - back, charged_at);
                slot.let_go();
            }
        }
        back
    }

    /// Gives back what is leased of this key, and does not spend it any more: it was blocked.
    pub(crate) async fn give_up(&self, name: &[u8]) {
        for slot in self.leases.table.named(name) {
            self.leases.table.remove(&slot);
            if !claimed(&slot, self.deadline()).await {
                slot.drop_all();
            } else if let Some(request) = slot.leave(self.leases.now()) {
                self.exchange(&slot, request, self.deadline()).await;
            }
        }
    }

    /// Does not spend what is leased of this key any more: it was reset.
    pub(crate) fn drop_lease(&self, name: &[u8]) {
        for slot in self.leases.table.named(name) {
            self.leases.table.remove(&slot);
            slot.drop_all();
        }
    }
}

/// Waits for the right to ask.
async fn claimed(slot: &Slot, deadline: Instant) -> bool {
    loop {
        let answered = slot.answered.notified();
        tokio::pin!(answered);
        answered.as_mut().enable();
        if slot.claim() {
            return true;
        }
        if slot.is_gone() || timeout_at(deadline, answered).await.is_err() {
            return false;
        }
    }
}
