//! The suite and the replay, tried on the store that is right by definition.

use std::time::Duration;

use dashpot::ManualClock;
use dashpot_testkit::conformance::Subject;
use dashpot_testkit::{OracleStore, conformance};

struct Reference {
    store: OracleStore,
    clock: ManualClock,
}

impl Subject for Reference {
    type Store = OracleStore;

    fn store(&self) -> &OracleStore {
        &self.store
    }

    async fn advance(&self, by: Duration) {
        self.clock.advance(by);
    }
}

fn subject() -> Reference {
    let clock = ManualClock::default();
    Reference { store: OracleStore::with_clock(clock.clone()), clock }
}

conformance!(subject());
