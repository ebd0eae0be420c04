//! What every store owes its callers, on the one in memory.

use std::time::Duration;

use dashpot::{ManualClock, MemoryStore};
use dashpot_testkit::conformance;
use dashpot_testkit::conformance::Subject;

struct Memory {
    store: MemoryStore,
    clock: ManualClock,
}

impl Subject for Memory {
    type Store = MemoryStore;

    fn store(&self) -> &MemoryStore {
        &self.store
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

fn memory() -> Memory {
    let clock = ManualClock::default();
    Memory { store: MemoryStore::with_clock(clock.clone()), clock }
}

conformance!(memory());
